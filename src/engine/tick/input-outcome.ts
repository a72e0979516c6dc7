import type { Command, Decision } from '../../kernel/decision.js';
import type { InputMark, StoredSnapshot, TreeAppend, TreeRecoveryHint } from '../../ports/ledger/ledger-store.js';
import type { BatchContribution } from './batch-builder.js';
import type { SubmissionResult, Submission } from '../tree-engine.js';

/** An input that waits for its tick, and who waits for it. */
export interface QueuedInput {
  readonly tree_id: string;
  readonly submission: Submission;
  readonly resolve: (committed: SubmissionResult) => void;
  readonly reject: (error: unknown) => void;
}

/** What one input came to. It joins the batch whole, or not at all: a tree that broke half way leaves nothing (E4). */
export interface InputOutcome extends BatchContribution {
  readonly decisions: Decision[];
  readonly inputs: InputMark[];
  opened: TreeAppend['opened'];
  ended: boolean;
  rest: TreeRecoveryHint | null;
  snapshot: StoredSnapshot | null;
  readonly issued: IssuedCommand[];
  /** Whether the head of the ledger is to be written down behind it. */
  checkpoint: boolean;
  /** What to tell whom, once all of it is durable. */
  readonly afterCommit: (() => void)[];
}

/** A command that is performed when its decision is durable. */
export interface IssuedCommand {
  readonly tree_id: string;
  readonly command: Extract<Command, { kind: 'perform' }>;
}
