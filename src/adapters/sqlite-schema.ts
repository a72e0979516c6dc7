// The tables of a ledger file, and what guards them.
//
// Entries, contents, trees and marks are only ever appended, in order and without a gap: triggers refuse everything
// else, also to other programs that open the file. `INSERT OR REPLACE` deletes without firing a DELETE trigger unless
// the connection has recursive_triggers on, so the INSERT triggers refuse what is there already.
// Triggers guard against mistakes; only a head that is kept elsewhere guards against intent (D15).
//
// No index on the way of a commit has a random key, except for ids that a caller chose (proposals, inputs): such a row
// costs ten times one that is appended. So content gets a row number, and the index by hash (`artifact_index`) follows
// later, when it is asked.

/** "TPLG": says in the file's header whose file it is. */
export const APPLICATION_ID = 0x54504c47;
/** Of the tables. A file with a higher one was written by a newer version of this library. */
export const FORMAT_VERSION = 1;
/** Measured: the entries of a step fit in one or two. */
export const PAGE_BYTES = 8_192;

const TABLES = `
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  epoch INTEGER NOT NULL,
  size INTEGER NOT NULL,
  root BLOB NOT NULL CHECK (length(root) = 32),
  frontier BLOB NOT NULL CHECK (length(frontier) % 32 = 0),
  artifacts_indexed INTEGER NOT NULL
) STRICT;
CREATE TABLE trees (tree_no INTEGER PRIMARY KEY, tree_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE trees_ended (tree_no INTEGER PRIMARY KEY) STRICT;
CREATE TABLE entries (
  log_index INTEGER PRIMARY KEY,
  tree_no INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  type TEXT NOT NULL,
  text TEXT NOT NULL,
  leaf_hash BLOB NOT NULL CHECK (length(leaf_hash) = 32),
  UNIQUE (tree_no, seq)
) STRICT;
CREATE TABLE artifacts (
  artifact_no INTEGER PRIMARY KEY,
  case_id TEXT,
  sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
  kind TEXT NOT NULL,
  byte_size INTEGER NOT NULL,
  bytes BLOB
) STRICT;
CREATE TABLE entry_artifacts (
  log_index INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  artifact_no INTEGER NOT NULL,
  PRIMARY KEY (log_index, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TABLE artifact_index (
  sha256 BLOB NOT NULL,
  artifact_no INTEGER NOT NULL,
  PRIMARY KEY (sha256, artifact_no)
) STRICT, WITHOUT ROWID;
CREATE TABLE roots (root_no INTEGER PRIMARY KEY, root_run_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE proposals (
  root_no INTEGER NOT NULL,
  proposal_id BLOB NOT NULL CHECK (length(proposal_id) = 16),
  run_id TEXT NOT NULL,
  step_index INTEGER NOT NULL,
  payload_sha256 BLOB NOT NULL CHECK (length(payload_sha256) = 32),
  seq INTEGER NOT NULL,
  PRIMARY KEY (root_no, proposal_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE inputs (
  tree_no INTEGER NOT NULL,
  input_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tree_no, input_id)
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES (1, 0, 0, x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', x'', 0);
`;

const guard = (table: string, event: string, condition: string, message: string): string =>
  `CREATE TRIGGER ${table}_${event.toLowerCase()} BEFORE ${event} ON ${table} ${condition}
BEGIN SELECT RAISE(ABORT, '${table}: ${message}'); END;\n`;

/** What may not come next in the tables that only grow. */
const GAPS: Readonly<Record<string, string>> = {
  trees: `NEW.tree_no <> (SELECT ifnull(max(tree_no) + 1, 0) FROM trees)
  OR EXISTS (SELECT 1 FROM trees WHERE tree_id = NEW.tree_id)`,
  entries: `NEW.log_index <> (SELECT ifnull(max(log_index) + 1, 0) FROM entries)
  OR NEW.seq <> (SELECT ifnull(max(seq) + 1, 0) FROM entries WHERE tree_no = NEW.tree_no)`,
  artifacts: 'NEW.artifact_no <> (SELECT ifnull(max(artifact_no) + 1, 0) FROM artifacts)',
  entry_artifacts: `NEW.log_index < (SELECT max(log_index) FROM entry_artifacts)
  OR NEW.ordinal <> (SELECT ifnull(max(ordinal) + 1, 0) FROM entry_artifacts WHERE log_index = NEW.log_index)`,
  roots: `NEW.root_no <> (SELECT ifnull(max(root_no) + 1, 0) FROM roots)
  OR EXISTS (SELECT 1 FROM roots WHERE root_run_id = NEW.root_run_id)`,
  proposals: 'EXISTS (SELECT 1 FROM proposals WHERE root_no = NEW.root_no AND proposal_id = NEW.proposal_id)',
  inputs: 'EXISTS (SELECT 1 FROM inputs WHERE tree_no = NEW.tree_no AND input_id = NEW.input_id)',
};

const GUARDS = [
  ...Object.entries(GAPS).map(([table, gap]) =>
    guard(table, 'INSERT', `WHEN ${gap}`, 'rows are appended in order, without a gap, and never replaced'),
  ),
  ...[...Object.keys(GAPS), 'trees_ended'].flatMap((table) => [
    guard(table, 'UPDATE', '', 'a row never changes'),
    guard(table, 'DELETE', '', 'a row is never removed'),
  ]),
  guard('meta', 'INSERT', 'WHEN EXISTS (SELECT 1 FROM meta)', 'there is one row'),
  guard('meta', 'UPDATE', 'WHEN NEW.size < OLD.size OR NEW.epoch < OLD.epoch', 'size and epoch never go back'),
  guard('meta', 'DELETE', '', 'a row is never removed'),
].join('');

/** Makes an empty ledger of an empty database. */
export const SCHEMA = `${TABLES}${GUARDS}
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${FORMAT_VERSION};
`;
