-- The tables of a ledger. Names compare by their bytes, whatever the collation of the database.

-- Tables from before formats began again at 1 have a column format here, and none of these ever has (decision 0090).
-- rotations counts the rotations of the key of the ledger that have begun; is_rotating: one is not finished.
CREATE TABLE meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  ledger_format integer NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  rotations integer NOT NULL DEFAULT 0,
  is_rotating boolean NOT NULL DEFAULT false
);
-- The key folder that the ledger belongs to.
CREATE TABLE installation (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  ledger_id text NOT NULL,
  vkey text NOT NULL,
  volume_id text NOT NULL
);
CREATE TABLE head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  size bigint NOT NULL,
  root bytea NOT NULL,
  frontier bytea NOT NULL
);
-- The number of the last destroyed key of each case: nothing is stored under it any more. The label and the
-- reservations have versions, which the commits that depend on them name. The reserved amounts are what all changes of
-- the case have ever reserved, whole.
CREATE TABLE cases (
  case_id text COLLATE "C" PRIMARY KEY,
  erased_key integer NOT NULL DEFAULT 0,
  quota_version text NOT NULL DEFAULT '',
  label_version bigint NOT NULL DEFAULT 0,
  reserved_bytes bigint NOT NULL DEFAULT 0,
  reserved_files bigint NOT NULL DEFAULT 0
);
-- What decided changes may add to the sandbox of their case, until their step is recorded. The whole amount counts
-- once another change affects one of the paths.
CREATE TABLE reservations (
  case_id text COLLATE "C" NOT NULL,
  reservation_key text COLLATE "C" NOT NULL,
  tree_id text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  paths text[] NOT NULL,
  bytes bigint NOT NULL,
  files bigint NOT NULL,
  whole_bytes bigint NOT NULL,
  whole_files bigint NOT NULL,
  PRIMARY KEY (case_id, reservation_key)
);
CREATE INDEX reservations_of_tree ON reservations (tree_id, run_id);
CREATE TABLE trees (
  tree_id text COLLATE "C" PRIMARY KEY,
  opened bigint NOT NULL,
  case_id text COLLATE "C",
  head_seq integer NOT NULL DEFAULT 0,
  head_hash bytea,
  ended boolean NOT NULL DEFAULT false,
  unfinished boolean NOT NULL DEFAULT true,
  wake_at text
) WITH (fillfactor = 70);
CREATE INDEX trees_of_case ON trees (case_id, opened);
CREATE INDEX trees_open ON trees (opened) WHERE NOT ended;
CREATE INDEX trees_waking ON trees (wake_at COLLATE "C") WHERE NOT ended AND wake_at IS NOT NULL;
-- One row for each append. The texts of its entries are separated by newlines, its types by blanks. The texts of a
-- usual append have 2 to 3 kB when they are compressed. Up to the target they stay in their row: otherwise each would
-- need rows and an index entry in a second table.
CREATE TABLE blocks (
  tree_id text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  commit_no bigint NOT NULL,
  types text NOT NULL,
  leaf_hashes bytea NOT NULL,
  text_bytes integer NOT NULL,
  texts text COMPRESSION lz4 NOT NULL,
  artifact_entries integer[],
  artifact_nos bigint[],
  PRIMARY KEY (tree_id, seq)
) WITH (toast_tuple_target = 8160);
CREATE TABLE pending (
  commit_no bigint NOT NULL UNIQUE,
  tree_id text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tree_id, seq)
);
-- One row for each append: the log index of its first entry.
CREATE TABLE log (
  log_index bigint PRIMARY KEY,
  tree_id text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  UNIQUE (tree_id, seq)
);
CREATE INDEX log_first ON log (log_index) WHERE seq = 0;
-- The bytes of a content are encrypted with the key of its case; key_no is 0 for content without a case. Bytes above
-- one chunk are in artifact_chunks. Null bytes were erased.
CREATE TABLE artifacts (
  artifact_no bigint PRIMARY KEY,
  case_id text COLLATE "C",
  sha256 bytea NOT NULL,
  kind text NOT NULL,
  byte_size bigint NOT NULL,
  key_no integer NOT NULL,
  bytes bytea
);
ALTER TABLE artifacts ALTER bytes SET STORAGE EXTERNAL;
CREATE INDEX artifacts_by_hash ON artifacts (sha256, artifact_no);
CREATE INDEX artifacts_of_case ON artifacts (case_id, key_no) WHERE case_id IS NOT NULL;
CREATE TABLE artifact_chunks (
  artifact_no bigint NOT NULL,
  chunk_no integer NOT NULL,
  bytes bytea,
  PRIMARY KEY (artifact_no, chunk_no)
);
ALTER TABLE artifact_chunks ALTER bytes SET STORAGE EXTERNAL;
CREATE TABLE marks (
  scope text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  seq integer NOT NULL,
  run_id text,
  step_index integer,
  payload_sha256 text,
  PRIMARY KEY (scope, name)
);
-- A cache: the state of a tree, encrypted like content. content_sha256 is the hash of the text before encryption.
CREATE TABLE snapshots (
  tree_id text COLLATE "C" PRIMARY KEY,
  seq integer NOT NULL,
  mac text NOT NULL,
  case_id text COLLATE "C",
  key_no integer NOT NULL,
  content_sha256 bytea NOT NULL,
  bytes bytea NOT NULL
);
ALTER TABLE snapshots ALTER bytes SET COMPRESSION lz4;
CREATE INDEX snapshots_of_case ON snapshots (case_id);
CREATE TABLE unrecorded_trees (
  place bigint PRIMARY KEY,
  tree_id text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE recorded_trees (
  tree_id text COLLATE "C" PRIMARY KEY,
  recorded bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  seq integer NOT NULL
);
CREATE TABLE run_records (
  tree_id text COLLATE "C" NOT NULL,
  run_id text COLLATE "C" NOT NULL,
  record text COMPRESSION lz4 NOT NULL,
  PRIMARY KEY (tree_id, run_id)
);
CREATE SEQUENCE opened_numbers;
CREATE SEQUENCE commit_numbers;
CREATE SEQUENCE artifact_numbers;

INSERT INTO meta (ledger_format) VALUES (0);
INSERT INTO head (size, root, frontier) VALUES (0, sha256(''), '');
