// Stores replay points while the ledger grows (decision 0008), so that the first read of a past state is as fast as
// later ones.
//
//   P1. Nothing is folded: the states of trees come from the trees that the engine has in memory, at the commit where a
//       point is due. Only a tree that has left memory is restored, one at a time.
//   P2. A tree gets a snapshot when it has grown by some entries, not at each point: a reader folds those itself. So a
//       point costs a bounded number of snapshots, however many trees are live.
//   P3. A commit never waits for the disk here: points are written after its turn, without a flush. A failure here does
//       not concern the ledger; it only slows the next read.
//   P4. Points continue after the last one that fits the ledger, regardless of its writer. The entries since then,
//       after a crash or from an earlier process, are read again if they are about one interval. If they are far more,
//       a reader must have made the points first.
//   P5. If commits do not integrate their entries into the log, no point is made here, because trees in memory are
//       ahead of the log. A reader makes the points.
//   P6. Most commits are only queued, and followed together later. What is queued is followed before the state of a
//       tree is used, because a tree in memory is at the newest commit.

import type { Entry, SealedEntry } from '../../core/contract/run/entry.js';
import { BackgroundJob } from '../../engine/background-job.js';
import type { CommitObserver } from '../../engine/tree-engine.js';
import type { Clock } from '../../engine/ports/clock.js';
import { LedgerError } from '../../core/errors.js';
import type { Tree } from '../../kernel/tree.js';
import type { HistoryCache, ReplayPoint, HistorySnapshot } from '../../core/ledger/history-cache.js';
import type { Batch, CommitResult, LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import type { Log } from '../../engine/ports/log.js';
import { NOTHING_ARCHIVED, ReplayPointBuilder } from '../../kernel/replay/ledger-state.js';
import { readArchivedPrefix, findNewestPoint, POINT_ENTRIES } from '../../kernel/replay/state-at.js';
import { parseStoredEntry } from './stored-entry.js';

/** A snapshot is made when a tree has grown by this number of entries. */
const SNAPSHOT_GROWTH_ENTRIES = 64;
/** What is queued is followed when this many entries follow its first commit. */
const FOLLOW_ENTRIES = 256;
/** Limit of entries to read again, which takes a second. */
const REREAD_ENTRIES_MAX = 65_536;
/** Closing makes a point if there are as many entries since the last one. */
const CLOSE_ENTRIES = 1_024;

export interface ReplayPointRecorderOptions {
  readonly store: Pick<LedgerStore, 'log' | 'head' | 'archives'>;
  readonly cache: HistoryCache;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs a task after the current turn. */
  readonly defer: (task: () => void) => void;
  readonly pointEntries?: number;
}

type TreesInMemory = (tree_id: string) => Tree | null;
/** Gives access to a tree, restored if it is not in memory, while nothing is decided. */
type TreeAccess = <T>(tree_id: string, work: (tree: Tree | null) => T) => Promise<T>;

export class ReplayPointRecorder implements CommitObserver {
  readonly #options: ReplayPointRecorderOptions;
  readonly #interval: number;
  /** Null before `open`, and from `close` on: then no tree is restored. */
  #accessTree: TreeAccess | null = null;
  #trees: TreesInMemory = () => null;
  /** What a commit does: it waits for the size at which a point is due, is queued behind a reading, or is followed. */
  #mode: 'waiting' | 'reading' | 'following' = 'waiting';
  #begin = NOTHING_ARCHIVED;
  #book = new ReplayPointBuilder();
  /** The size at the last point; while waiting, the size of the ledger at which the next one is due. */
  #point = 0;
  #due = Infinity;
  /** Commits that are not followed yet: all while it reads, then those of about `FOLLOW_ENTRIES` entries. */
  #queued: LogAppends[] = [];
  /** Trees that changed since they were last added to a point. */
  readonly #changed = new Set<string>();
  /** The lengths of trees at their last snapshots. */
  readonly #snapshotSizes = new Map<string, number>();
  #snapshots: HistorySnapshot[] = [];
  /** Reads, restores and writes, in the order of `#tasks`. */
  readonly #job: BackgroundJob;
  #tasks: Task[] = [];

  constructor(options: ReplayPointRecorderOptions) {
    this.#options = options;
    this.#interval = options.pointEntries ?? POINT_ENTRIES;
    // Each task reports its own failure.
    this.#job = new BackgroundJob({ clock: options.clock, run: () => this.#runTasks(), onFailed: () => null });
  }

  /** Starts. The store must be locked by this process, and no commit may be in flight. */
  async open(accessTree: TreeAccess): Promise<void> {
    this.#accessTree = accessTree;
    const { store, cache } = this.#options;
    const { size } = await store.head();
    this.#begin = await readArchivedPrefix(store);
    this.#book = new ReplayPointBuilder(this.#begin);
    // A shorter ledger has no point.
    const point = size < this.#interval ? null : await cache.point(size);
    this.#due = (point?.size ?? this.#begin.size) + this.#interval;
    this.#mode = size === 0 ? 'following' : 'waiting';
    this.#job.start(0);
    if (size >= this.#due) this.#startReading(size);
  }

  onCommitted(batch: Batch, result: CommitResult, trees: TreesInMemory): void {
    this.#trees = trees;
    this.#catchErrors(() => {
      const appends = logAppendsOf(batch, result);
      if (appends !== null) this.#follow(appends);
      else this.#pauseUntil(Infinity, null);
    });
  }

  onEvict(tree: Tree): void {
    if (this.#mode !== 'following') return;
    this.#catchErrors(() => {
      this.#followQueued();
      if (this.#changed.has(tree.tree_id)) this.#place(tree);
    });
  }

  #catchErrors(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#pauseUntil(this.#book.size, error);
    }
  }

  #follow(appends: LogAppends): void {
    if (this.#mode !== 'waiting') this.#queued.push(appends);
    else if (appends.size >= this.#due) this.#startReading(appends.size);
    if (this.#mode !== 'following') return;
    const isDue = appends.size - this.#point >= this.#interval;
    const [oldest = appends] = this.#queued;
    if (isDue || appends.size - oldest.size >= FOLLOW_ENTRIES) this.#followQueued();
    if (isDue) this.#recordPoint();
  }

  #followQueued(): void {
    for (const appends of this.#queued.splice(0)) this.#addAppends(appends);
  }

  /**
   * Discards its state, which may hold content that is to be erased, and continues from the stored points by reading.
   */
  async forget(): Promise<void> {
    this.#pauseUntil(this.#book.size, null);
    await this.#job.settled();
  }

  /** Stops at once: trees in memory may be ahead of the ledger. */
  stop(): void {
    this.#job.stop();
    this.#waitFor(Infinity);
  }

  /** Resumes after `stop` from the last point, when work in flight has ended. Does nothing after `close`. */
  restart(): void {
    if (!this.#job.isStopped) return;
    this.#job.restart(0);
    this.#enqueue(Infinity, () => {
      this.#waitFor(this.#point + this.#interval);
      return Promise.resolve();
    });
  }

  /** Makes a last point if it saves enough work. Nothing may be committed any more. */
  async close(): Promise<void> {
    // No tree is restored any more: a point that would need one is not made.
    this.#accessTree = null;
    if (this.#mode === 'following') {
      this.#catchErrors(() => {
        this.#followQueued();
        if (this.#book.size - this.#point >= Math.min(CLOSE_ENTRIES, this.#interval)) this.#recordPoint();
      });
    }
    this.#waitFor(Infinity);
    await this.#job.finish();
  }

  /** Runs a task after those before it. If it fails, no point is made until an interval after the size `until`. */
  #enqueue(until: number, run: Task['run']): void {
    this.#tasks.push({ run, until });
    this.#job.request(0);
  }

  async #runTasks(): Promise<null> {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) {
      try {
        await task.run();
      } catch (error) {
        this.#pauseUntil(task.until, error);
      }
    }
    return null;
  }

  /** Reads from the last point up to `size`; later commits are queued behind it. */
  #startReading(size: number): void {
    this.#mode = 'reading';
    this.#enqueue(size, () => this.#readUpTo(size));
  }

  async #readUpTo(size: number): Promise<void> {
    const { store, cache } = this.#options;
    const point = await findNewestPoint(store, cache, size, this.#begin.size);
    this.#point = point?.size ?? this.#begin.size;
    if (size - this.#point > REREAD_ENTRIES_MAX) {
      this.#pauseUntil(size, null);
      return;
    }
    this.#reset();
    if (point !== null) this.#book.resumeFrom(point);
    for await (const stored of store.log(this.#point)) {
      if (this.#mode !== 'reading' || stored.log_index >= size) break;
      this.#addEntry(parseStoredEntry(stored), stored.log_index);
      this.#book.advanceTo(stored.log_index + 1, stored.leaf_hash);
    }
    if (this.#mode !== 'reading') return;
    this.#followQueued();
    this.#mode = 'following';
  }

  /** Makes no point until the log has grown by another interval. */
  #pauseUntil(size: number, error: unknown): void {
    if (this.#job.isStopped) return;
    this.#waitFor(size + this.#interval);
    if (error === null) return;
    this.#options.log.warn('replay points could not be stored; a reader can make them', { error });
  }

  /** Discards what it has followed, until the log has the size `due`. */
  #waitFor(due: number): void {
    this.#mode = 'waiting';
    this.#due = due;
    this.#queued = [];
    this.#reset();
  }

  #reset(): void {
    this.#book = new ReplayPointBuilder(this.#begin);
    this.#changed.clear();
    this.#snapshotSizes.clear();
    this.#snapshots = [];
  }

  #addAppends({ size, placed }: LogAppends): void {
    let leaf_hash = '';
    for (const { first, entries } of placed) {
      for (const [place, { entry }] of entries.entries()) this.#addEntry(entry, first + place);
      leaf_hash = entries.at(-1)?.leaf_hash ?? leaf_hash;
    }
    this.#book.advanceTo(size, leaf_hash);
  }

  #addEntry(entry: Entry, log_index: number): void {
    this.#book.recordEntry(entry, log_index);
    this.#changed.add(entry.tree_id);
  }

  /**
   * Makes a point if the state of every live tree is known; otherwise restores the missing trees, for the next commit.
   */
  #recordPoint(): void {
    const missing: string[] = [];
    for (const tree_id of this.#changed) {
      const tree = this.#book.tree(tree_id) === null ? null : this.#trees(tree_id);
      if (tree !== null) this.#place(tree);
      else if (this.#book.tree(tree_id) === null) this.#drop(tree_id);
      else missing.push(tree_id);
    }
    if (missing.length > 0) this.#restore(missing);
    else this.#save();
  }

  #place(tree: Tree): void {
    const { tree_id } = tree;
    this.#book.placeTree(tree);
    this.#changed.delete(tree_id);
    if (this.#book.tree(tree_id) === null) this.#drop(tree_id);
    else if (tree.head.seq - (this.#snapshotSizes.get(tree_id) ?? 0) >= SNAPSHOT_GROWTH_ENTRIES) {
      const snapshot = this.#book.createSnapshot(tree);
      if (snapshot !== null) this.#snapshots.push(snapshot);
      this.#snapshotSizes.set(tree_id, tree.head.seq);
    }
  }

  #drop(tree_id: string): void {
    this.#changed.delete(tree_id);
    this.#snapshotSizes.delete(tree_id);
  }

  /** Restores trees, unless another task is in progress: the next commit finds what is still missing. */
  #restore(missing: readonly string[]): void {
    const accessTree = this.#accessTree;
    if (this.#job.isRunning || accessTree === null) return;
    this.#enqueue(this.#book.size, async () => {
      for (const tree_id of missing) {
        await accessTree(tree_id, (tree) => {
          if (tree === null || this.#mode !== 'following') return;
          this.#followQueued();
          this.#place(tree);
        }).catch((error: unknown) => {
          this.#loseTree(tree_id, error);
        });
      }
    });
  }

  /** The content of this tree was erased: from now on only its entries count, as for readers. */
  #loseTree(tree_id: string, error: unknown): void {
    if (!(error instanceof LedgerError) || error.code !== 'LEDGER_ERASED') throw error;
    if (this.#mode !== 'following') return;
    this.#followQueued();
    this.#book.markUnfoldable(tree_id);
    this.#drop(tree_id);
  }

  #save(): void {
    const point = this.#book.createPoint();
    const snapshots = this.#snapshots.splice(0);
    const after = this.#point === this.#begin.size ? 0 : this.#point;
    this.#point = point.size;
    this.#enqueue(point.size, () => this.#writePoint(point, snapshots, after));
  }

  async #writePoint(point: ReplayPoint, snapshots: readonly HistorySnapshot[], after: number): Promise<void> {
    if (this.#mode === 'following') await new Promise<void>((done) => this.#options.defer(done));
    const isStored = await this.#options.cache.save(point, snapshots, after);
    // Another caller discarded the earlier points, or is writing: it continues from the stored ones.
    if (!isStored) this.#pauseUntil(point.size, null);
  }
}

/** Work that follows earlier work, and the size of the ledger that it concerns. */
interface Task {
  readonly run: () => Promise<void>;
  readonly until: number;
}

/** What a batch added to the log. */
export interface LogAppends {
  /** The size of the log after the batch. */
  readonly size: number;
  readonly placed: readonly { readonly first: number; readonly entries: readonly SealedEntry[] }[];
}

/** @returns null while the entries are not integrated into the log */
export function logAppendsOf({ trees }: Batch, { head, first_log_indexes }: CommitResult): LogAppends | null {
  if (head === null || first_log_indexes === null) return null;
  const placed = trees.map(({ entries }, at) => ({ first: first_log_indexes[at] ?? 0, entries }));
  return { size: Math.max(...placed.map(({ first, entries }) => first + entries.length)), placed };
}
