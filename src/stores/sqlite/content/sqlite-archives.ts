// The archived prefixes of a ledger (decision 0021).
//
// A reader may run while the writer archives. So it queries the table of archives only after it did not find something,
// and then the answer is reliable.
//
// The writer removes the beginning of a log from the database after it was written to an archive file. One transaction
// drops the triggers that forbid this, deletes the rows, and restores the same triggers: a crash leaves either state.
// Files and free pages are removed afterwards; the next archiving removes what a crash left.

import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { ArchivedPart } from '../../../core/ledger/readable-ledger.js';
import type { ArchiveRemoval } from '../../../engine/ports/ledger/archives.js';
import { errorCode } from '../../../system/error-code.js';
import {
  archivedContentError,
  archivedEntryError,
  archivedTreeError,
  straddlingError,
} from '../../ledger/store-errors.js';
import { connectSqlite, truncateWal, type SqliteConnection } from '../sqlite-binding.js';
import { withoutTriggers } from '../sqlite-database.js';
import { artifactNumbersIn } from '../sqlite-rows.js';
import { NEXT_ARTIFACT } from '../sqlite-schema.js';
import { artifactPathOf, type ArtifactPlace } from './sqlite-artifact-files.js';

const HASH_CHARS = 64;

/** Splits concatenated hashes, in hex. */
export const hashesIn = (hex: string): readonly string[] =>
  Array.from({ length: hex.length / HASH_CHARS }, (_, i) => hex.slice(i * HASH_CHARS, (i + 1) * HASH_CHARS));

