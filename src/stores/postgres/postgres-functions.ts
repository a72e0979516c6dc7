// The SQL functions of the store. A call is one statement, and so one transaction and one round trip.
//
// Their errors have SQLSTATEs of their own: TP001, an integration that does not continue the log; TP002, a change of
// records that never change; TP003, a change of rows that never change (postgres-schema.ts).

import { CHANNEL } from './workers/postgres-announcements.js';
import { CREATE_RESERVATION_FUNCTIONS } from './workers/postgres-quotas.js';
import { CREATE_QUOTA_FUNCTIONS } from './workers/postgres-labels.js';

/** Trees in one announcement: a payload has at most 8,000 bytes. */
const ANNOUNCED_TREES_MAX = 64;

/**
 * Commits the appends of a batch.
 *
 *   C1. The epoch is compared first. It cannot change during the call: `acquire` needs the exclusive writer lock, and
 *       the calling session holds that lock.
 *   C2. New trees are inserted, then all trees of the batch are locked in the order of their ids, so that two commits
 *       cannot wait for each other. Cases are locked after trees.
 *   C3. Commit numbers are drawn under these locks. So the commits of a tree are numbered in their order.
 *   C4. With p_all, a batch that is not completely new is not written. Without it, each tree is decided alone.
 *   C5. The reservations of a case are compared and changed under the lock of its row (postgres-quotas.ts).
 *   C6. Nothing is stored under a key that was destroyed: such a batch conflicts.
 */
