// A reader's cache of a folded ledger, so that a fold need not begin at the first entry. It may be lost at any time,
// and a reader uses it only if it matches the ledger.

/** The state of everything after the first `size` entries of the log. */
export interface ReplayPoint {
  readonly size: number;
  /** The runs and trees that were live at that point; JSON. */
  readonly live: string;
  /** SHA-256 of that text. */
  readonly live_sha256: string;
  /** The runs and sessions that ended after the previous point, with the size of that point; JSON. */
  readonly ended: string;
  readonly ended_sha256: string;
}

/** The state of one tree at a point. */
export interface HistorySnapshot {
  readonly tree_id: string;
  readonly size: number;
  readonly text: string;
  readonly sha256: string;
}

export type EndedRuns = Pick<ReplayPoint, 'size' | 'ended' | 'ended_sha256'>;

export interface HistoryCache {
  /** The newest point at or before `size`. */
  point(size: number): Promise<ReplayPoint | null>;
  /** The runs that had ended by each point up to `size`, in order of the points. */
  ended(size: number): Promise<readonly EndedRuns[]>;
  snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null>;
  /**
   * Stores a point with the snapshots that it needs. It replaces a point of the same size.
   * @param after the size of the previous point, which must still be stored; 0 for the first point
   * @returns false, with nothing stored, if the previous point is gone or the cache cannot be written now
   */
  save(point: ReplayPoint, snapshots: readonly HistorySnapshot[], after: number): Promise<boolean>;
  /** Deletes everything. */
  clear(): Promise<void>;
  /**
   * Deletes everything physically, so that no content remains on disk. It also rejects points of readers that began to
   * fold earlier and would store them later.
   * @throws LedgerError LEDGER_UNAVAILABLE if that is impossible now
   */
  wipe(): Promise<void>;
  close(): Promise<void>;
}
