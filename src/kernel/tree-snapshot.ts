import type { Command } from '../../machines/emission.js';
import type { AgentLink, OpenInput, OpenSessionInput } from '../contract/run/entry.js';
import type { Exposure } from '../contract/run/response.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { Timer } from './decision.js';

/** All that is needed to go on with a tree elsewhere: plain JSON. The policy comes from the artifacts of `open`. */
export interface TreeSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly prev: string;
  readonly open: OpenInput | OpenSessionInput;
  readonly runs: readonly KnownRun[];
  readonly pending: readonly Command[];
  readonly timers: readonly Timer[];
  readonly unsettled: readonly UnsettledRun[];
  /** Mediated runs that are under way. */
  readonly mediated: readonly RunContext[];
  /** Of a session: what its agent runs have changed. */
  readonly touched?: readonly (readonly [string, readonly string[]])[];
  readonly machine: unknown;
}

/** A mediated run that ended without anybody knowing what became of its effect (D8). */
export interface UnsettledRun {
  readonly context: RunContext;
  readonly request_hash: string;
  /** Of the effect: another attempt that is done with the same key settles it. */
  readonly idempotency_key: string;
}

/** An orchestrator or agent run; exposure and link are those of an agent. */
export interface KnownRun {
  readonly context: RunContext;
  readonly exposure: Exposure | null;
  readonly link: AgentLink | null;
}
