// The one log over all trees: the positions of entries, and their integration.

/** The log so far: `size` entries with RFC 6962 root `root`; `frontier` is its compact range. */
export interface LogHead {
  readonly size: number;
  /** Lower-case hex. The root of an empty log is SHA-256 of nothing. */
  readonly root: string;
  /** Hashes of the perfect subtrees, largest first, lower-case hex. */
  readonly frontier: readonly string[];
}

/** The position of an entry in its tree. Content is addressed by it. */
export interface EntryPlace {
  readonly tree_id: string;
  readonly seq: number;
  /** The log index, if the caller knows it: a hint that a store may use for its lookup but must not rely on. */
  readonly log_index?: number | null;
}

/**
 * An entry as stored in its tree. `log_index` is null until the entry is integrated into the log. Its bytes are not
 * trusted before they are verified.
 */
export interface TreeEntry extends EntryPlace {
  readonly log_index: number | null;
  readonly type: string;
  readonly text: string;
  readonly leaf_hash: string;
}

/** An entry with its index in the log. */
export interface StoredEntry extends TreeEntry {
  readonly log_index: number;
}

/** Durable entries of one tree that are not integrated into the log yet. */
export interface PendingAppend {
  /** Increases within a tree; two trees of one commit may share a number. */
  readonly commit_no: number;
  readonly tree_id: string;
  /** Sequence number of the first entry. */
  readonly seq: number;
  readonly leaf_hashes: readonly string[];
}

/** Integrates pending appends into the log. */
export interface Integration {
  /** The size that the log must have now: the first entry gets this index. */
  readonly from: number;
  /**
   * As `pending` returned them, in the order that they get in the log. They are the oldest of each tree, without a gap.
   */
  readonly appends: readonly PendingAppend[];
  /** The log's head after these appends. */
  readonly head: LogHead;
}

/** Options of a cursor. */
export interface CursorOptions {
  /** Checked before each page is read: if aborted, the cursor throws its reason and reads no more. */
  readonly signal?: AbortSignal;
}

/** The one log over all trees. A store may integrate each commit itself, or leave that to a sequencer. */
export interface LogStore {
  /** The head over the integrated entries. */
  head(): Promise<LogHead>;
  /**
   * All integrated entries in log order, from `fromIndex`; by default from the first that is not archived.
   * @throws LedgerError LEDGER_ARCHIVED if `fromIndex` is below that
   */
  log(fromIndex?: number, options?: CursorOptions): AsyncIterable<StoredEntry>;
  /**
   * Durable appends that are not integrated yet, oldest first, at most `limit`. Always empty if `commit` integrates.
   */
  pending(limit: number): Promise<readonly PendingAppend[]>;
  /**
   * Integrates all of the appends or none: a compare-and-set on the log's size.
   * @returns false, with nothing written, if the log has another size
   * @throws LedgerError like `commit` @throws InvariantError for appends that are not the next of their tree, or a head
   * of another size
   */
  integrate(integration: Integration): Promise<boolean>;
  /** The leaf hashes of at most `limit` integrated entries from this index on, without their texts. */
  leafHashes?(fromIndex: number, limit: number): Promise<readonly string[]>;
}
