// Checks the stored records of runs whose tree has ended (S4-08, S4-43). They are derived data: each record must match
// the entries before the seq at which it was stored.

import { parseOwnJson, canonicalJson } from '../../contract/json.js';
import type { Entry } from '../../contract/run/entry.js';
import { RunRecord } from '../../contract/run/run-record.js';
import { isTerminal } from '../../contract/run/run-context.js';
import { isConforming } from '../../contract/validators.js';
import { LedgerError } from '../../errors.js';
import type { StoredEntry, StoredRecords } from '../readable-ledger.js';
import type { CheckedEntry } from './check-entry.js';
import type { LedgerFinding } from './ledger-problem.js';

/** Maximum number of records that are reported for one tree. */
const FINDINGS_MAX = 100;

/** Builds the records of one tree from its entries, in order. */
export interface RecordFold {
  fold(entry: Entry): void;
  get(run_id: string): RunRecord | null;
  all(): readonly RunRecord[];
  resume(record: RunRecord): void;
  release(run_id: string): void;
}

/** The stored records, and the fold that computes them again. */
export interface RecordSource {
  readonly table: StoredRecords;
  readonly newFold: () => RecordFold;
  /** Whether a tree's entries are archived. Its records can then be checked only if the archive is given. */
  readonly isArchived?: (tree_id: string) => Promise<boolean>;
  /** Whether the log got an entry of the tree after it had this size, or will. If absent, there is no such tree. */
  readonly isAfter?: (tree_id: string, size: number) => Promise<boolean>;
}

/** A recorded tree that is being read. */
interface OpenTreeRecords {
  /** Without the runs that have ended and whose stored records match. */
  readonly records: RecordFold;
  /** How many runs were created. */
  runs: number;
}

/** Takes the entries of a log in order. Memory grows with the number of trees and of live runs. */
export class RecordCheck {
  readonly #source: RecordSource;
  /** For each recorded tree that is not read to the end yet: how many of its entries the records cover. */
  readonly #recorded = new Map<string, number>();
  readonly #openTrees = new Map<string, OpenTreeRecords>();
  readonly #archived = new Set<string>();

  constructor(source: RecordSource) {
    this.#source = source;
  }

  /** Lists the trees that have records now. @throws LedgerError */
  begin(): Promise<readonly LedgerFinding[]> {
    return this.#catchUnreadable(async () => {
      for await (const { tree_id, seq } of this.#source.table.trees()) {
        if (seq > 0) this.#recorded.set(tree_id, seq);
        if ((await this.#source.isArchived?.(tree_id)) === true) this.#archived.add(tree_id);
      }
      return [];
    });
  }

  /** Reports the differences in the records of a tree, at the last entry that they cover. @throws LedgerError */
  async take(stored: StoredEntry, checked: CheckedEntry): Promise<readonly LedgerFinding[]> {
    const end = this.#recorded.get(stored.tree_id);
    return end === undefined ? [] : this.#catchUnreadable(() => this.#take(stored, checked, end));
  }

  async #take(
    { tree_id, seq }: StoredEntry,
    { envelope, findings }: CheckedEntry,
    end: number,
  ): Promise<readonly LedgerFinding[]> {
    if (envelope === null || findings.length > 0) {
      // Another check has already reported this entry, and the records cannot be computed from it.
      this.#forget(tree_id);
      return [];
    }
    const open = this.#openTrees.get(tree_id) ?? { records: this.#source.newFold(), runs: 0 };
    this.#openTrees.set(tree_id, open);
    await this.#fold(open, envelope as Entry);
    if (seq + 1 < end) return [];
    this.#forget(tree_id);
    return this.#compareRecords(tree_id, open);
  }

  /**
   * Reports records that cover more entries of a tree than the log had when it was read. Records can be stored before
   * the log has their entries.
   */
  async *finish(size: number): AsyncIterable<LedgerFinding & { readonly tree_id: string }> {
    for (const [tree_id, seq] of this.#recorded) {
      if (this.#archived.has(tree_id) || (await this.#source.isAfter?.(tree_id, size)) === true) continue;
      const message = `the run records cover the first ${seq} entries of ${tree_id}, but the log lacks some of them`;
      yield { tree_id, rule: 'record.differs', message };
    }
  }

  /** Reports unreadable records once and then reads no more of them, so that the log can still be verified. */
  async #catchUnreadable(work: () => Promise<readonly LedgerFinding[]>): Promise<readonly LedgerFinding[]> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'LEDGER_TAMPERED') throw error;
      this.#recorded.clear();
      this.#openTrees.clear();
      return [{ rule: 'record.differs', message: `the run records cannot be read: ${error.message}` }];
    }
  }

  #forget(tree_id: string): void {
    this.#recorded.delete(tree_id);
    this.#openTrees.delete(tree_id);
  }

  async #fold(open: OpenTreeRecords, entry: Entry): Promise<void> {
    if (entry.type !== 'run_created' && entry.type !== 'audit_event') return;
    const { records } = open;
    const { run_id } = entry.body;
    if (entry.type === 'run_created') open.runs += 1;
    else if (records.get(run_id) === null) await this.#resume(records, entry.tree_id, run_id);
    records.fold(entry);
    const record = records.get(run_id);
    if (record === null || !isTerminal(record.status)) return;
    if (!isWritten(record, await this.#source.table.load(entry.tree_id, run_id))) return;
    records.release(run_id);
  }

  /** Loads the stored record of a run that was released. Without one, the run does not belong to this tree. */
  async #resume(records: RecordFold, tree_id: string, run_id: string): Promise<void> {
    const record = parseStoredRecord(await this.#source.table.load(tree_id, run_id));
    if (record !== null) records.resume(record);
  }

  async #compareRecords(tree_id: string, { records, runs }: OpenTreeRecords): Promise<readonly LedgerFinding[]> {
    const { table } = this.#source;
    const findings: LedgerFinding[] = [];
    for (const record of records.all()) {
      if (findings.length === FINDINGS_MAX) break;
      if (isWritten(record, await table.load(tree_id, record.run_id))) continue;
      const message = `the record of ${record.run_id} is missing, or not what its entries say`;
      findings.push({ rule: 'record.differs', message });
    }
    const written = await table.count(tree_id);
    if (findings.length === 0 && written !== runs) {
      const message = `${written} records of ${tree_id} are written, of ${runs} runs`;
      findings.push({ rule: 'record.differs', message });
    }
    return findings;
  }
}

const isWritten = (record: RunRecord, text: string | null): boolean =>
  isConforming(RunRecord, record) && canonicalJson(record) === text;

/** Parses a stored record; null if it is malformed, so that only the entries can decide. */
export function parseStoredRecord(text: string | null): RunRecord | null {
  try {
    const record: unknown = parseOwnJson(text ?? 'null');
    return isConforming(RunRecord, record) ? (record as RunRecord) : null;
  } catch {
    return null;
  }
}
