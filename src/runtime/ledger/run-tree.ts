// A run tree as the records of its runs tell it.

import type { RunRecord } from '../../contract/run/run-record.js';
import { isTerminal } from '../../contract/run/run-state.js';
import type { TreeEntry } from '../../ports/ledger/ledger-store.js';
import { RunRecords } from '../../run/run-records.js';
import { parseStoredEntry, isRunEntry } from './stored-entry.js';
import type { TreeFold } from './tree-folds.js';
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
export const RUNS_CACHED_MAX = 10_000;

export class RunTreeFold implements TreeFold<RunTree> {
  readonly #root_run_id: string;
  readonly #records = new RunRecords();
  readonly #unknown = new UnknownOutcomes();

  constructor(root_run_id: string) {
    this.#root_run_id = root_run_id;
  }

  /** @throws LedgerError LEDGER_TAMPERED for what is no entry */
  apply(stored: TreeEntry): void {
    if (!isRelevant(stored)) return;
    const entry = parseStoredEntry(stored);
    this.#unknown.fold(entry, (run_id) => this.#records.get(run_id)?.status ?? null);
    this.#records.fold(entry);
  }

  result(): RunTree {
    const { all } = this.#unknown;
    return { root_run_id: this.#root_run_id, runs: this.#records.all(), unknown: new Map(all) };
  }

  get size(): number {
    return this.#records.size;
  }

  get isEvictable(): boolean {
    const root = this.#records.get(this.#root_run_id);
    return root === null || isTerminal(root.status);
  }
}

/** Of the inputs only those tell something of a run that say that nobody knows: the others need not be parsed. */
const isRelevant = (stored: TreeEntry): boolean =>
  isRunEntry(stored) || (stored.type === 'input' && stored.text.includes('"status":"unknown"'));
