import type { Command, Decision } from '../../kernel/decision.js';
import type { InputMark, StoredSnapshot, TreeAppend, TreeRecoveryHint } from '../ports/ledger/ledger-store.js';
import type { BatchContribution } from './batch-builder.js';
import type { SubmissionResult, Submission } from '../tree-engine.js';
import { caseChangedError } from '../engine-errors.js';

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

/**
 * The inputs of trees that another worker has extended: they are decided again. An input that contains the label of a
 * case is rejected with all inputs of its tree, because only the caller can make it again.
 */
export function lostInputs(outcomes: readonly InputOutcome[], overtaken: ReadonlySet<string>): readonly QueuedInput[] {
  const lost = outcomes.filter(({ tree_id }) => overtaken.has(tree_id));
  const stale = new Set(lost.flatMap(({ tree_id, item }) => (item.submission.caseLabel ? [tree_id] : [])));
  for (const { tree_id, item } of lost) if (stale.has(tree_id)) item.reject(caseChangedError());
  return lost.flatMap(({ tree_id, item }) => (stale.has(tree_id) ? [] : [item]));
}
