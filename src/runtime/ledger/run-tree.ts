// Folds a run tree to the records of its runs.

import type { Entry } from '../../core/contract/run/entry.js';
import type { RunRecord } from '../../core/contract/run/run-record.js';
import { isTerminal, OUTCOME_RESOLVED, type RunState } from '../../core/contract/run/run-context.js';
import type { TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import { RunRecords } from './run-records.js';
import { parseStoredEntry, isRunEntry } from './stored-entry.js';
import type { TreeFold } from './tree-folds.js';

/** A run tree with the records of its runs. */
export interface RunTree {
  readonly root_run_id: string;
  /** In the order of creation: a parent precedes its children. */
  readonly runs: readonly RunRecord[];
  /** The runs with an effect of unknown outcome (D8), each with its settlement; null if it is not settled. */
  readonly unknown: ReadonlyMap<string, Settlement | null>;
}

/** Limit of cached runs over all trees: some 4 kB each. */
export const RUNS_CACHED_MAX = 10_000;

export class RunTreeFold implements TreeFold<RunTree> {
  readonly #root_run_id: string;
  readonly #records = new RunRecords();
  readonly #unknown = new UnknownOutcomes();

  constructor(root_run_id: string) {
    this.#root_run_id = root_run_id;
  }

  /** @throws LedgerError LEDGER_TAMPERED for an invalid entry */
  apply(stored: TreeEntry): void {
    if (!isRelevant(stored)) return;
    const entry = parseStoredEntry(stored);
    this.#unknown.fold(entry, (run_id) => this.#records.statusOf(run_id));
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
    const status = this.#records.statusOf(this.#root_run_id);
    return status === null || isTerminal(status);
  }
}

/** Of the inputs only results with an unknown outcome matter: the others need not be parsed. */
const isRelevant = (stored: TreeEntry): boolean =>
  isRunEntry(stored) || (stored.type === 'input' && stored.text.includes('"status":"unknown"'));

/** D8: how a person settled an effect whose outcome was unknown. */
export interface Settlement {
  readonly outcome: 'done' | 'not_executed';
  readonly actor_id: string;
  readonly role_id: string;
  readonly at: string;
  readonly note: string | null;
}

/** The effects of one tree whose outcome was unknown when their run ended. */
export class UnknownOutcomes {
  readonly #settlements = new Map<string, Settlement | null>();

  /** Takes entries in ledger order. `stateOf` returns the state of a run before this entry. */
  fold(entry: Entry, stateOf: (run_id: string) => RunState | null): void {
    if (entry.type === 'input') {
      const { body } = entry;
      if (body.kind !== 'result' || body.status !== 'unknown') return;
      // A result for a run that has already ended is rejected and changes nothing.
      if (stateOf(body.run_id) === 'running') this.#settlements.set(body.run_id, null);
    }
    if (entry.type !== 'audit_event' || !this.#settlements.has(entry.body.run_id)) return;
    const { run_id, outcome_reason = '', actor, role_id = '', timestamp_utc, notes = null } = entry.body;
    if (!outcome_reason.startsWith(OUTCOME_RESOLVED)) return;
    const outcome = outcome_reason === `${OUTCOME_RESOLVED}done` ? 'done' : 'not_executed';
    this.#settlements.set(run_id, { outcome, actor_id: actor.actor_id, role_id, at: timestamp_utc, note: notes });
  }

  /** By run: its settlement, or null if it is not settled. */
  get all(): ReadonlyMap<string, Settlement | null> {
    return this.#settlements;
  }
}
