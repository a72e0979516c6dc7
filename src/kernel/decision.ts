import type { Artifact } from '../core/contract/artifact-ref.js';
import type { RecordedInput, SealedEntry, ProposalMark } from '../core/contract/run/entry.js';
import type { Command, RunTermination, Reply } from '../../machines/emission.js';

export type { Command, RunTermination, Reply };

/** One input of a tree: what the ledger records, and the artifacts that its references name. */
export interface TreeInput {
  readonly recorded: RecordedInput;
  /**
   * In this order. For `open`: lanes, roles, actions, machines. For `proposal`: the raw payload and, if the proposal
   * repeats an earlier one, the recorded response. For `result`: the result as JSON. Empty for every other kind.
   */
  readonly materials: readonly Artifact[];
  /** True if the engine built this input from a validated answer, so its schema need not be validated again. */
  readonly checked?: boolean;
}

export interface Timer {
  readonly run_id: string;
  readonly at: string;
}

/** The kernel's output for one input. The first entry is the input itself; the rest are its consequences. */
export interface Decision {
  readonly entries: readonly SealedEntry[];
  /** The content of the input. */
  readonly artifacts: readonly Artifact[];
  readonly commands: readonly Command[];
  readonly replies: readonly Reply[];
  readonly timers: readonly Timer[];
  readonly marks: readonly ProposalMark[];
  /** The runs that this input ended. Their timers are cancelled. */
  readonly ended: readonly RunTermination[];
  /** True if the lifecycle has no transition for the input: no state changed, and an audit event records it (C50). */
  readonly refused: boolean;
}
