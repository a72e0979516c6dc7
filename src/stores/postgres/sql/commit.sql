-- Commits. A call is one statement, and so one transaction and one round trip. commit-records.ts has the types of the
-- records. The bytes of all records of a kind are one parameter: `..._at` and `..._bytes` say where those of a record
-- are, from 1.

-- Commits the appends of a batch.
--
--   C1. The epoch is compared first. It cannot change during the call: `acquire` needs the exclusive writer lock, and
--       the calling session holds that lock.
--   C2. New trees are inserted, then all trees of the batch are locked in the order of their ids, so that two commits
--       cannot wait for each other. Cases are locked after trees.
--   C3. Commit numbers are drawn under these locks. So the commits of a tree are numbered in their order.
--   C4. With p_all, a batch that is not completely new is not written. Without it, each tree is decided alone.
--   C5. The reservations of a case are compared and changed under the lock of its row (quotas.sql).
--   C6. Nothing is stored under a key that was destroyed: such a batch conflicts.
CREATE FUNCTION commit_batch(
  p_epoch bigint, p_all boolean, p_appends commit_append[], p_contents commit_content[], p_marks commit_mark[],
  p_snapshots commit_snapshot[], p_cases commit_case[], p_quotas jsonb,
  p_texts bytea, p_leaves bytea, p_content_bytes bytea, p_snapshot_bytes bytea,
  OUT epoch_over boolean, OUT statuses text[], OUT content_nos bigint[]
) LANGUAGE plpgsql AS $body$
DECLARE
  v_trees text[] := ARRAY(SELECT a.tree_id FROM unnest(p_appends) AS a);
  v_ends boolean := EXISTS (SELECT FROM unnest(p_appends) AS a WHERE a.ended);
  v_created text[];
  v_commits bigint[];
