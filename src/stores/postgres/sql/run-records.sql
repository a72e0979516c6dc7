-- Stores run records. Records of a recorded tree never change (SQLSTATE TP002): of several workers the first one writes
-- them, and the others write nothing. Returns false if the epoch is over.
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
END $body$;
