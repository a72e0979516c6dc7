import type { Artifact } from '../contract/artifact-ref.js';
import type { RecordedInput, SealedEntry, ProposalMark } from '../contract/run/entry.js';
import type { Command, RunTermination, Reply } from '../../machines/emission.js';

export type { Command, RunTermination, Reply };

/** One input of a tree: what the ledger records of it, and the content that its references name. */
export interface TreeInput {
  readonly recorded: RecordedInput;
  /**
   * Of `open`: lanes, roles, actions, machines. Of `proposal`: the raw payload and, where the proposal repeats an
   * earlier one, the recorded response. Of `result`: the result as JSON. In this order, else none.
   */
  readonly materials: readonly Artifact[];
  /** Of what the engine itself made, out of an answer that it has checked: it has the shape of an input. */
  readonly checked?: boolean;
}

export interface Timer {
  readonly run_id: string;
  readonly at: string;
}

/** What the kernel answers to one input. The first entry is the input itself; the others are what it caused. */
export interface Decision {
  readonly entries: readonly SealedEntry[];
  /** The content that the input brought. */
  readonly artifacts: readonly Artifact[];
  readonly commands: readonly Command[];
  readonly replies: readonly Reply[];
  readonly timers: readonly Timer[];
  readonly marks: readonly ProposalMark[];
  /** The runs that this input brought to an end; their timers are off. */
  readonly ended: readonly RunTermination[];
  /** The lifecycle has no edge for what was asked: nothing moved, and the audit says so (C50). */
  readonly refused: boolean;
}
