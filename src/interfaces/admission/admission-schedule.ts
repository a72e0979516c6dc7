// Decides which request runs, waits or is refused. A pure data structure: the caller passes the time and acts on the
// decisions.
//
// Invariants:
//   A1. At most `running` requests of a kind run, and at most `runningPerToken` of one token. Bodies that are being
//       read have at most `bodyBytes` together, and `bodyBytesPerToken` for one token.
//   A2. A connection has at most `requestsPerConnection` requests without a response, and a token at most
//       `connectionsPerToken` such connections.
//   A3. A waiting request eventually runs, is refused at its deadline, or is cancelled because its client left.
//   A4. Among the tokens whose requests may run, the one that was served least comes first.
//   A5. While a token with at most `modestSteps` outstanding steps works, all other work gets `bulkShare` of the time.

import { WORK_KINDS, type AdmissionLimits, type WorkKind } from './admission-limits.js';
import { BulkTimeShare } from './bulk-time-share.js';

/** The demand of a request. */
export interface WorkDemand {
  readonly token: string;
  /** The connection: any object that is the same for all requests of the connection. */
  readonly connection: object;
  readonly kind: WorkKind;
  /** The size limit of its body in bytes. */
  readonly bytes: number;
}

/** Why a request is refused: its connection, its token, or the whole service has reached a limit. */
export type RefusalCause = 'connection' | 'connections' | 'token' | 'service';
export interface AdmissionRefusal {
  readonly cause: RefusalCause;
  readonly retryMs: number;
}

/** `attached`: work that is not a request; only its slices are scheduled. */
type RequestState = 'queued' | 'running' | 'refused' | 'left' | 'attached';

/** A request, from its arrival until its work has ended. */
export interface ScheduledRequest extends WorkDemand {
  readonly share: TokenShare;
  readonly deadline: number;
  state: RequestState;
  refusal: AdmissionRefusal | null;
  /** Whether it runs as a request of a modest token. */
  modest: boolean;
}

/** Counts of requests so far by outcome, and of those that run and wait now. */
export interface AdmissionCounts {
  readonly admitted: Readonly<Record<WorkKind, number>>;
  readonly queued: Readonly<Record<WorkKind, number>>;
  readonly refused: Readonly<Record<RefusalCause, number>>;
  readonly running: number;
  readonly waiting: number;
}