const COMMIT_BATCH = `
CREATE FUNCTION commit_batch(
  p_epoch bigint, p_all boolean,
  p_trees text[], p_from integer[], p_count integer[], p_case text[], p_ended boolean[],
  p_unfinished boolean[], p_wake_at text[], p_types text[], p_text_bytes integer[], p_text_at integer[],
  p_leaf_at integer[], p_texts bytea, p_leaves bytea, p_refs_at integer[], p_refs integer[],
  p_ref_entries integer[], p_ref_contents integer[],
  p_content_known bigint[], p_content_case text[], p_content_kind text[], p_content_size bigint[],
  p_content_key integer[], p_content_at integer[], p_content_bytes integer[], p_hashes bytea, p_bytes bytea,
  p_mark_tree integer[], p_mark_scope text[], p_mark_name text[], p_mark_seq integer[], p_mark_run text[],
  p_mark_step integer[], p_mark_payload text[],
  p_snapshot_tree integer[], p_snapshot_seq integer[], p_snapshot_mac text[], p_snapshot_case text[],
  p_snapshot_key integer[], p_snapshot_at integer[], p_snapshot_bytes integer[], p_snapshot_hashes bytea,
  p_snapshots bytea, p_cases text[], p_case_keys integer[], p_quota jsonb,
  OUT epoch_over boolean, OUT statuses text[], OUT content_nos bigint[]
) LANGUAGE plpgsql AS $body$
DECLARE
  v_created text[];
  v_new integer[];
  v_commits bigint[];
BEGIN
  epoch_over := (SELECT m.epoch FROM meta m) IS DISTINCT FROM p_epoch;
  IF epoch_over OR cardinality(p_trees) = 0 THEN RETURN; END IF;

  IF 0 = ANY (p_from) THEN
    -- Inserted in the order of their ids because of C2; numbered in the order of the batch.
    WITH created AS (
      INSERT INTO trees (tree_id, opened, case_id)
      SELECT a.tree_id, a.opened, a.case_id FROM (
        SELECT u.tree_id, u.case_id, nextval('opened_numbers') AS opened
        FROM unnest(p_trees, p_from, p_case) AS u (tree_id, from_seq, case_id) WHERE u.from_seq = 0) AS a
      ORDER BY a.tree_id
      ON CONFLICT DO NOTHING RETURNING tree_id
    ) SELECT array_agg(c.tree_id) INTO v_created FROM created c;
  END IF;
  PERFORM 1 FROM trees t WHERE t.tree_id = ANY (p_trees) ORDER BY t.tree_id FOR UPDATE;
  IF p_quota IS NOT NULL THEN
    PERFORM lock_quotas(p_quota, p_cases);
  ELSIF cardinality(p_cases) > 0 THEN
    INSERT INTO cases (case_id) SELECT c FROM unnest(p_cases) AS c ORDER BY c ON CONFLICT DO NOTHING;
    PERFORM 1 FROM cases c WHERE c.case_id = ANY (p_cases) ORDER BY c.case_id FOR SHARE;
  END IF;

  statuses := append_statuses(p_trees, p_from, p_count, p_leaf_at, p_leaves);
  IF p_quota IS NOT NULL THEN statuses := quota_statuses(p_quota, statuses); END IF;
  IF EXISTS (SELECT FROM unnest(p_cases, p_case_keys) AS k (case_id, key_no)
             JOIN cases c USING (case_id) WHERE c.erased_key >= k.key_no AND k.key_no > 0)
    OR (p_all AND 'committed' = ANY (statuses) AND ('present' = ANY (statuses) OR 'conflict' = ANY (statuses)))
  THEN
    statuses := array_replace(statuses, 'committed', 'conflict');
  END IF;
  IF NOT 'committed' = ANY (statuses) THEN
    DELETE FROM trees t WHERE t.tree_id = ANY (v_created);
    RETURN;
  END IF;

  -- The positions of the appends that are new, and their commit numbers, by position.
  SELECT array_agg(s.ord ORDER BY s.ord) INTO v_new
  FROM unnest(statuses) WITH ORDINALITY AS s (status, ord) WHERE s.status = 'committed';
  SELECT array_agg(CASE WHEN s.status = 'committed' THEN nextval('commit_numbers') END ORDER BY s.ord) INTO v_commits
  FROM (SELECT status, ord FROM unnest(statuses) WITH ORDINALITY AS u (status, ord) ORDER BY ord) AS s;

  SELECT array_agg(CASE WHEN c.known > 0 THEN c.known WHEN c.needed THEN nextval('artifact_numbers') END ORDER BY c.ord)
  INTO content_nos
  FROM (SELECT u.known, u.ord, p_all OR u.ord IN (
          SELECT p_ref_contents[r] FROM unnest(v_new) AS n,
            generate_series(p_refs_at[n], p_refs_at[n] + p_refs[n] - 1) AS r) AS needed
        FROM unnest(p_content_known) WITH ORDINALITY AS u (known, ord) ORDER BY u.ord) AS c;
  PERFORM store_contents(content_nos, p_content_known, p_content_case, p_content_kind, p_content_size, p_content_key,
    p_content_at, p_content_bytes, p_hashes, p_bytes);

  INSERT INTO blocks (tree_id, seq, commit_no, types, leaf_hashes, text_bytes, texts, artifact_entries, artifact_nos)
  SELECT p_trees[n], p_from[n], v_commits[n], p_types[n], substring(p_leaves FROM p_leaf_at[n] FOR p_count[n] * 32),
    p_text_bytes[n], convert_from(substring(p_texts FROM p_text_at[n] FOR p_text_bytes[n]), 'UTF8'),
    CASE WHEN p_refs[n] > 0 THEN p_ref_entries[p_refs_at[n] : p_refs_at[n] + p_refs[n] - 1] END,
    CASE WHEN p_refs[n] > 0 THEN (
      SELECT array_agg(content_nos[p_ref_contents[r]] ORDER BY r)
      FROM generate_series(p_refs_at[n], p_refs_at[n] + p_refs[n] - 1) AS r) END
  FROM unnest(v_new) AS n;

  INSERT INTO pending (commit_no, tree_id, seq) SELECT v_commits[n], p_trees[n], p_from[n] FROM unnest(v_new) AS n;

  IF cardinality(p_mark_tree) > 0 THEN
    INSERT INTO marks (scope, name, seq, run_id, step_index, payload_sha256)
    SELECT m.scope, m.name, m.seq, m.run_id, m.step_index, m.payload_sha256
    FROM unnest(p_mark_tree, p_mark_scope, p_mark_name, p_mark_seq, p_mark_run, p_mark_step, p_mark_payload)
      AS m (tree, scope, name, seq, run_id, step_index, payload_sha256)
    WHERE m.tree = ANY (v_new);
  END IF;
  IF true = ANY (p_ended) THEN
    INSERT INTO unrecorded_trees (place, tree_id)
    SELECT v_commits[n], t.tree_id FROM unnest(v_new) AS n JOIN trees t ON t.tree_id = p_trees[n]
    WHERE p_ended[n] AND NOT t.ended;
  END IF;
  UPDATE trees t SET
    head_seq = p_from[n] + p_count[n],
    head_hash = substring(p_leaves FROM p_leaf_at[n] + (p_count[n] - 1) * 32 FOR 32),
    ended = t.ended OR p_ended[n],
    unfinished = NOT (t.ended OR p_ended[n]) AND coalesce(p_unfinished[n], t.unfinished),
    wake_at = CASE WHEN t.ended OR p_ended[n] THEN NULL WHEN p_unfinished[n] IS NULL THEN t.wake_at
                   ELSE p_wake_at[n] END
  FROM unnest(v_new) AS n WHERE t.tree_id = p_trees[n];

  IF cardinality(p_snapshot_tree) > 0 THEN
    INSERT INTO snapshots (tree_id, seq, mac, case_id, key_no, content_sha256, bytes)
    SELECT p_trees[p_snapshot_tree[s]], p_snapshot_seq[s], p_snapshot_mac[s], p_snapshot_case[s], p_snapshot_key[s],
      substring(p_snapshot_hashes FROM (s - 1) * 32 + 1 FOR 32),
      substring(p_snapshots FROM p_snapshot_at[s] FOR p_snapshot_bytes[s])
    FROM generate_series(1, cardinality(p_snapshot_tree)) AS s WHERE p_snapshot_tree[s] = ANY (v_new)
    ON CONFLICT (tree_id) DO UPDATE SET seq = excluded.seq, mac = excluded.mac, case_id = excluded.case_id,
      key_no = excluded.key_no, content_sha256 = excluded.content_sha256, bytes = excluded.bytes;
  END IF;
  IF p_quota IS NOT NULL THEN PERFORM store_quotas(p_quota, statuses, p_trees); END IF;
  IF true = ANY (p_ended) THEN
    WITH gone AS (
      DELETE FROM reservations r USING unnest(v_new) AS n WHERE p_ended[n] AND r.tree_id = p_trees[n] RETURNING r.case_id)
    UPDATE cases c SET quota_version = c.quota_version || '+' WHERE c.case_id IN (SELECT g.case_id FROM gone g);
  END IF;
END $body$;`;

