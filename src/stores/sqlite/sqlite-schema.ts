// The tables of a ledger file, and their guards.
//
// Committed data is in three append-only tables: blocks, artifacts and marks. Their keys are ascending numbers, so a
// commit writes only at the end of each table. Its cost does not depend on the length of the ledger or on the number of
// trees. Triggers reject everything but the next row, also from other programs that open the file. `INSERT OR REPLACE`
// deletes without firing a DELETE trigger unless the connection has recursive_triggers on, so the INSERT triggers
// reject existing keys. Triggers guard against mistakes; only an external head guards against intent (D15).
//
// The index tables (`*_index`) are derived from these three and follow them; `meta` stores how far. Rows beyond that
// are found by scanning the tail (sqlite-index.ts). `run_records` and `recorded_trees` are derived from the entries of
// ended trees; both are written in the background.
//
// `trees` has one row for each tree, keyed by the log index of its first entry: its case, whether it has ended, and the
// recovery hint of an open tree. So neither a start nor a query by case reads every tree.
//
// Rows are deleted only when the beginning of the log is in an archive file (content/sqlite-archives.ts). `archives`
// stores the size from which the blocks continue. `archived_trees` and `archived_cases` store which trees and cases
// were archived.

import { newestFormat, type Migration } from '../ledger/migrations.js';
import type { SqliteConnection } from './sqlite-binding.js';

/** "TPKL", in the file header: identifies a ledger file. */
export const APPLICATION_ID = 0x54504b4c;
/**
 * "TPLG", which identified a ledger file before formats began again at 1 (decision 0090). The number of its format says
 * nothing, because it may be the number of a format of today. No file of today has this id.
 */
export const OLD_APPLICATION_ID = 0x54504c47;
/** Measured against 4 and 16 KB: a commit of a single caller rewrites the last page of every table. */
export const PAGE_BYTES = 8_192;

/** The log index after the last block. */
const SIZE = `ifnull((SELECT log_index + length(leaf_hashes) / 32 FROM blocks ORDER BY log_index DESC LIMIT 1), 0)`;

/** Number of archived log entries. */
const ARCHIVED_SIZE = '(SELECT ifnull(max(size), 0) FROM archives)';
/** The number of the next artifact. Numbers of archived artifacts are not used again. */
export const NEXT_ARTIFACT = `max((SELECT ifnull(max(artifact_no) + 1, 0) FROM artifacts),
  (SELECT ifnull(max(next_artifact), 0) FROM archives))`;

const DONE = 'what is archived stays archived';

/**
 * In `artifacts`, `sealed` is the number of the key within its case that encrypts the content, 0 for none. The tables
 * of archived prefixes follow `snapshots`: after archiving, row numbers continue from where they were.
 */
const TABLES = `
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,
  size INTEGER NOT NULL,
  root BLOB NOT NULL CHECK (length(root) = 32),
  frontier BLOB NOT NULL CHECK (length(frontier) % 32 = 0),
  blocks_indexed INTEGER NOT NULL,
  marks_indexed INTEGER NOT NULL,
  artifacts_indexed INTEGER NOT NULL
) STRICT;
CREATE TABLE blocks (
  log_index INTEGER PRIMARY KEY,
  tree_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  artifacts TEXT,
  types TEXT NOT NULL,
  leaf_hashes BLOB NOT NULL CHECK (length(leaf_hashes) > 0 AND length(leaf_hashes) % 32 = 0),
  texts TEXT NOT NULL
) STRICT;
CREATE INDEX first_blocks ON blocks (log_index, tree_id) WHERE seq = 0;
CREATE TABLE artifacts (
  artifact_no INTEGER PRIMARY KEY,
  case_id TEXT,
  sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
  kind TEXT NOT NULL,
  byte_size INTEGER NOT NULL,
  bytes BLOB,
  sealed INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE marks (mark_no INTEGER PRIMARY KEY, marks TEXT NOT NULL) STRICT;
CREATE TABLE tree_index (
  tree_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  log_index INTEGER NOT NULL,
  PRIMARY KEY (tree_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE mark_index (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  mark_no INTEGER NOT NULL,
  PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE artifact_index (
  sha256 BLOB NOT NULL,
  artifact_no INTEGER NOT NULL,
  PRIMARY KEY (sha256, artifact_no)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshots (
  tree_id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  mac TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE archives (
  size INTEGER PRIMARY KEY,
  root BLOB NOT NULL CHECK (length(root) = 32),
  frontier BLOB NOT NULL CHECK (length(frontier) % 32 = 0),
  sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
  note TEXT,
  next_artifact INTEGER NOT NULL
) STRICT;
CREATE TABLE archived_trees (tree_id TEXT PRIMARY KEY, entries INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE archived_cases (case_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE run_records (
  tree_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (tree_id, run_id)
) STRICT;
CREATE TABLE recorded_trees (
  tree_id TEXT PRIMARY KEY,
  mark_no INTEGER NOT NULL,
  seq INTEGER NOT NULL
) STRICT;
CREATE TABLE trees (
  log_index INTEGER PRIMARY KEY,
  tree_id TEXT NOT NULL,
  case_id TEXT,
  ended INTEGER NOT NULL CHECK (ended IN (0, 1)),
  unfinished INTEGER NOT NULL CHECK (unfinished IN (0, 1)),
  wake_at TEXT
) STRICT;
CREATE INDEX open_trees ON trees (log_index) WHERE ended = 0;
CREATE INDEX trees_of_cases ON trees (case_id, log_index) WHERE case_id IS NOT NULL;
INSERT INTO meta VALUES (1, 0, 0, x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', x'', 0, 0, 0);
`;

