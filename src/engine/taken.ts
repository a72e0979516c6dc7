import type { Command, Decision } from '../kernel/input.js';
import type { InputMark, TreeAppend } from '../ports/ledger-store.js';
import type { Joining } from './batch.js';
import type { Committed, Submission } from './tree-engine.js';

/** An input that waits for its tick, and who waits for it. */
export interface Waiting {
  readonly tree_id: string;
  readonly submission: Submission;
  readonly resolve: (committed: Committed) => void;
  readonly reject: (error: unknown) => void;
}

/** What one input came to. It joins the batch whole, or not at all: a tree that broke half way leaves nothing (E4). */
export interface Taken extends Joining {
  readonly decisions: Decision[];
  readonly inputs: InputMark[];
  opened: TreeAppend['opened'];
  ended: boolean;
  readonly issued: Issued[];
  /** Whether the head of the ledger is to be written down behind it. */
  checkpoint: boolean;
  /** What to tell whom, once all of it is durable. */
  readonly told: (() => void)[];
}

/** A command that is performed when its decision is durable. */
export interface Issued {
  readonly tree_id: string;
  readonly command: Extract<Command, { kind: 'perform' }>;
}