/** How each append fits its tree, which the caller has locked. The last leaf hash covers all entries before it. */
const APPEND_STATUSES = `
CREATE FUNCTION append_statuses(
  p_trees text[], p_from integer[], p_count integer[], p_leaf_at integer[], p_leaves bytea
) RETURNS text[] LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT array_agg(
      CASE
        WHEN t.head_seq = a.from_seq THEN 'committed'
        WHEN t.head_seq >= a.from_seq + a.count AND (
          SELECT substring(b.leaf_hashes FROM (a.from_seq + a.count - 1 - b.seq) * 32 + 1 FOR 32)
          FROM blocks b WHERE b.tree_id = a.tree_id AND b.seq <= a.from_seq + a.count - 1 ORDER BY b.seq DESC LIMIT 1
        ) = substring(p_leaves FROM a.leaf_at + (a.count - 1) * 32 FOR 32) THEN 'present'
        ELSE 'conflict'
      END ORDER BY a.ord)
    FROM unnest(p_trees, p_from, p_count, p_leaf_at) WITH ORDINALITY AS a (tree_id, from_seq, count, leaf_at, ord)
    LEFT JOIN trees t ON t.tree_id = a.tree_id);
END $body$;`;

/** Inserts new contents. One that is larger than a chunk continues in artifact_chunks. */
const storeContents = (chunkBytes: number): string => `
CREATE FUNCTION store_contents(
  p_nos bigint[], p_known bigint[], p_case text[], p_kind text[], p_size bigint[], p_key integer[], p_at integer[],
  p_stored integer[], p_hashes bytea, p_bytes bytea
) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  IF p_nos IS NULL THEN RETURN; END IF;
  INSERT INTO artifacts (artifact_no, case_id, sha256, kind, byte_size, key_no, bytes)
  SELECT p_nos[c], p_case[c], substring(p_hashes FROM (c - 1) * 32 + 1 FOR 32), p_kind[c], p_size[c], p_key[c],
    substring(p_bytes FROM p_at[c] FOR least(p_stored[c], ${chunkBytes}))
  FROM generate_series(1, cardinality(p_nos)) AS c WHERE p_known[c] = 0 AND p_nos[c] IS NOT NULL;
  INSERT INTO artifact_chunks (artifact_no, chunk_no, bytes)
  SELECT p_nos[c], k, substring(p_bytes FROM p_at[c] + k * ${chunkBytes} FOR least(p_stored[c] - k * ${chunkBytes}, ${chunkBytes}))
  FROM generate_series(1, cardinality(p_nos)) AS c, generate_series(1, (p_stored[c] - 1) / ${chunkBytes}) AS k
  WHERE p_known[c] = 0 AND p_nos[c] IS NOT NULL AND p_stored[c] > ${chunkBytes};
END $body$;`;

/**
 * Gives appends their log indexes, if the log still has the size p_size_before. Each must be the next of its tree. It
 * joins two lists of the call, for which there is no index (see the settings in postgres-connection.ts).
 */
