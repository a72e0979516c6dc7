-- Several workers of one ledger. A worker is a row, and a session-level advisory lock that its session holds shared. A
-- session that gets that lock exclusively knows that the session of the worker is gone.

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
CREATE INDEX duties_of_tree ON leases (tree_id);

-- Declares every worker over whose lock is free. Returns how many.
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
END $body$;
