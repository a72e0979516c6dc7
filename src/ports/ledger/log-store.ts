// The one log over all trees: where entries stand, and how they get their places.

/** The log so far: `size` entries with RFC 6962 root `root`; `frontier` is its compact range. */
export interface LogHead {
  readonly size: number;
  /** Lower-case hex. The root of an empty log is SHA-256 of nothing. */
  readonly root: string;
  /** Hashes of the perfect subtrees, largest first, lower-case hex. */
  readonly frontier: readonly string[];
}

/** Where an entry stands in its tree. Content is addressed by it. */
export interface EntryPlace {
  readonly tree_id: string;
  readonly seq: number;
  /** Where it stands in the log, if the caller knows that: a store may look there first, and never relies on it. */
  readonly log_index?: number | null;
}

/**
 * An entry as it is stored in its tree. `log_index` is null while it waits to be integrated into the log. The bytes are
 * not trusted before they are verified.
 */
export interface TreeEntry extends EntryPlace {
  readonly log_index: number | null;
  readonly type: string;
  readonly text: string;
  readonly leaf_hash: string;
}

/** An entry with its place in the one log. */
export interface StoredEntry extends TreeEntry {
  readonly log_index: number;
}

/** Entries of one tree that are durable and have no place in the log yet. */
export interface PendingAppend {
  /** Numbers go up within a tree; two trees of one commit may share one. */
  readonly commit_no: number;
  readonly tree_id: string;
  /** Of the first entry. */
  readonly seq: number;
  readonly leaf_hashes: readonly string[];
}

/** Gives pending appends their places in the log. */
export interface Integration {
  /** The size the log must have now: the first entry gets this index. */
  readonly from: number;
  /** As `pending` gave them, in the order that they get in the log. Of each tree they are its oldest, without a gap. */
  readonly appends: readonly PendingAppend[];
  /** The log's head after them. */
  readonly head: LogHead;
}

/** How a cursor is read. */
export interface CursorOptions {
  /** Looked at before each page is read: where it is aborted, the cursor throws its reason and reads no more. */
  readonly signal?: AbortSignal;
}

/** The one log over all trees. A store may integrate each commit itself, or leave that to a sequencer. */
export interface LogStore {
  /** Covers the entries that are integrated. */
  head(): Promise<LogHead>;
  /**
   * All integrated entries in order of the log, from `fromIndex`; without it, from the first that is not archived.
   * @throws LedgerError LEDGER_ARCHIVED where `fromIndex` is below that
   */
  log(fromIndex?: number, options?: CursorOptions): AsyncIterable<StoredEntry>;
  /**
   * Appends that are durable in their tree and have no place in the log yet, the oldest first, at most `limit`. Always
   * empty where `commit` integrates.
   */
  pending(limit: number): Promise<readonly PendingAppend[]>;
  /**
   * Integrates appends, all or none of them: a compare-and-set on the log's size.
   * @returns false, with nothing written, when the log has another size
   * @throws LedgerError like `commit` @throws InvariantError for appends that are not the next of their tree, or a head
   *   of another size
   */
  integrate(integration: Integration): Promise<boolean>;
}