BEGIN
  epoch_over := (SELECT m.epoch FROM meta m) IS DISTINCT FROM p_epoch;
  IF epoch_over OR cardinality(p_appends) = 0 THEN RETURN; END IF;

  -- Inserted in the order of their ids because of C2; numbered in the order of the batch.
  IF EXISTS (SELECT FROM unnest(p_appends) AS a WHERE a.from_seq = 0) THEN
    WITH created AS (
      INSERT INTO trees (tree_id, opened, case_id)
      SELECT a.tree_id, a.opened, a.case_id FROM (
        SELECT a.tree_id, a.case_id, nextval('opened_numbers') AS opened
        FROM unnest(p_appends) AS a WHERE a.from_seq = 0) AS a
      ORDER BY a.tree_id
      ON CONFLICT DO NOTHING RETURNING tree_id
    ) SELECT array_agg(c.tree_id) INTO v_created FROM created c;
  END IF;
  PERFORM 1 FROM trees t WHERE t.tree_id = ANY (v_trees) ORDER BY t.tree_id FOR UPDATE;
  IF p_quotas IS NOT NULL THEN
    PERFORM lock_quotas(p_quotas, ARRAY(SELECT c.case_id FROM unnest(p_cases) AS c));
  ELSIF cardinality(p_cases) > 0 THEN
    INSERT INTO cases (case_id) SELECT c.case_id FROM unnest(p_cases) AS c ORDER BY c.case_id ON CONFLICT DO NOTHING;
    PERFORM 1 FROM cases c WHERE c.case_id = ANY (ARRAY(SELECT n.case_id FROM unnest(p_cases) AS n))
    ORDER BY c.case_id FOR SHARE;
  END IF;

  statuses := append_statuses(p_appends, p_leaves);
  IF p_quotas IS NOT NULL THEN statuses := quota_statuses(p_quotas, statuses); END IF;
  IF EXISTS (SELECT FROM unnest(p_cases) AS n JOIN cases c USING (case_id)
             WHERE c.erased_key >= n.key_no AND n.key_no > 0)
    OR (p_all AND 'committed' = ANY (statuses) AND ('present' = ANY (statuses) OR 'conflict' = ANY (statuses)))
  THEN
    statuses := array_replace(statuses, 'committed', 'conflict');
  END IF;
  IF NOT 'committed' = ANY (statuses) THEN
    DELETE FROM trees t WHERE t.tree_id = ANY (v_created);
    RETURN;
  END IF;

  -- The commit numbers of the appends that are new, by position.
  SELECT array_agg(CASE WHEN s.status = 'committed' THEN nextval('commit_numbers') END ORDER BY s.ord) INTO v_commits
  FROM (SELECT status, ord FROM unnest(statuses) WITH ORDINALITY AS u (status, ord) ORDER BY ord) AS s;

  IF cardinality(p_contents) > 0 THEN
    SELECT array_agg(CASE WHEN c.known_no > 0 THEN c.known_no WHEN c.is_needed THEN nextval('artifact_numbers') END
      ORDER BY c.ordinality)
    INTO content_nos
    FROM (SELECT c.known_no, c.ordinality, p_all OR c.ordinality IN (
            SELECT unnest(a.artifact_contents) FROM unnest(p_appends) WITH ORDINALITY AS a
            WHERE statuses[a.ordinality] = 'committed') AS is_needed
          FROM unnest(p_contents) WITH ORDINALITY AS c ORDER BY c.ordinality) AS c;
    PERFORM store_contents(content_nos, p_contents, p_content_bytes);
  END IF;

  INSERT INTO blocks (tree_id, seq, commit_no, types, leaf_hashes, text_bytes, texts, artifact_entries, artifact_nos)
  SELECT a.tree_id, a.from_seq, v_commits[a.ordinality], a.types,
    substring(p_leaves FROM a.leaves_at FOR a.entry_count * 32), a.texts_bytes,
    convert_from(substring(p_texts FROM a.texts_at FOR a.texts_bytes), 'UTF8'), a.artifact_entries, (
      SELECT array_agg(content_nos[c.place] ORDER BY c.ord)
      FROM unnest(a.artifact_contents) WITH ORDINALITY AS c (place, ord))
  FROM unnest(p_appends) WITH ORDINALITY AS a WHERE statuses[a.ordinality] = 'committed';

  INSERT INTO pending (commit_no, tree_id, seq)
  SELECT v_commits[a.ordinality], a.tree_id, a.from_seq
  FROM unnest(p_appends) WITH ORDINALITY AS a WHERE statuses[a.ordinality] = 'committed';

  IF cardinality(p_marks) > 0 THEN
    INSERT INTO marks (scope, name, seq, run_id, step_index, payload_sha256)
    SELECT m.scope, m.name, m.seq, m.run_id, m.step_index, m.payload_sha256
    FROM unnest(p_marks) AS m WHERE statuses[m.append] = 'committed';
  END IF;
  IF v_ends THEN
    INSERT INTO unrecorded_trees (place, tree_id)
    SELECT v_commits[a.ordinality], t.tree_id
    FROM unnest(p_appends) WITH ORDINALITY AS a JOIN trees t ON t.tree_id = a.tree_id
    WHERE statuses[a.ordinality] = 'committed' AND a.ended AND NOT t.ended;
  END IF;
  UPDATE trees t SET
    head_seq = a.from_seq + a.entry_count,
    head_hash = substring(p_leaves FROM a.leaves_at + (a.entry_count - 1) * 32 FOR 32),
    ended = t.ended OR a.ended,
    unfinished = NOT (t.ended OR a.ended) AND coalesce(a.unfinished, t.unfinished),
    wake_at = CASE WHEN t.ended OR a.ended THEN NULL WHEN a.unfinished IS NULL THEN t.wake_at ELSE a.wake_at END
  FROM unnest(p_appends) WITH ORDINALITY AS a
  WHERE t.tree_id = a.tree_id AND statuses[a.ordinality] = 'committed';

  IF cardinality(p_snapshots) > 0 THEN
    INSERT INTO snapshots (tree_id, seq, mac, case_id, key_no, content_sha256, bytes)
    SELECT v_trees[s.append], s.seq, s.mac, s.case_id, s.key_no, decode(s.content_sha256, 'hex'),
      substring(p_snapshot_bytes FROM s.stored_at FOR s.stored_bytes)
    FROM unnest(p_snapshots) AS s WHERE statuses[s.append] = 'committed'
    ON CONFLICT (tree_id) DO UPDATE SET seq = excluded.seq, mac = excluded.mac, case_id = excluded.case_id,
      key_no = excluded.key_no, content_sha256 = excluded.content_sha256, bytes = excluded.bytes;
  END IF;
  IF p_quotas IS NOT NULL THEN PERFORM store_quotas(p_quotas, statuses, v_trees); END IF;
  IF v_ends THEN
    WITH gone AS (
      DELETE FROM reservations r USING unnest(p_appends) WITH ORDINALITY AS a
      WHERE a.ended AND statuses[a.ordinality] = 'committed' AND r.tree_id = a.tree_id RETURNING r.case_id)
    UPDATE cases c SET quota_version = c.quota_version || '+' WHERE c.case_id IN (SELECT g.case_id FROM gone g);
  END IF;
END $body$;

