// Incremental folds of run trees. Reading a long tree again costs only the entries since the last read, and concurrent
// reads of one tree share the work.

import type { LedgerStore, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace, ReadControl } from '../../engine/ports/pace.js';

/** Folds the entries of one tree, in their order. */
export interface TreeFold<Result> {
  apply(entry: TreeEntry): void;
  /** The result of the entries so far. Later entries do not change the returned object. */
  result(): Result;
  /** Its memory, in the unit that `sizeMax` counts. */
  readonly size: number;
  /** Whether it is not cached: an ended tree may be archived, and unknown trees would fill the cache. */
  readonly isEvictable: boolean;
}

/** Milliseconds of a fold before other work runs. */
const TURN_MS = 5;

/** Reads trees and divides the work on them. */
export interface FoldEnvironment {
  readonly store: LedgerStore;
  readonly pace: Pace;
}

export class TreeFolds<Result> {
  readonly #environment: FoldEnvironment;
  readonly #createFold: (tree_id: string) => TreeFold<Result>;
  readonly #sizeMax: number;
  /** The most recently used is last. */
  readonly #cache = new Map<string, IncrementalFold<Result>>();

  constructor(environment: FoldEnvironment, createFold: (tree_id: string) => TreeFold<Result>, sizeMax: number) {
    this.#environment = environment;
    this.#createFold = createFold;
    this.#sizeMax = sizeMax;
  }

  /**
   * The result of a tree, with everything that was committed at the time of the call.
   * @param control of this read; cancelling it does not affect other reads of the tree
   */
  async get(tree_id: string, control?: ReadControl): Promise<Result> {
    const incrementalFold = this.#cache.get(tree_id) ?? new IncrementalFold(tree_id, this.#createFold(tree_id));
    this.#cache.delete(tree_id);
    this.#cache.set(tree_id, incrementalFold);
    try {
      const result = await incrementalFold.advance(this.#environment, control);
      if (incrementalFold.fold.isEvictable) this.#drop(tree_id, incrementalFold);
      return result;
    } catch (error) {
      if (control?.signal.aborted !== true) this.#drop(tree_id, incrementalFold);
      throw error;
    } finally {
      this.#evict();
    }
  }

  #drop(tree_id: string, incrementalFold: IncrementalFold<Result>): void {
    if (this.#cache.get(tree_id) === incrementalFold) this.#cache.delete(tree_id);
  }

  #evict(): void {
    let size = 0;
    for (const { fold } of this.#cache.values()) size += fold.size;
    for (const [tree_id, { fold }] of this.#cache) {
      if (size <= this.#sizeMax) return;
      this.#cache.delete(tree_id);
      size -= fold.size;
    }
  }
}

/** A fold and its position in the tree. */
class IncrementalFold<Result> {
  readonly fold: TreeFold<Result>;
  readonly #tree_id: string;
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(tree_id: string, fold: TreeFold<Result>) {
    this.#tree_id = tree_id;
    this.fold = fold;
  }

  /** Reads run one after another: each resumes where the previous one ended, also if that one failed. */
  advance(environment: FoldEnvironment, control?: ReadControl): Promise<Result> {
    const result = this.#last.then(() => this.#foldNewEntries(environment, control));
    // A read is cancelled between two entries: the next one resumes there.
    this.#last = result.catch((error: unknown) => {
      if (control?.signal.aborted !== true) throw error;
    });
    this.#last.catch(() => undefined);
    return result;
  }

  async #foldNewEntries({ store, pace }: FoldEnvironment, control?: ReadControl): Promise<Result> {
    const { pause, signal } = control ?? { pause: pace.begin(TURN_MS) };
    const options = signal === undefined ? {} : { signal };
    signal?.throwIfAborted();
    for await (const entry of store.tree(this.#tree_id, this.#next, options)) {
      this.fold.apply(entry);
      this.#next = entry.seq + 1;
      const turn = pause();
      if (turn !== undefined) await turn;
    }
    return this.fold.result();
  }
}
