// What each token uses now, and how much work it was served so far.

import { CostBucket } from './cost-bucket.js';
import { WORK_KINDS, type AdmissionLimits, type WorkKind } from './admission-limits.js';

/** Limit of the stored tokens; idle tokens are evicted beyond it. */
const SHARES_MAX = 4_096;

/** The use of one token. */
export interface TokenShare {
  readonly token: string;
  readonly weight: number;
  readonly running: Record<WorkKind, number>;
  /** Requests without a response, running or waiting, by kind. */
  readonly outstanding: Record<WorkKind, number>;
  queued: number;
  bodyBytes: number;
  /** Requests without an answer, by connection. */
  readonly connections: Map<object, number>;
  /** The budget for reads and tasks. */
  readonly cost: CostBucket;
  /** Steps that the token may still start as a modest token. */
  readonly modest: CostBucket;
  /** Work served, divided by the weight: the token served least comes first (start-time fair queueing). */
  served: number;
}

export class TokenShares {
  readonly #limits: AdmissionLimits;
  readonly #shares = new Map<string, TokenShare>();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  get(token: string, now: number): TokenShare {
    const known = this.#shares.get(token);
    if (known !== undefined) return known;
    if (this.#shares.size >= SHARES_MAX) this.#evictIdle();
    const { costPerSecond, costBurst, modestStepsPerSecond, weights } = this.#limits;
    const share: TokenShare = {
      token,
      weight: Object.hasOwn(weights, token) ? (weights[token] ?? 1) : 1,
      running: zeroCounts(),
      outstanding: zeroCounts(),
      queued: 0,
      bodyBytes: 0,
      connections: new Map(),
      cost: new CostBucket(costPerSecond, costBurst, now),
      modest: new CostBucket(modestStepsPerSecond, modestStepsPerSecond / 10, now),
      served: 0,
    };
    this.#shares.set(token, share);
    return share;
  }

  /** Whether a token demands so little that its steps run before those of others. */
  isModest({ outstanding, modest }: TokenShare, kind: WorkKind, now: number): boolean {
    if (kind !== 'step' && kind !== 'live') return false;
    return outstanding.step + outstanding.live <= this.#limits.modestSteps && modest.balance(now) >= 1;
  }

  /** Evicts tokens without a request, the first seen first. */
  #evictIdle(): void {
    for (const [token, { outstanding }] of this.#shares) {
      if (WORK_KINDS.some((kind) => outstanding[kind] > 0)) continue;
      this.#shares.delete(token);
      return;
    }
  }
}

const zeroCounts = (): Record<WorkKind, number> => ({ live: 0, step: 0, read: 0, task: 0 });