-- How each append fits its tree, which the caller has locked. The last leaf hash covers all entries before it.
CREATE FUNCTION append_statuses(p_appends commit_append[], p_leaves bytea) RETURNS text[] LANGUAGE plpgsql AS $body$
BEGIN
  RETURN (
    SELECT array_agg(
      CASE
        WHEN t.head_seq = a.from_seq THEN 'committed'
        WHEN t.head_seq >= a.from_seq + a.entry_count AND (
          SELECT substring(b.leaf_hashes FROM (a.from_seq + a.entry_count - 1 - b.seq) * 32 + 1 FOR 32)
          FROM blocks b WHERE b.tree_id = a.tree_id AND b.seq <= a.from_seq + a.entry_count - 1
          ORDER BY b.seq DESC LIMIT 1
        ) = substring(p_leaves FROM a.leaves_at + (a.entry_count - 1) * 32 FOR 32) THEN 'present'
        ELSE 'conflict'
      END ORDER BY a.ordinality)
    FROM unnest(p_appends) WITH ORDINALITY AS a LEFT JOIN trees t ON t.tree_id = a.tree_id);
END $body$;

-- Inserts new contents under their numbers. One that is larger than a chunk continues in artifact_chunks.
CREATE FUNCTION store_contents(p_nos bigint[], p_contents commit_content[], p_bytes bytea) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO artifacts (artifact_no, case_id, sha256, kind, byte_size, key_no, bytes)
  SELECT p_nos[c.ordinality], c.case_id, decode(c.sha256, 'hex'), c.kind, c.byte_size, c.key_no,
    substring(p_bytes FROM c.stored_at FOR least(c.stored_bytes, ${CHUNK_BYTES}))
  FROM unnest(p_contents) WITH ORDINALITY AS c WHERE c.known_no = 0 AND p_nos[c.ordinality] IS NOT NULL;
  INSERT INTO artifact_chunks (artifact_no, chunk_no, bytes)
  SELECT p_nos[c.ordinality], k, substring(p_bytes FROM c.stored_at + k * ${CHUNK_BYTES}
    FOR least(c.stored_bytes - k * ${CHUNK_BYTES}, ${CHUNK_BYTES}))
  FROM unnest(p_contents) WITH ORDINALITY AS c, generate_series(1, (c.stored_bytes - 1) / ${CHUNK_BYTES}) AS k
  WHERE c.known_no = 0 AND p_nos[c.ordinality] IS NOT NULL AND c.stored_bytes > ${CHUNK_BYTES};
END $body$;

-- Commits each append of a worker alone, and the leases of those that were committed. The worker cannot be declared
-- over during the call: the calling session holds its lock.
CREATE FUNCTION commit_shared(
  p_worker integer, p_leases commit_lease[], p_releases commit_release[],
  p_appends commit_append[], p_contents commit_content[], p_marks commit_mark[],
  p_snapshots commit_snapshot[], p_cases commit_case[], p_quotas jsonb,
  p_texts bytea, p_leaves bytea, p_content_bytes bytea, p_snapshot_bytes bytea,
  OUT epoch_over boolean, OUT statuses text[], OUT content_nos bigint[]
) LANGUAGE plpgsql AS $body$
BEGIN
  epoch_over := NOT EXISTS (SELECT FROM workers p WHERE p.worker_id = p_worker AND p.over_at IS NULL);
  IF epoch_over THEN RETURN; END IF;
  SELECT c.epoch_over, c.statuses, c.content_nos INTO epoch_over, statuses, content_nos
  FROM commit_batch(
    p_epoch => (SELECT m.epoch FROM meta m), p_all => false, p_appends => p_appends, p_contents => p_contents,
    p_marks => p_marks, p_snapshots => p_snapshots, p_cases => p_cases, p_quotas => p_quotas, p_texts => p_texts,
    p_leaves => p_leaves, p_content_bytes => p_content_bytes, p_snapshot_bytes => p_snapshot_bytes) AS c;
  IF cardinality(p_leases) > 0 THEN
    INSERT INTO leases (kind, run_id, tree_id, worker_id)
    SELECT l.kind, l.run_id, l.tree_id, p_worker FROM unnest(p_leases) AS l WHERE statuses[l.append] = 'committed'
    ON CONFLICT (run_id, kind) DO UPDATE SET worker_id = excluded.worker_id, from_dead = NULL;
  END IF;
  IF cardinality(p_releases) > 0 THEN
    DELETE FROM leases d USING unnest(p_releases) AS r
    WHERE d.run_id = r.run_id AND statuses[r.append] = 'committed';
  END IF;
  IF EXISTS (SELECT FROM unnest(p_appends) AS a WHERE a.ended) THEN
    DELETE FROM leases d USING unnest(p_appends) WITH ORDINALITY AS a
    WHERE d.tree_id = a.tree_id AND a.ended AND statuses[a.ordinality] = 'committed';
  END IF;
END $body$;