const createTrigger = (table: string, event: string, condition: string, message: string): string =>
  `CREATE TRIGGER ${table}_${event.toLowerCase()} BEFORE ${event} ON ${table} ${condition}
BEGIN SELECT RAISE(ABORT, '${table}: ${message}'); END;\n`;

const IN_ORDER = 'rows are appended in order, without a gap, and never replaced';

/** Conditions under which an insert is rejected: not the next row of an append-only table, or a changed index row. */
const WRONG_ROWS: Readonly<Record<string, string>> = {
  blocks: `NEW.log_index <> max(${SIZE}, ${ARCHIVED_SIZE})`,
  artifacts: `NEW.artifact_no <> ${NEXT_ARTIFACT}`,
  marks: 'NEW.mark_no <> ifnull((SELECT max(mark_no) + 1 FROM marks), 0)',
  tree_index: `NEW.log_index <> (SELECT log_index FROM tree_index WHERE tree_id = NEW.tree_id AND seq = NEW.seq)`,
  mark_index: `NEW.mark_no <> (SELECT mark_no FROM mark_index WHERE scope = NEW.scope AND name = NEW.name)`,
};

/** Run records are final once their tree is recorded. Before that, an interrupted recording may be repeated. */
const whenRecorded = (row: 'NEW' | 'OLD'): string =>
  `WHEN EXISTS (SELECT 1 FROM recorded_trees WHERE tree_id = ${row}.tree_id)`;

const RECORDED = 'the records of a tree never change';

const GUARDS = [
  ...Object.entries(WRONG_ROWS).map(([table, wrong]) => createTrigger(table, 'INSERT', `WHEN ${wrong}`, IN_ORDER)),
  ...[...Object.keys(WRONG_ROWS), 'artifact_index'].flatMap((table) => [
    createTrigger(table, 'UPDATE', '', 'a row never changes'),
    createTrigger(table, 'DELETE', '', 'a row is never removed'),
  ]),
  createTrigger('meta', 'INSERT', 'WHEN EXISTS (SELECT 1 FROM meta)', 'there is one row'),
  createTrigger(
    'meta',
    'UPDATE',
    `WHEN NEW.size < OLD.size OR NEW.epoch < OLD.epoch OR NEW.blocks_indexed < OLD.blocks_indexed
  OR NEW.marks_indexed < OLD.marks_indexed OR NEW.artifacts_indexed < OLD.artifacts_indexed`,
    'its numbers never go back',
  ),
  createTrigger('meta', 'DELETE', '', 'a row is never removed'),
  createTrigger('run_records', 'INSERT', whenRecorded('NEW'), RECORDED),
  createTrigger('run_records', 'UPDATE', whenRecorded('OLD'), RECORDED),
  createTrigger('run_records', 'DELETE', whenRecorded('OLD'), RECORDED),
  createTrigger('recorded_trees', 'INSERT', whenRecorded('NEW'), RECORDED),
  createTrigger('recorded_trees', 'UPDATE', '', RECORDED),
  createTrigger('recorded_trees', 'DELETE', '', RECORDED),
  createTrigger(
    'archives',
    'INSERT',
    `WHEN NEW.size <= ${ARCHIVED_SIZE} OR NEW.size > (SELECT size FROM meta)
  OR EXISTS (SELECT 1 FROM blocks WHERE log_index < NEW.size)`,
    'only what is removed is archived',
  ),
  ...[
    ['archived_trees', 'tree_id'],
    ['archived_cases', 'case_id'],
  ].map(([table = '', key = '']) =>
    createTrigger(table, 'INSERT', `WHEN EXISTS (SELECT 1 FROM ${table} WHERE ${key} = NEW.${key})`, DONE),
  ),
  ...['archives', 'archived_trees', 'archived_cases'].flatMap((table) => [
    createTrigger(table, 'UPDATE', '', DONE),
    createTrigger(table, 'DELETE', '', DONE),
  ]),
  createTrigger('trees', 'INSERT', 'WHEN NEW.log_index <= (SELECT max(log_index) FROM trees)', IN_ORDER),
  createTrigger(
    'trees',
    'UPDATE',
    `WHEN OLD.ended = 1 OR NEW.log_index <> OLD.log_index OR NEW.tree_id <> OLD.tree_id
  OR NEW.case_id IS NOT OLD.case_id`,
    'a tree keeps its place and its case, and what has ended stays so',
  ),
  createTrigger('trees', 'DELETE', '', 'a row is never removed'),
].join('');

export type SqliteMigration = Migration<SqliteConnection, void>;

/** A ledger file has one format more for each of these; `user_version` records it. */
export const MIGRATIONS: readonly SqliteMigration[] = [
  {
    from: 0,
    to: 1,
    apply: (db) => void db.exec(`${TABLES}${GUARDS}PRAGMA application_id = ${APPLICATION_ID};`),
  },
];

/** The format of the ledger files that this version writes. */
export const FORMAT_VERSION = newestFormat(MIGRATIONS);
