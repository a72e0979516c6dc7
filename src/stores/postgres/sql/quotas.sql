-- The reservations and labels of cases, which commit_batch compares and changes under its locks. p_quotas has `next`,
-- the version that the batch gives to the reservations of its cases, `changes` and `labels` (their types are in
-- commit-records.ts). Both versions are in the row of the case.

-- Locks all cases of a batch at once, in the order of their ids.
CREATE FUNCTION lock_quotas(p_quotas jsonb, p_cases text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  v_cases text[] := p_cases
    || ARRAY(SELECT l.case_id FROM jsonb_populate_recordset(NULL::label_change, p_quotas -> 'labels') AS l)
    || ARRAY(SELECT q.case_id FROM jsonb_populate_recordset(NULL::quota_change, p_quotas -> 'changes') AS q);
BEGIN
  INSERT INTO cases (case_id) SELECT DISTINCT c COLLATE "C" FROM unnest(v_cases) AS c ORDER BY c COLLATE "C"
  ON CONFLICT DO NOTHING;
  PERFORM 1 FROM cases c WHERE c.case_id = ANY (v_cases) ORDER BY c.case_id FOR UPDATE;
END $body$;

-- The statuses, with the conflicts of appends that depend on another label or on other reservations than the case has.
-- A change also holds while no more was reserved than it leaves room for.
CREATE FUNCTION quota_statuses(p_quotas jsonb, p_statuses text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  v_changes quota_change[] :=
    ARRAY(SELECT q FROM jsonb_populate_recordset(NULL::quota_change, p_quotas -> 'changes') AS q);
  v_labels label_change[] :=
    ARRAY(SELECT l FROM jsonb_populate_recordset(NULL::label_change, p_quotas -> 'labels') AS l);
  v_statuses text[] := p_statuses;
  v_append integer;
BEGIN
  FOR v_append IN
    SELECT l.append FROM unnest(v_labels) AS l JOIN cases c ON c.case_id = l.case_id
    WHERE l.version IS NOT NULL AND p_statuses[l.append] = 'committed' AND (c.label_version <> l.version OR EXISTS (
      SELECT FROM unnest(v_labels) AS o
      WHERE o.case_id = l.case_id AND o.raised AND o.append <> l.append AND p_statuses[o.append] = 'committed'))
  LOOP
    v_statuses[v_append] := 'conflict';
  END LOOP;
  p_statuses := v_statuses;
  FOR v_append IN
    SELECT q.append FROM unnest(v_changes) AS q WHERE q.checked AND q.case_id IN (
      SELECT o.case_id FROM unnest(v_changes) AS o JOIN cases c ON c.case_id = o.case_id
      WHERE p_statuses[o.append] = 'conflict'
        OR (p_statuses[o.append] = 'committed' AND o.checked AND c.quota_version <> o.version
            AND (c.reserved_bytes <= o.limit_bytes AND c.reserved_files <= o.limit_files) IS NOT TRUE))
  LOOP
    IF v_statuses[v_append] = 'committed' THEN v_statuses[v_append] := 'conflict'; END IF;
  END LOOP;
  RETURN v_statuses;
END $body$;

-- Applies the changes of committed appends. A new reservation counts whole if another one affects one of its paths. A
-- case of which an append was refused gets another version than the batch has: the worker may have decided more with
-- it.
CREATE FUNCTION store_quotas(p_quotas jsonb, p_statuses text[], p_trees text[]) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
  v_next text := p_quotas ->> 'next';
  v_changes quota_change[] :=
    ARRAY(SELECT q FROM jsonb_populate_recordset(NULL::quota_change, p_quotas -> 'changes') AS q);
BEGIN
  DELETE FROM reservations r USING unnest(v_changes) AS q, unnest(q.released) AS o (run_id)
  WHERE q.changed AND p_statuses[q.append] = 'committed'
    AND r.tree_id = p_trees[q.append] AND r.run_id = o.run_id AND r.case_id = q.case_id;
  IF p_quotas @? '$.changes[*].reserved[*]' THEN
    WITH added AS (
      SELECT q.append, q.case_id, n.* FROM unnest(v_changes) AS q, unnest(q.reserved) AS n
      WHERE q.changed AND p_statuses[q.append] = 'committed'
    ), counted AS (
      SELECT a.*, EXISTS (SELECT FROM added o WHERE o.case_id = a.case_id AND o.key <> a.key AND o.paths && a.paths)
        OR EXISTS (SELECT FROM reservations r WHERE r.case_id = a.case_id AND r.paths && a.paths) AS whole FROM added a
    ), affected AS (
      UPDATE reservations r SET bytes = r.whole_bytes, files = r.whole_files
      FROM added a WHERE r.case_id = a.case_id AND r.paths && a.paths
    )
    INSERT INTO reservations (case_id, reservation_key, tree_id, run_id, paths, bytes, files, whole_bytes, whole_files)
    SELECT c.case_id, c.key, p_trees[c.append], c.run_id, c.paths,
      CASE WHEN c.whole THEN c.whole_bytes ELSE c.bytes END,
      CASE WHEN c.whole THEN c.whole_files ELSE c.files END, c.whole_bytes, c.whole_files
    FROM counted c ON CONFLICT DO NOTHING;
    UPDATE cases c SET reserved_bytes = c.reserved_bytes + a.bytes, reserved_files = c.reserved_files + a.files
    FROM (SELECT q.case_id, sum(n.whole_bytes) AS bytes, sum(n.whole_files) AS files
          FROM unnest(v_changes) AS q, unnest(q.reserved) AS n
          WHERE q.changed AND p_statuses[q.append] = 'committed' GROUP BY q.case_id) AS a
    WHERE c.case_id = a.case_id;
  END IF;
  UPDATE cases c SET quota_version = CASE WHEN c.quota_version = q.version AND NOT q.refused THEN v_next
                                          ELSE v_next || '+' END
  FROM (SELECT q.case_id, min(q.version) AS version,
          bool_or(p_statuses[q.append] = 'conflict') OR count(DISTINCT q.version) > 1 AS refused
        FROM unnest(v_changes) AS q GROUP BY q.case_id
        HAVING bool_or(q.changed AND p_statuses[q.append] = 'committed')) AS q
  WHERE c.case_id = q.case_id;
  UPDATE cases c SET label_version = c.label_version + 1 WHERE c.case_id IN (
    SELECT l.case_id FROM jsonb_populate_recordset(NULL::label_change, p_quotas -> 'labels') AS l
    WHERE l.raised AND p_statuses[l.append] = 'committed');
END $body$;
