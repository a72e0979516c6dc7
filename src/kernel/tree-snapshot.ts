import type { Command } from '../../machines/emission.js';
import type { AgentLink, OpeningInput } from '../core/contract/run/entry.js';
import type { Exposure } from '../core/contract/run/response.js';
import type { RunContext } from '../core/contract/run/run-context.js';
import type { Timer } from './decision.js';

/**
 * Everything needed to continue a tree in another process, as plain JSON. The policy comes from the artifacts of
 * `open`.
 */
export interface TreeSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly prev: string;
  readonly open: OpeningInput;
  readonly runs: readonly KnownRun[];
  readonly pending: readonly Command[];
  readonly timers: readonly Timer[];
  readonly unsettled: readonly UnsettledRun[];
  /** Mediated runs that have not ended. */
  readonly mediated: readonly RunContext[];
  /** The state of the parts of features, by their names. Absent: none has any. */
  readonly parts?: Readonly<Record<string, object>>;
  readonly machine: unknown;
}

/** A mediated run that ended while the outcome of its effect was unknown (D8). */
export interface UnsettledRun {
  readonly context: RunContext;
  readonly request_hash: string;
  /** Key of the effect: a successful attempt with the same key settles this run. */
  readonly idempotency_key: string;
}

/** An orchestrator or agent run. Only an agent run has an exposure and a link. */
export interface KnownRun {
  readonly context: RunContext;
  readonly exposure: Exposure | null;
  readonly link: AgentLink | null;
}
