-- Gives appends their log indexes, if the log still has the size p_size_before. Each must be the next of its tree:
-- otherwise the error has SQLSTATE TP001. It joins two lists of the call, for which there is no index (see the settings
-- in postgres-connection.ts). An announcement has at most 64 trees: a payload has at most 8,000 bytes.
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
  FROM (SELECT a.tree_id, max(a.seq + a.count) AS length, (row_number() OVER () - 1) / 64 AS page
        FROM unnest(p_trees, p_seqs, p_counts) AS a (tree_id, seq, count) GROUP BY a.tree_id) AS g
  GROUP BY g.page;
  RETURN true;
END $body$;