export class AdmissionSchedule {
  readonly #limits: AdmissionLimits;
  readonly #shares: TokenShares;
  readonly #bulkShare: BulkTimeShare;
  readonly #waiting: Readonly<Record<WorkKind, FairQueue>>;
  /** Reads that have finished a slice and wait for the next one. */
  readonly #slices = new FairQueue();
  readonly #queues: readonly FairQueue[];
  readonly #running = { live: 0, step: 0, read: 0, task: 0 };
  readonly #byConnection = new Map<object, number>();
  #bodyBytes = 0;
  #served = 0;
  readonly #admitted = { live: 0, step: 0, read: 0, task: 0 };
  readonly #queued = { live: 0, step: 0, read: 0, task: 0 };
  readonly #refused = { connection: 0, connections: 0, token: 0, service: 0 };

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
    this.#shares = new TokenShares(limits);
    this.#bulkShare = new BulkTimeShare(limits);
    this.#waiting = { live: new FairQueue(), step: new FairQueue(), read: new FairQueue(), task: new FairQueue() };
    this.#queues = [...WORK_KINDS.map((kind) => this.#waiting[kind]), this.#slices];
  }

  /** The number of waiting requests and slices. */
  get waiting(): number {
    let waiting = 0;
    for (const { size } of this.#queues) waiting += size;
    return waiting;
  }

  get counts(): AdmissionCounts {
    const running = WORK_KINDS.reduce((sum, kind) => sum + this.#running[kind], 0);
    const waiting = WORK_KINDS.reduce((sum, kind) => sum + this.#waiting[kind].size, 0);
    return { admitted: this.#admitted, queued: this.#queued, refused: this.#refused, running, waiting };
  }

  /** Accepts a request. Its state says whether it runs at once, waits, or is refused. */
  enter(demand: WorkDemand, now: number): ScheduledRequest {
    const { token, kind } = demand;
    const share = this.#shares.get(token, now);
    const deadline = now + this.#limits.kinds[kind].queueMs;
    const request: ScheduledRequest = { ...demand, share, deadline, state: 'queued', refusal: null, modest: false };
    const cause = this.#causeOf(request);
    if (cause !== null) return this.#refuse(request, cause, now);
    this.#count(request);
    const queue = this.#waiting[kind];
    if (queue.sizeOf(token) === 0 && this.#canRun(request, now)) {
      this.#run(request, now);
    } else if (share.queued >= this.#limits.queuedPerToken) {
      this.leave(request, now);
      this.#refuse(request, 'token', now);
    } else if (this.waiting >= this.#limits.queued) {
      this.leave(request, now);
      this.#refuse(request, 'service', now);
    } else {
      queue.push(request);
      share.queued += 1;
      this.#queued[kind] += 1;
    }
    return request;
  }

  /** Schedules work of a token that is not a request: it uses no slot, and its slices are charged. */
  attach(token: string, now: number): ScheduledRequest {
    const share = this.#shares.get(token, now);
    const demand = { token, connection: share, kind: 'read', bytes: 0 } as const;
    return { ...demand, share, deadline: Infinity, state: 'attached', refusal: null, modest: false };
  }

  /** Removes a request whose work has ended, or whose client left while it waited. */
  leave(request: ScheduledRequest, now: number): void {
    const { share, kind, connection, state, bytes } = request;
    if (state !== 'running' && state !== 'queued') return;
    request.state = 'left';
    this.#slices.remove(request);
    if (this.#waiting[kind].remove(request)) share.queued -= 1;
    if (state === 'running') {
      share.running[kind] -= 1;
      this.#running[kind] -= 1;
      share.bodyBytes -= bytes;
      this.#bodyBytes -= bytes;
      if (request.modest) this.#bulkShare.end(share.token, now);
    }
    share.outstanding[kind] -= 1;
    const left = (share.connections.get(connection) ?? 1) - 1;
    if (left === 0) share.connections.delete(connection);
    else share.connections.set(connection, left);
    const outstanding = (this.#byConnection.get(connection) ?? 1) - 1;
    if (outstanding === 0) this.#byConnection.delete(connection);
    else this.#byConnection.set(connection, outstanding);
  }

  /** Charges work of a running request. @param ms its duration */
  charge(request: ScheduledRequest, ms: number, now: number): void {
    request.share.cost.spend(ms, now);
    request.share.served += ms / request.share.weight;
    this.#bulkShare.spend(request.token, { cost: ms, now });
  }

  /** Ends a slice of a read. @returns whether it may continue at once; else `next` returns it when it may */
  slice(request: ScheduledRequest, ms: number, now: number): boolean {
    this.charge(request, ms, now);
    if (!isWorking(request)) return true;
    if (this.#slices.size === 0 && this.#bulkShare.isOpen(request.token, now)) return true;
    this.#slices.push(request);
    return false;
  }

  /** The next request that may run or continue, or is refused at its deadline; null if no request waits. */
  next(now: number): ScheduledRequest | null {
    const expired = this.#refuseExpired(now);
    if (expired !== null) return expired;
    let first: ScheduledRequest | null = null;
    for (const queue of this.#queues) {
      for (const request of queue.heads()) {
        const isFirst = first === null || request.share.served < first.share.served;
        if (isFirst && this.#canContinue(request, now)) first = request;
      }
    }
    if (first === null) return null;
    if (this.#slices.remove(first)) return first;
    this.#waiting[first.kind].remove(first);
    first.share.queued -= 1;
    this.#run(first, now);
    return first;
  }

  /** The earliest time at which `next` may return another request; null if nothing waits. */
  nextWakeTime(now: number): number | null {
    let at: number | null = null;
    for (const queue of this.#queues) {
      for (const request of queue.heads()) {
        const when = this.#wakeTimeOf(request, now);
        if (at === null || when < at) at = when;
      }
    }
    return at;
  }

  #wakeTimeOf(request: ScheduledRequest, now: number): number {
    if (isWorking(request)) return this.#bulkShare.nextOpening(now);
    const { share, kind, token, deadline } = request;
    if (!this.#hasRoom(request, now)) return deadline;
    const wait = isCharged(kind) ? share.cost.waitFor(0, now) : 0;
    const open = this.#bulkShare.isOpen(token, now)
      ? now + wait
      : Math.max(now + wait, this.#bulkShare.nextOpening(now));
    return Math.min(deadline, Math.max(now + 1, open));
  }

  #refuseExpired(now: number): ScheduledRequest | null {
    for (const kind of WORK_KINDS) {
      const queue = this.#waiting[kind];
      if (queue.size === 0) continue;
      for (const request of queue.heads()) {
        if (request.deadline > now) continue;
        const cause = this.#isTokenFull(request, now) ? 'token' : 'service';
        this.leave(request, now);
        return this.#refuse(request, cause, now);
      }
    }
    return null;
  }

  #refuse(request: ScheduledRequest, cause: RefusalCause, now: number): ScheduledRequest {
    request.state = 'refused';
    request.refusal = { cause, retryMs: Math.max(1_000, request.share.cost.waitFor(0, now)) };
    this.#refused[cause] += 1;
    return request;
  }

  #causeOf({ connection, share }: ScheduledRequest): RefusalCause | null {
    const { requestsPerConnection, connectionsPerToken } = this.#limits;
    if ((this.#byConnection.get(connection) ?? 0) >= requestsPerConnection) return 'connection';
    const isNew = !share.connections.has(connection);
    return isNew && share.connections.size >= connectionsPerToken ? 'connections' : null;
  }

  #count({ connection, share, kind }: ScheduledRequest): void {
    share.outstanding[kind] += 1;
    share.connections.set(connection, (share.connections.get(connection) ?? 0) + 1);
    this.#byConnection.set(connection, (this.#byConnection.get(connection) ?? 0) + 1);
  }

  #canContinue(request: ScheduledRequest, now: number): boolean {
    return isWorking(request) ? this.#bulkShare.isOpen(request.token, now) : this.#canRun(request, now);
  }

  #canRun(request: ScheduledRequest, now: number): boolean {
    if (!this.#hasRoom(request, now)) return false;
    const { share, kind, token } = request;
    if (this.#shares.isModest(share, kind, now)) return true;
    return (!isCharged(kind) || share.cost.balance(now) >= 0) && this.#bulkShare.isOpen(token, now);
  }

  #hasRoom(request: ScheduledRequest, now: number): boolean {
    const { share, kind, bytes } = request;
    const { kinds, bodyBytes, bodyBytesPerToken } = this.#limits;
    if (this.#running[kind] >= kinds[kind].running) return false;
    if (share.running[kind] >= this.#runningMax(request, now)) return false;
    // A body over the limit is read while no other body is.
    if (this.#bodyBytes > 0 && this.#bodyBytes + bytes > bodyBytes) return false;
    return share.bodyBytes === 0 || share.bodyBytes + bytes <= bodyBytesPerToken;
  }

  /**
   * How many requests of this kind the token may run: fewer steps while others work, who would wait for all of them.
   */
  #runningMax({ kind, token }: ScheduledRequest, now: number): number {
    const { kinds, bulkSteps } = this.#limits;
    const { runningPerToken } = kinds[kind];
    return kind === 'step' && this.#bulkShare.isShared(token, now)
      ? Math.min(runningPerToken, bulkSteps)
      : runningPerToken;
  }

  #isTokenFull(request: ScheduledRequest, now: number): boolean {
    const { share, kind, bytes, token } = request;
    const { bodyBytesPerToken } = this.#limits;
    if (share.running[kind] >= this.#runningMax(request, now)) return true;
    if (share.bodyBytes > 0 && share.bodyBytes + bytes > bodyBytesPerToken) return true;
    return (isCharged(kind) && share.cost.balance(now) < 0) || !this.#bulkShare.isOpen(token, now);
  }

  #run(request: ScheduledRequest, now: number): void {
    const { share, kind, token, bytes } = request;
    const { cost } = this.#limits.kinds[kind];
    request.state = 'running';
    request.modest = this.#shares.isModest(share, kind, now);
    share.running[kind] += 1;
    this.#running[kind] += 1;
    share.bodyBytes += bytes;
    this.#bodyBytes += bytes;
    this.#admitted[kind] += 1;
    // An idle token accumulates no credit: it starts level with the others.
    this.#served = Math.max(this.#served, share.served);
    share.served = this.#served + cost / share.weight;
    if (request.modest) {
      share.modest.spend(1, now);
      this.#bulkShare.begin(token);
      return;
    }
    if (isCharged(kind)) share.cost.spend(cost, now);
    this.#bulkShare.spend(token, { cost, now });
  }
}

const isWorking = ({ state }: ScheduledRequest): boolean => state === 'running' || state === 'attached';

/** Reads and tasks are charged to their token; steps have limits of their own in the run. */
const isCharged = (kind: WorkKind): boolean => kind === 'read' || kind === 'task';

/** Waiting requests by token, those of a token in order of arrival. */
class FairQueue {
  readonly #tokens = new Map<string, Set<ScheduledRequest>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The number of waiting requests of a token. */
  sizeOf(token: string): number {
    return this.#tokens.get(token)?.size ?? 0;
  }

  push(request: ScheduledRequest): void {
    let requests = this.#tokens.get(request.token);
    if (requests === undefined) this.#tokens.set(request.token, (requests = new Set()));
    if (requests.has(request)) return;
    requests.add(request);
    this.#size += 1;
  }

  /** @returns whether the request was in the queue */
  remove(request: ScheduledRequest): boolean {
    const requests = this.#tokens.get(request.token);
    if (requests?.delete(request) !== true) return false;
    this.#size -= 1;
    if (requests.size === 0) this.#tokens.delete(request.token);
    return true;
  }

  /** The first request of each token. */
  *heads(): Generator<ScheduledRequest> {
    for (const requests of this.#tokens.values()) {
      for (const request of requests) {
        yield request;
        break;
      }
    }
  }
}

/** Limit of the stored tokens; idle tokens are evicted beyond it. */
const SHARES_MAX = 4_096;

/** The use of one token. */
interface TokenShare {
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

class TokenShares {
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

/** A token bucket. It may be overdrawn: a cost above the balance is charged, and the next request waits. */
export class CostBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #balance: number;
  #at: number;

  /** @param perSecond the refund per second @param burst the maximum and initial balance */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#balance = burst;
    this.#at = now;
  }

  balance(now: number): number {
    const passed = Math.max(0, now - this.#at);
    this.#at += passed;
    this.#balance = Math.min(this.#burst, this.#balance + passed * this.#perMs);
    return this.#balance;
  }

  spend(cost: number, now: number): void {
    this.#balance = this.balance(now) - cost;
  }

  /** Milliseconds until the balance is `wanted`; 0 if it is now. */
  waitFor(wanted: number, now: number): number {
    const missing = wanted - this.balance(now);
    return missing <= 0 ? 0 : Math.ceil(missing / this.#perMs);
  }
}
