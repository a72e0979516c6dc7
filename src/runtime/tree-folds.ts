// Run trees as their records tell them, folded once and then gone on with: who asks again how a long run stands pays
// for what came since, and many who ask at once pay once.

import { pace } from '../adapters/pace.js';
import type { RunRecord } from '../contract/run-record.js';
import { isTerminal } from '../contract/run-state.js';
import type { LedgerStore, StoredEntry } from '../ports/ledger-store.js';
import { RunRecords } from '../run/record.js';
import { entryOf, tellsOfRuns } from './stored-entry.js';
import { UnknownOutcomes, type Settlement } from './unknown-outcomes.js';

/** Run trees with their records, as one question of a reader. */
export interface RunTree {
  readonly root_run_id: string;
  /** In the order in which the runs were created: a parent comes before its children. */
  readonly runs: readonly RunRecord[];
  /** The runs whose act may have happened or not (D8), each with how that was settled; null where it has not been. */
  readonly unknown: ReadonlyMap<string, Settlement | null>;
}

/** Of all trees that are kept: some 4 kB each. */
const RUNS_KEPT_MAX = 10_000;
/** So long at a time others wait for a fold. */
const TURN_MS = 5;

export class TreeFolds {
  readonly #store: LedgerStore;
  /** Trees that are under way; who was asked for last is last. One that has ended may be archived, and is not kept. */
  readonly #kept = new Map<string, TreeFold>();

  constructor(store: LedgerStore) {
    this.#store = store;
  }

  /** The tree with everything that was committed when this was asked; without runs where there is none. */
  async tree(tree_id: string): Promise<RunTree> {
    const fold = this.#kept.get(tree_id) ?? new TreeFold(tree_id);
    this.#kept.delete(tree_id);
    this.#kept.set(tree_id, fold);
    try {
      const tree = await fold.goOn(this.#store);
      if (fold.isOver) this.#drop(tree_id, fold);
      return tree;
    } catch (error) {
      this.#drop(tree_id, fold);
      throw error;
    } finally {
      this.#makeRoom();
    }
  }

  #drop(tree_id: string, fold: TreeFold): void {
    if (this.#kept.get(tree_id) === fold) this.#kept.delete(tree_id);
  }

  #makeRoom(): void {
    let runs = 0;
    for (const { size } of this.#kept.values()) runs += size;
    for (const [tree_id, { size }] of this.#kept) {
      if (runs <= RUNS_KEPT_MAX) return;
      this.#kept.delete(tree_id);
      runs -= size;
    }
  }
}

class TreeFold {
  readonly #tree_id: string;
  readonly #records = new RunRecords();
  readonly #unknown = new UnknownOutcomes();
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(tree_id: string) {
    this.#tree_id = tree_id;
  }

  get size(): number {
    return this.#records.size;
  }

  /** Also of a tree of which there is nothing. */
  get isOver(): boolean {
    const root = this.#records.get(this.#tree_id);
    return root === null || isTerminal(root.status);
  }

  /** One after the other: each goes on from where the one before it came to, and from nowhere where that one failed. */
  goOn(store: LedgerStore): Promise<RunTree> {
    const tree = this.#last.then(() => this.#fold(store));
    this.#last = tree;
    return tree;
  }

  async #fold(store: LedgerStore): Promise<RunTree> {
    const othersTurn = pace(TURN_MS);
    const stateOf = (run_id: string) => this.#records.get(run_id)?.status ?? null;
    for await (const stored of store.tree(this.#tree_id, this.#next)) {
      if (isTelling(stored)) {
        const entry = entryOf(stored);
        this.#unknown.fold(entry, stateOf);
        this.#records.fold(entry);
      }
      this.#next = stored.seq + 1;
      const turn = othersTurn();
      if (turn !== undefined) await turn;
    }
    return { root_run_id: this.#tree_id, runs: this.#records.all(), unknown: new Map(this.#unknown.all) };
  }
}

/** Of the inputs only those tell something of a run that say that nobody knows: the others need not be parsed. */
const isTelling = (stored: StoredEntry): boolean =>
  tellsOfRuns(stored) || (stored.type === 'input' && stored.text.includes('"status":"unknown"'));
