import type { Command, Decision } from '../../kernel/decision.js';
import type { InputMark, StoredSnapshot, TreeAppend, TreeRecoveryHint } from '../ports/ledger/ledger-store.js';
import type { BatchContribution } from './batch-builder.js';
import type { SubmissionResult, Submission } from '../tree-engine.js';

/** An input in the queue, with the promise of its submitter. @see LedgerEngine, `#enqueue` */
export interface QueuedInput {
  readonly tree_id: string;
  readonly submission: Submission;
  readonly resolve: (committed: SubmissionResult) => void;
  readonly reject: (error: unknown) => void;
  /** When it was queued, by the clock of the observer; 0 without one. */
  readonly queuedAt: number;
}

/**
 * The outcome of one input. It joins the batch whole or not at all: a tree that fails halfway leaves nothing (E4 of
 * ledger-engine.ts).
 */
export interface InputOutcome extends BatchContribution {
  readonly item: QueuedInput;
  readonly decisions: Decision[];
  readonly inputs: InputMark[];
  opened: TreeAppend['opened'];
  ended: boolean;
  recoveryHint: TreeRecoveryHint | null;
  snapshot: StoredSnapshot | null;
  readonly issued: IssuedCommand[];
  /** Whether to write the ledger's head after this input. */
  checkpoint: boolean;
  /** What the submitter gets once the batch is durable. */
  result: SubmissionResult;
}

/** A command to run once its decision is durable: an effect, or questions to decision points. */
export interface IssuedCommand {
  readonly tree_id: string;
  readonly command: Command;
}
