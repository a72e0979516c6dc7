// The archived prefixes of a ledger, for readers. A reader may run while the writer archives. So it queries this table
// only after it did not find something, and then the answer is reliable.

import type { ArchivedPart } from '../../../core/ledger/readable-ledger.js';
import { archivedContentError, archivedEntryError, archivedTreeError } from '../../ledger/store-errors.js';
import type { SqliteConnection, SqliteStatement } from '../sqlite-binding.js';

const HASH_CHARS = 64;

interface ArchiveStatements {
  readonly size: SqliteStatement;
  readonly parts: SqliteStatement;
  readonly tree: SqliteStatement;
  readonly treeCount: SqliteStatement;
  readonly hasCase: SqliteStatement;
}

/** Splits concatenated hashes, in hex. */
export const hashesIn = (hex: string): readonly string[] =>
  Array.from({ length: hex.length / HASH_CHARS }, (_, i) => hex.slice(i * HASH_CHARS, (i + 1) * HASH_CHARS));

export class SqliteArchives {
  readonly #statements: ArchiveStatements;

  constructor(db: SqliteConnection) {
    this.#statements = prepareArchiveStatements(db);
  }

  /** The log index of the first entry that is not archived. */
  size(): number {
    return Number(this.#statements.size.get());
  }

  parts(): readonly ArchivedPart[] {
    const rows = this.#statements.parts.all() as (Omit<ArchivedPart, 'frontier'> & {
      readonly frontier: string;
    })[];
    return rows.map((row) => ({ ...row, frontier: hashesIn(row.frontier) }));
  }

  tree(tree_id: string): number | null {
    return (this.#statements.tree.get(tree_id) as number | undefined) ?? null;
  }

  treeCount(): number {
    return Number(this.#statements.treeCount.get());
  }

  hasCase(case_id: string): boolean {
    return this.#statements.hasCase.get(case_id) !== undefined;
  }

  /** @throws LedgerError LEDGER_ARCHIVED if this entry of the log is archived */
  refuseEntry(log_index: number): void {
    const size = this.size();
    // A negative index is neither archived nor stored: it comes from a table that was changed.
    if (log_index >= 0 && log_index < size) throw archivedEntryError(log_index, size);
  }

  /** @throws LedgerError LEDGER_ARCHIVED if this tree is archived */
  refuseTree(tree_id: string): void {
    if (this.tree(tree_id) !== null) throw archivedTreeError(tree_id);
  }

  /** For content that was not found. @throws LedgerError LEDGER_ARCHIVED if it may be archived */
  refuseContent(case_id: string | null, sha256: string): void {
    if (case_id === null ? this.size() > 0 : this.hasCase(case_id)) throw archivedContentError(sha256);
  }
}

const prepareArchiveStatements = (db: SqliteConnection): ArchiveStatements => ({
  size: db.prepare('SELECT max(size) FROM archives').pluck(),
  parts: db.prepare(
    `SELECT size, lower(hex(root)) AS root, lower(hex(frontier)) AS frontier, lower(hex(sha256)) AS sha256, note
     FROM archives ORDER BY size`,
  ),
  tree: db.prepare('SELECT entries FROM archived_trees WHERE tree_id = ?').pluck(),
  treeCount: db.prepare('SELECT count(*) FROM archived_trees').pluck(),
  hasCase: db.prepare('SELECT 1 FROM archived_cases WHERE case_id = ?').pluck(),
});