export class SqliteArchives {
  readonly #statements: ReturnType<typeof prepareArchiveStatements>;

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

const prepareArchiveStatements = (db: SqliteConnection) => ({
  size: db.prepare('SELECT max(size) FROM archives').pluck(),
  parts: db.prepare(
    `SELECT size, lower(hex(root)) AS root, lower(hex(frontier)) AS frontier, lower(hex(sha256)) AS sha256, note
     FROM archives ORDER BY size`,
  ),
  tree: db.prepare('SELECT entries FROM archived_trees WHERE tree_id = ?').pluck(),
  treeCount: db.prepare('SELECT count(*) FROM archived_trees').pluck(),
  hasCase: db.prepare('SELECT 1 FROM archived_cases WHERE case_id = ?').pluck(),
});

const GUARDS = ['blocks_delete', 'tree_index_delete', 'artifacts_delete', 'artifact_index_delete', 'trees_delete'];
const FOLDER = /^[0-9a-f]{2}$/;
/** File names that this store writes, with the number of their key; other files are left alone. */
const CONTENT = /^[0-9a-f]{64}(?:\.[1-9]\d*)?(?:\.part)?$/;

/** Removes an archived prefix within the open transaction. @throws InvariantError if it would split a tree */
export function removeArchived(db: SqliteConnection, { part, trees, cases }: ArchiveRemoval): void {
  const next_artifact = Number(db.prepare(`SELECT ${NEXT_ARTIFACT}`).pluck().get());
  insertTrees(db, trees);
  refuseStraddling(db, part.size);
  const selectCase = db.prepare('SELECT 1 FROM archived_cases WHERE case_id = ?');
  const note = db.prepare('INSERT INTO archived_cases VALUES (?)');
  for (const case_id of cases) if (selectCase.get(case_id) === undefined) note.run(case_id);
  withoutTriggers(db, GUARDS, () => {
    removeContents(db, part.size);
    db.prepare('DELETE FROM tree_index WHERE log_index < ?').run(part.size);
    db.prepare('DELETE FROM blocks WHERE log_index < ?').run(part.size);
    db.prepare('DELETE FROM trees WHERE log_index < ?').run(part.size);
  });
  const forget = db.prepare('DELETE FROM snapshots WHERE tree_id = ?');
  for (const { tree_id } of trees) forget.run(tree_id);
  insertPart(db, part, next_artifact);
}

function insertTrees(db: SqliteConnection, trees: ArchiveRemoval['trees']): void {
  const insert = db.prepare('INSERT INTO archived_trees VALUES (?, ?)');
  // In the order of the table, so that neighbouring rows are written together.
  const sorted = [...trees].sort((one, other) => (one.tree_id < other.tree_id ? -1 : 1));
  for (const { tree_id, entries } of sorted) insert.run(tree_id, entries);
}

/** Rejects a removal that is not exactly whole trees, whatever the caller has checked. */
function refuseStraddling(db: SqliteConnection, size: number): void {
  const isArchived = 'EXISTS (SELECT 1 FROM archived_trees t WHERE t.tree_id = b.tree_id)';
  const end = db.prepare(
    `SELECT tree_id FROM blocks WHERE log_index < @size AND log_index + length(leaf_hashes) / 32 > @size
     ORDER BY log_index DESC LIMIT 1`,
  );
  const wrong = db
    .prepare(
      `SELECT tree_id FROM blocks b WHERE (log_index >= @size AND ${isArchived})
       OR (log_index < @size AND NOT ${isArchived}) LIMIT 1`,
    )
    .pluck()
    .get({ size });
  const cut = wrong ?? end.pluck().get({ size });
  if (typeof cut === 'string') throw straddlingError(size, cut);
}

/** Removes contents that no remaining block refers to. Policies, for example, are attached to every tree. */
function removeContents(db: SqliteConnection, size: number): void {
  const retained = new Set<number>();
  const attached = db.prepare('SELECT artifacts FROM blocks WHERE log_index >= ? AND artifacts IS NOT NULL').pluck();
  for (const text of attached.iterate(size) as Iterable<string>)
    for (const artifact_no of artifactNumbersIn(text)) retained.add(artifact_no);
  const all = db.prepare('SELECT artifact_no FROM artifacts').pluck().all() as number[];
  const unindex = db.prepare(
    `DELETE FROM artifact_index WHERE artifact_no = @artifact_no
     AND sha256 = (SELECT sha256 FROM artifacts WHERE artifact_no = @artifact_no)`,
  );
  const remove = db.prepare('DELETE FROM artifacts WHERE artifact_no = ?');
  for (const artifact_no of all) {
    if (retained.has(artifact_no)) continue;
    unindex.run({ artifact_no });
    remove.run(artifact_no);
  }
}

function insertPart(
  db: SqliteConnection,
  { size, root, frontier, sha256, note }: ArchivedPart,
  next_artifact: number,
): void {
  const hex = [root, frontier.join(''), sha256].map((hashes) => Buffer.from(hashes, 'hex'));
  db.prepare('INSERT INTO archives VALUES (?, ?, ?, ?, ?, ?)').run(size, ...hex, note, next_artifact);
}

/** Removes the files of contents that have no row. Only for the writer, with no open transaction. */
export function sweepContents(db: SqliteConnection, directory: string): void {
  const rows = db
    .prepare('SELECT case_id, lower(hex(sha256)) AS sha256, sealed FROM artifacts WHERE bytes IS NULL')
    .all();
  const places = rows as Omit<ArtifactPlace, 'directory'>[];
  sweepArtifactFiles(directory, new Set(places.map((place) => artifactPathOf({ directory, ...place }))));
}

/** Removes the content files in `directory` that are not in `retained`. Only while no other process writes there. */
function sweepArtifactFiles(directory: string, retained: ReadonlySet<string>): void {
  for (const owner of readNames(directory)) {
    for (const folder of readNames(join(directory, owner)).filter((name) => FOLDER.test(name))) {
      for (const name of readNames(join(directory, owner, folder)).filter((one) => CONTENT.test(one))) {
        const path = join(directory, owner, folder, name);
        if (!retained.has(path)) unlinkSync(path);
      }
    }
  }
}

/** Returns no names if the folder does not exist or is not a folder. */
function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return [];
    throw error;
  }
}

/** Rewrites the database without its free pages, so that the disk gets their space back. Uses its own connection. */
export function vacuum(file: string): void {
  const db = connectSqlite(file, { fileMustExist: true });
  try {
    if (Number(db.pragma('freelist_count', { simple: true })) === 0) return;
    db.pragma('synchronous = FULL');
    db.exec('VACUUM');
    truncateWal(db);
  } finally {
    db.close();
  }
}