const INTEGRATE = `
CREATE FUNCTION integrate_appends(
  p_size_before bigint, p_trees text[], p_seqs integer[], p_counts integer[], p_leaf_at integer[], p_leaves bytea,
  p_size bigint, p_root bytea, p_frontier bytea
) RETURNS boolean LANGUAGE plpgsql SET enable_hashjoin = on AS $body$
DECLARE
  v_found bigint;
BEGIN
  IF (SELECT h.size FROM head h FOR UPDATE) IS DISTINCT FROM p_size_before THEN RETURN false; END IF;
  SELECT count(*) INTO v_found
  FROM (SELECT a.*, row_number() OVER (PARTITION BY a.tree_id ORDER BY a.ord) AS n
        FROM unnest(p_trees, p_seqs, p_counts, p_leaf_at) WITH ORDINALITY AS a (tree_id, seq, count, leaf_at, ord)) AS a
  JOIN (SELECT p.tree_id, p.seq, row_number() OVER (PARTITION BY p.tree_id ORDER BY p.commit_no) AS n
        FROM pending p WHERE p.tree_id = ANY (p_trees)) AS p ON p.tree_id = a.tree_id AND p.seq = a.seq AND p.n = a.n
  JOIN blocks b ON b.tree_id = a.tree_id AND b.seq = a.seq
  WHERE b.leaf_hashes = substring(p_leaves FROM a.leaf_at FOR a.count * 32);
  IF v_found <> cardinality(p_trees) OR p_size <> p_size_before + octet_length(p_leaves) / 32 THEN
    RAISE EXCEPTION 'these appends are not what is integrated next' USING ERRCODE = 'TP001';
  END IF;
  INSERT INTO log (log_index, tree_id, seq)
  SELECT p_size_before + (a.leaf_at - 1) / 32, a.tree_id, a.seq
  FROM unnest(p_trees, p_seqs, p_leaf_at) AS a (tree_id, seq, leaf_at);
  DELETE FROM pending p USING unnest(p_trees, p_seqs) AS a (tree_id, seq)
  WHERE p.tree_id = a.tree_id AND p.seq = a.seq;
  UPDATE head SET size = p_size, root = p_root, frontier = p_frontier;
  PERFORM pg_notify(${CHANNEL}, string_agg(g.tree_id || ':' || g.length, ' '))
  FROM (SELECT a.tree_id, max(a.seq + a.count) AS length, (row_number() OVER () - 1) / ${ANNOUNCED_TREES_MAX} AS page
        FROM unnest(p_trees, p_seqs, p_counts) AS a (tree_id, seq, count) GROUP BY a.tree_id) AS g
  GROUP BY g.page;
  RETURN true;
END $body$;`;

/**
 * Stores run records. Records of a recorded tree never change: of several workers the first one writes them, and the
 * others write nothing. Returns false if the epoch is over.
 */
const SAVE_RECORDS = `
CREATE FUNCTION save_run_records(
  p_epoch bigint, p_shared boolean, p_trees text[], p_runs text[], p_records text[], p_recorded text[], p_seqs integer[]
) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  v_done text[];
BEGIN
  IF (SELECT m.epoch FROM meta m) IS DISTINCT FROM p_epoch THEN RETURN false; END IF;
  PERFORM 1 FROM trees t WHERE t.tree_id = ANY (p_trees || p_recorded) ORDER BY t.tree_id FOR UPDATE;
  v_done := (SELECT array_agg(r.tree_id) FROM recorded_trees r WHERE r.tree_id = ANY (p_trees || p_recorded));
  IF v_done IS NOT NULL AND NOT p_shared THEN
    RAISE EXCEPTION 'the records of a tree never change' USING ERRCODE = 'TP002';
  END IF;
  INSERT INTO run_records (tree_id, run_id, record)
  SELECT r.tree_id, r.run_id, r.record FROM unnest(p_trees, p_runs, p_records) AS r (tree_id, run_id, record)
  WHERE v_done IS NULL OR NOT r.tree_id = ANY (v_done)
  ON CONFLICT (tree_id, run_id) DO UPDATE SET record = excluded.record;
  INSERT INTO recorded_trees (tree_id, seq)
  SELECT r.tree_id, r.seq FROM unnest(p_recorded, p_seqs) WITH ORDINALITY AS r (tree_id, seq, ord)
  WHERE v_done IS NULL OR NOT r.tree_id = ANY (v_done) ORDER BY r.ord;
  DELETE FROM unrecorded_trees u WHERE u.tree_id = ANY (p_recorded);
  RETURN true;
END $body$;`;

/** @param chunkBytes the size of a piece of content */
export const createFunctions = (chunkBytes: number): string =>
  [
    CREATE_RESERVATION_FUNCTIONS,
    CREATE_QUOTA_FUNCTIONS,
    APPEND_STATUSES,
    storeContents(chunkBytes),
    COMMIT_BATCH,
    INTEGRATE,
    SAVE_RECORDS,
  ].join('\n');
