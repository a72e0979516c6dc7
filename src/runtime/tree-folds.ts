// Folds of run trees that are gone on with: who asks again what a long tree tells pays for what came since, and many
// who ask at once pay once.

import type { LedgerStore, TreeEntry } from '../ports/ledger-store.js';
import type { Pace, ReadControl } from '../ports/pace.js';

/** What is made of the entries of one tree, in their order. */
export interface TreeFold<Told> {
  take(entry: TreeEntry): void;
  /** What is told of the entries so far: nothing that comes later changes it. */
  told(): Told;
  /** How much it keeps, in whatever `keptMax` counts. */
  readonly size: number;
  /** Whether it is not kept: a tree that has ended may be archived, and of one that is not there all may come. */
  readonly isOver: boolean;
}

/** So long at a time others wait for a fold. */
const TURN_MS = 5;

/** Where trees are read, and how their folds are divided. */
export interface FoldGround {
  readonly store: LedgerStore;
  readonly pace: Pace;
}

export class TreeFolds<Told> {
  readonly #ground: FoldGround;
  readonly #begin: (tree_id: string) => TreeFold<Told>;
  readonly #keptMax: number;
  /** Who was asked for last is last. */
  readonly #kept = new Map<string, Going<Told>>();

  constructor(ground: FoldGround, begin: (tree_id: string) => TreeFold<Told>, keptMax: number) {
    this.#ground = ground;
    this.#begin = begin;
    this.#keptMax = keptMax;
  }

  /**
   * What a tree tells, with everything that was committed when this was asked.
   * @param control of the read; one that is cancelled takes nothing from others that ask for the same tree
   */
  async of(tree_id: string, control?: ReadControl): Promise<Told> {
    const going = this.#kept.get(tree_id) ?? new Going(tree_id, this.#begin(tree_id));
    this.#kept.delete(tree_id);
    this.#kept.set(tree_id, going);
    try {
      const told = await going.on(this.#ground, control);
      if (going.fold.isOver) this.#drop(tree_id, going);
      return told;
    } catch (error) {
      if (control?.signal.aborted !== true) this.#drop(tree_id, going);
      throw error;
    } finally {
      this.#makeRoom();
    }
  }

  #drop(tree_id: string, going: Going<Told>): void {
    if (this.#kept.get(tree_id) === going) this.#kept.delete(tree_id);
  }

  #makeRoom(): void {
    let size = 0;
    for (const { fold } of this.#kept.values()) size += fold.size;
    for (const [tree_id, { fold }] of this.#kept) {
      if (size <= this.#keptMax) return;
      this.#kept.delete(tree_id);
      size -= fold.size;
    }
  }
}

/** A fold, and how far it has come. */
class Going<Told> {
  readonly fold: TreeFold<Told>;
  readonly #tree_id: string;
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(tree_id: string, fold: TreeFold<Told>) {
    this.#tree_id = tree_id;
    this.fold = fold;
  }

  /** One after the other: each goes on from where the one before it came to, and from nowhere where that one failed. */
  on(ground: FoldGround, control?: ReadControl): Promise<Told> {
    const told = this.#last.then(() => this.#take(ground, control));
    // A read is cancelled between two entries: the next one resumes there.
    this.#last = told.catch((error: unknown) => {
      if (control?.signal.aborted !== true) throw error;
    });
    this.#last.catch(() => undefined);
    return told;
  }

  async #take({ store, pace }: FoldGround, control?: ReadControl): Promise<Told> {
    const { pause, signal } = control ?? { pause: pace.begin(TURN_MS) };
    const options = signal === undefined ? {} : { signal };
    signal?.throwIfAborted();
    for await (const entry of store.tree(this.#tree_id, this.#next, options)) {
      this.fold.take(entry);
      this.#next = entry.seq + 1;
      const turn = pause();
      if (turn !== undefined) await turn;
    }
    return this.fold.told();
  }
}
