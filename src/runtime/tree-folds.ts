// Folds of run trees that are gone on with: who asks again what a long tree tells pays for what came since, and many
// who ask at once pay once.

import { pace } from '../adapters/pace.js';
import type { LedgerStore, TreeEntry } from '../ports/ledger-store.js';

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

export class TreeFolds<Told> {
  readonly #store: LedgerStore;
  readonly #begin: (tree_id: string) => TreeFold<Told>;
  readonly #keptMax: number;
  /** Who was asked for last is last. */
  readonly #kept = new Map<string, Going<Told>>();

  constructor(store: LedgerStore, begin: (tree_id: string) => TreeFold<Told>, keptMax: number) {
    this.#store = store;
    this.#begin = begin;
    this.#keptMax = keptMax;
  }

  /** What a tree tells, with everything that was committed when this was asked. */
  async of(tree_id: string): Promise<Told> {
    const going = this.#kept.get(tree_id) ?? new Going(tree_id, this.#begin(tree_id));
    this.#kept.delete(tree_id);
    this.#kept.set(tree_id, going);
    try {
      const told = await going.on(this.#store);
      if (going.fold.isOver) this.#drop(tree_id, going);
      return told;
    } catch (error) {
      this.#drop(tree_id, going);
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
  on(store: LedgerStore): Promise<Told> {
    const told = this.#last.then(() => this.#take(store));
    this.#last = told;
    return told;
  }

  async #take(store: LedgerStore): Promise<Told> {
    const othersTurn = pace(TURN_MS);
    for await (const entry of store.tree(this.#tree_id, this.#next)) {
      this.fold.take(entry);
      this.#next = entry.seq + 1;
      const turn = othersTurn();
      if (turn !== undefined) await turn;
    }
    return this.fold.told();
  }
}
