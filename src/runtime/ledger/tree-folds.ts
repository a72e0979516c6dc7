// Folds of run trees that are gone on with: who asks again what a long tree tells pays for what came since, and many
// who ask at once pay once.

import type { LedgerStore, TreeEntry } from '../../ports/ledger/ledger-store.js';
import type { Pace, ReadControl } from '../../ports/pace.js';

/** What is made of the entries of one tree, in their order. */
export interface TreeFold<Result> {
  apply(entry: TreeEntry): void;
  /** What is told of the entries so far: nothing that comes later changes it. */
  result(): Result;
  /** How much it keeps, in whatever `keptMax` counts. */
  readonly size: number;
  /** Whether it is not kept: a tree that has ended may be archived, and of one that is not there all may come. */
  readonly isEvictable: boolean;
}

/** So long at a time others wait for a fold. */
const TURN_MS = 5;

/** Where trees are read, and how their folds are divided. */
export interface FoldEnvironment {
  readonly store: LedgerStore;
  readonly pace: Pace;
}

export class TreeFolds<Result> {
  readonly #environment: FoldEnvironment;
  readonly #createFold: (tree_id: string) => TreeFold<Result>;
  readonly #sizeMax: number;
  /** Who was asked for last is last. */
  readonly #cache = new Map<string, IncrementalFold<Result>>();

  constructor(environment: FoldEnvironment, createFold: (tree_id: string) => TreeFold<Result>, sizeMax: number) {
    this.#environment = environment;
    this.#createFold = createFold;
    this.#sizeMax = sizeMax;
  }

  /**
   * What a tree tells, with everything that was committed when this was asked.
   * @param control of the read; one that is cancelled takes nothing from others that ask for the same tree
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

/** A fold, and how far it has come. */
class IncrementalFold<Result> {
  readonly fold: TreeFold<Result>;
  readonly #tree_id: string;
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(tree_id: string, fold: TreeFold<Result>) {
    this.#tree_id = tree_id;
    this.fold = fold;
  }

  /** One after the other: each goes on from where the one before it came to, and from nowhere where that one failed. */
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
