// The beginning of a log leaves the database when it is in an archive file (decision 0021). Everything goes in one
// transaction, which takes the triggers away that refuse it and puts the very same ones back: a crash leaves either
// state. Files, and the room in the database, come after it; what a crash leaves of those, the next archiving finds.

import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { ArchiveRemoval, ArchivedPart } from '../../../ports/ledger/archives.js';
import { straddlingError } from '../../ledger/store-errors.js';
import { artifactPathOf, type ArtifactPlace } from './sqlite-artifact-files.js';
import { artifactNumbersIn } from '../sqlite-blocks.js';
import { withoutTriggers, type SqliteConnection } from '../sqlite-database.js';
import { errorCode } from '../../system/error-code.js';
import { NEXT_ARTIFACT } from '../sqlite-schema.js';

const GUARDS = ['blocks_delete', 'tree_index_delete', 'artifacts_delete', 'artifact_index_delete', 'trees_delete'];
const FOLDER = /^[0-9a-f]{2}$/;
/** As they are named by us, with the number of their key: whatever else somebody has put there stays. */
const CONTENT = /^[0-9a-f]{64}(?:\.[1-9]\d*)?(?:\.part)?$/;

/** Removes it, within the transaction that is open. @throws InvariantError for what is not ready for that */
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
  // In the order of the table, so that rows which lie side by side are written together.
  const sorted = [...trees].sort((one, other) => (one.tree_id < other.tree_id ? -1 : 1));
  for (const { tree_id, entries } of sorted) insert.run(tree_id, entries);
}

/** What is removed is whole trees, and nothing of others: whatever the caller has found out. */
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

/** Contents that no block speaks of which stays: policies, for one, come again with every tree. */
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

/** Removes the files of contents that are in no row any more. Only the writer, and with no transaction open. */
export function sweepContents(db: SqliteConnection, directory: string): void {
  const rows = db
    .prepare('SELECT case_id, lower(hex(sha256)) AS sha256, sealed FROM artifacts WHERE bytes IS NULL')
    .all();
  const places = rows as Omit<ArtifactPlace, 'directory'>[];
  sweepArtifactFiles(directory, new Set(places.map((place) => artifactPathOf({ directory, ...place }))));
}

/** Removes the contents in `directory` that are not among these paths. Only while nobody else writes there. */
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

/** What is no folder, or is not there, has nothing in it. */
function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return [];
    throw error;
  }
}

/** Gives the room of removed rows back to the disk: what stays is written anew, on a connection of its own. */
export function vacuum(file: string): void {
  const db = new Database(file, { fileMustExist: true });
  try {
    if (Number(db.pragma('freelist_count', { simple: true })) === 0) return;
    db.pragma('synchronous = FULL');
    db.exec('VACUUM');
    db.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
}
