// What a reader remembers of a ledger that it has folded, so that it need not begin at the first entry again. It may be
// lost at any time, and is believed only where it fits the ledger.

/** Where everything stood after the first `size` entries of the log. */
export interface ReplayPoint {
  readonly size: number;
  /** The runs and trees that lived then; JSON. */
  readonly live: string;
  /** Of the text. */
  readonly live_sha256: string;
  /** The runs and sessions that had ended since the point before, with the size of that; JSON. */
  readonly ended: string;
  readonly ended_sha256: string;
}

/** Where one tree stood at a point. */
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
  /** What had ended by each point up to `size`, in their order. */
  ended(size: number): Promise<readonly EndedRuns[]>;
  snapshot(tree_id: string, size: number): Promise<HistorySnapshot | null>;
  /**
   * Remembers a point, with the snapshots that it needs. It takes the place of one of the same size.
   * @param after the size of the point before: what had ended by then must be remembered too; 0 for the first
   * @returns false, with nothing kept, where that point is not there any more, or the cache cannot be written now
   */
  save(point: ReplayPoint, snapshots: readonly HistorySnapshot[], after: number): Promise<boolean>;
  /** Forgets everything. */
  clear(): Promise<void>;
  /**
   * The same, so that nothing of it is left where it lay; and what others have folded before this, and would have put
   * down after it, it does not take.
   * @throws LedgerError LEDGER_UNAVAILABLE where that cannot be now
   */
  wipe(): Promise<void>;
  close(): Promise<void>;
}
