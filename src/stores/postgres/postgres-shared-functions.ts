// The SQL functions and tables for several workers. A worker is a row, and a session-level advisory lock
// that its session holds shared. A session that gets that lock exclusively knows that the
// worker's session is gone.

/** The first number of the advisory lock of a worker; the second is its number. */
export const WORKER_LOCK = 0x54505046;

const TABLES = `
  -- host, pid and started identify the process, so that a worker of the same host can prove that it is dead. The columns
  -- from version on are what the worker reports about itself.
  CREATE TABLE workers (
    worker_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    started text NOT NULL,
    backend_pid integer NOT NULL,
    over_at timestamptz,
    is_dead boolean NOT NULL DEFAULT false,
    joined_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    version text,
    refuses text,
    later_trees integer,
    address text,
    volume_id text,
    overlay_epoch integer
  );
  CREATE INDEX workers_active ON workers (worker_id) WHERE over_at IS NULL;
  -- from_dead is null for a lease that its worker took on itself. Otherwise the worker has claimed it, and
  -- from_dead says whether the former worker was known to be dead.
  CREATE TABLE leases (
    kind text NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    tree_id text COLLATE "C" NOT NULL,
    worker_id integer NOT NULL,
    from_dead boolean,
    PRIMARY KEY (run_id, kind)
  );
  CREATE INDEX leases_of_worker ON leases (worker_id);
  CREATE INDEX duties_of_tree ON leases (tree_id);`;

/** The parameters of commit_batch after its first two, with their types. */
const BATCH_PARAMETERS = [
  ...['text[]', 'integer[]', 'integer[]', 'text[]', 'boolean[]', 'boolean[]', 'text[]', 'text[]', 'integer[]'],
  ...['integer[]', 'integer[]', 'bytea', 'bytea', 'integer[]', 'integer[]', 'integer[]', 'integer[]'],
  ...['bigint[]', 'text[]', 'text[]', 'bigint[]', 'integer[]', 'integer[]', 'integer[]', 'bytea', 'bytea'],
  ...['integer[]', 'text[]', 'text[]', 'integer[]', 'text[]', 'integer[]', 'text[]'],
  ...['integer[]', 'integer[]', 'text[]', 'text[]', 'integer[]', 'integer[]', 'integer[]', 'bytea', 'bytea'],
  ...['text[]', 'integer[]', 'jsonb'],
];

/** How many parameters commit_shared has before those of commit_batch. */
const OWN_PARAMETERS = 6;
/** How many parameters commit_shared has. */
export const SHARED_PARAMETERS = OWN_PARAMETERS + BATCH_PARAMETERS.length;

/**
 * Commits each append alone, and the leases of those that were committed. The worker cannot be declared over during
 * the call: the calling session holds its lock.
 */
const COMMIT_SHARED = `
CREATE FUNCTION commit_shared(
  p_worker integer, p_lease_tree integer[], p_lease_kind text[], p_lease_run text[],
  p_released_tree integer[], p_released_run text[], ${BATCH_PARAMETERS.map((type, at) => `b${at + 1} ${type}`).join(', ')},
  OUT epoch_over boolean, OUT statuses text[], OUT content_nos bigint[]
) LANGUAGE plpgsql AS $body$
BEGIN
  epoch_over := NOT EXISTS (SELECT FROM workers p WHERE p.worker_id = p_worker AND p.over_at IS NULL);
  IF epoch_over THEN RETURN; END IF;
  SELECT c.epoch_over, c.statuses, c.content_nos INTO epoch_over, statuses, content_nos
  FROM commit_batch((SELECT m.epoch FROM meta m), false, ${BATCH_PARAMETERS.map((_, at) => `b${at + 1}`).join(', ')}) AS c;
  INSERT INTO leases (kind, run_id, tree_id, worker_id)
  SELECT d.kind, d.run_id, b1[d.tree], p_worker
  FROM unnest(p_lease_tree, p_lease_kind, p_lease_run) AS d (tree, kind, run_id) WHERE statuses[d.tree] = 'committed'
  ON CONFLICT (run_id, kind) DO UPDATE SET worker_id = excluded.worker_id, from_dead = NULL;
  IF cardinality(p_released_tree) > 0 THEN
    DELETE FROM leases d USING unnest(p_released_tree, p_released_run) AS r (tree, run_id)
    WHERE d.run_id = r.run_id AND statuses[r.tree] = 'committed';
  END IF;
  IF true = ANY (b5) THEN
    DELETE FROM leases d USING unnest(b1, b5, statuses) AS a (tree_id, ended, status)
    WHERE d.tree_id = a.tree_id AND a.ended AND a.status = 'committed';
  END IF;
END $body$;`;

/** Declares every worker over whose lock is free. Returns how many. */
const END_LOST = `
CREATE FUNCTION end_lost_workers(p_worker integer) RETURNS integer LANGUAGE plpgsql AS $body$
DECLARE
  v_worker integer;
  v_ended integer := 0;
BEGIN
  FOR v_worker IN SELECT p.worker_id FROM workers p WHERE p.over_at IS NULL AND p.worker_id <> p_worker
  LOOP
    IF pg_try_advisory_xact_lock(${WORKER_LOCK}, v_worker) THEN
      UPDATE workers SET over_at = clock_timestamp() WHERE worker_id = v_worker AND over_at IS NULL;
      v_ended := v_ended + 1;
    END IF;
  END LOOP;
  RETURN v_ended;
END $body$;`;

/** The tables and functions for several workers; they come after those for one. */
export const CREATE_SHARED = [TABLES, COMMIT_SHARED, END_LOST].join('\n');
