import type { RecordedTree, StoredRecords } from '../../../core/ledger/readable-ledger.js';

/**
 * A tree that has ended, and the position of its end: later ends have higher positions; ends of one commit may share
 * one.
 */
export interface EndedTree {
  readonly tree_id: string;
  readonly place: number;
}

/** The record of one run of a tree, as canonical JSON. */
export interface WrittenRecord {
  readonly tree_id: string;
  readonly run_id: string;
  readonly text: string;
}

/** The records and trees of one transaction. */
export interface RecordBatch {
  /** Records of trees that are not recorded yet. If a run occurs twice, the last record counts. */
  readonly records: readonly WrittenRecord[];
  /** The trees that these records complete, in the order in which they ended. */
  readonly trees: readonly (EndedTree & RecordedTree)[];
}

/**
 * The records of runs whose tree has ended (S4-08, S4-43), derived from the ledger's entries and stored outside the
 * log. The entries are authoritative: a missing record is folded, and verification reports one that differs. Records of
 * a recorded tree never change (S4-70).
 */
export interface RunRecordTable extends StoredRecords {
  /** Ended trees that are not recorded, in the order of their ends. Trees that end meanwhile may be missing. */
  unrecorded(): AsyncIterable<EndedTree>;
  /**
   * Only a writer calls this. Of several workers that record a tree, the first one writes; for the others there is
   * nothing to do.
   * @returns false, with nothing written, while another transaction of this store is open; try again then
   * @throws LedgerError with nothing written. The ledger continues to work, unless its disk has failed
   */
  save(batch: RecordBatch): Promise<boolean>;
  /** How many of the tree's entries its records cover; null if the tree is not recorded. */
  recorded(tree_id: string): Promise<number | null>;
}
