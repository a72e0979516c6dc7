import type { Command } from '../../machines/emission.js';
import type { AgentLink, OpenInput } from '../contract/entry.js';
import type { Exposure } from '../contract/response.js';
import type { RunContext } from '../contract/run-context.js';
import type { Timer } from './input.js';

/** All that is needed to go on with a tree elsewhere: plain JSON. The policy comes from the artifacts of `open`. */
export interface TreeSnapshot {
  readonly tree_id: string;
  readonly seq: number;
  readonly prev: string;
  readonly open: OpenInput;
  readonly runs: readonly KnownRun[];
  readonly pending: readonly Command[];
  readonly timers: readonly Timer[];
  readonly machine: unknown;
}

/** An orchestrator or agent run; exposure and link are those of an agent. */
export interface KnownRun {
  readonly context: RunContext;
  readonly exposure: Exposure | null;
  readonly link: AgentLink | null;
}
