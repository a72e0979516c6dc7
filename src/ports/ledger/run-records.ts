/** A tree that has ended, and which end that is: later ends have higher places, several of one commit the same. */
export interface EndedTree {
  readonly tree_id: string;
  readonly place: number;
}

/** A tree whose records are written: each is the fold of the tree's first `seq` entries. */
export interface RecordedTree {
  readonly tree_id: string;
  /** 0 for a tree of which none can be written. */
  readonly seq: number;
}

/** The record of one run of a tree, as canonical JSON. */
export interface WrittenRecord {
  readonly tree_id: string;
  readonly run_id: string;
  readonly text: string;
}

/** What one transaction writes. */
export interface RecordBatch {
  /** Of trees that are not recorded. The last one of a run counts. */
  readonly records: readonly WrittenRecord[];
  /** The trees that are recorded with these, in the order in which they ended. */
  readonly trees: readonly (EndedTree & RecordedTree)[];
}

/**
 * The records of runs whose tree has ended (S4-08, S4-43): what their entries say, written down beside the ledger. The
 * entries decide: a record that is missing is folded, one that differs is found by verification. Those of a tree that
 * is recorded never change (S4-70).
 */
export interface RunRecordTable {
  /** Trees that have ended and are not recorded, in the order of their ends. What ends meanwhile may be missing. */
  unrecorded(): AsyncIterable<EndedTree>;
  /**
   * Written by the writer only.
   * @returns false, with nothing written, while another transaction of this store is open: then try again
   * @throws LedgerError with nothing written. The ledger goes on, unless its disk has failed
   */
  save(batch: RecordBatch): Promise<boolean>;
  /** All trees that are recorded. */
  trees(): AsyncIterable<RecordedTree>;
  /** How many of the tree's entries its records are the fold of; null where it is not recorded. */
  recorded(tree_id: string): Promise<number | null>;
  /** The record of a run as it was written last, or null. Not trusted, and not the whole story of a live tree. */
  load(tree_id: string, run_id: string): Promise<string | null>;
  /** How many runs of the tree have one. */
  count(tree_id: string): Promise<number>;
}
