// The reservations of cases, as `SharedLedgerStore` describes them. A row for each decided change, and a version in the
// row of the case, whose lock serializes the commits that change them or depend on them.

import { parseOwnJson } from '../../../core/contract/json.js';
import type { CaseQuota, CaseReservation, SharedBatch } from '../../../engine/ports/ledger/shared-store.js';
import { tamperedError } from '../../ledger/store-errors.js';
import type { ReaderPool, Row } from '../postgres-connection.js';
import { idParameter, integerOf, textOf } from '../values/postgres-values.js';
import { labelChanges } from './postgres-labels.js';

/**
 * The changes of reservations and labels as JSON: `tree` is the position of the append, from 1.
 * @returns null without changes
 */
export function quotaParameter({ quota_version, trees }: SharedBatch): string | null {
  const changes = trees.flatMap(({ quotas }, at) =>
    quotas.map(({ case_id, version, isChecked, total, room, reserved, released }) => ({
      tree: at + 1,
      case_id,
      version,
      checked: isChecked,
      changed: reserved.length > 0 || released.length > 0,
      ...(room === null ? {} : { limit_bytes: total.bytes + room.bytes, limit_files: total.files + room.files }),
      released,
      reserved: reserved.map(({ key, run_id, paths, bytes, files, whole }) => ({
        ...{ key, run_id, paths, bytes, files },
        ...{ whole_bytes: whole.bytes, whole_files: whole.files },
      })),
    })),
  );
  const labels = labelChanges(trees);
  return changes.length + labels.length === 0 ? null : JSON.stringify({ next: quota_version, changes, labels });
}

const QUOTAS = `SELECT k.place, c.quota_version, coalesce(c.reserved_bytes, 0) AS total_bytes,
    coalesce(c.reserved_files, 0) AS total_files, r.reservation_key, r.run_id, to_json(r.paths) AS paths, r.bytes, r.files,
    r.whole_bytes, r.whole_files
  FROM unnest($1::text[]) WITH ORDINALITY AS k (case_id, place) LEFT JOIN cases c ON c.case_id = k.case_id
  LEFT JOIN reservations r ON r.case_id = c.case_id ORDER BY k.place, r.reservation_key`;

/** See `SharedLedgerStore.caseQuotas`. One statement, so the version and the reservations are of one state. */
export async function readQuotas(pool: ReaderPool, case_ids: readonly string[]): Promise<readonly CaseQuota[]> {
  const rows = await pool.read(QUOTAS, [case_ids.map(idParameter)]);
  return case_ids.map((_, index) => {
    const own = rows.filter((row) => row['place'] === String(index + 1));
    const reservations = own.filter((row) => row['reservation_key'] !== null).map(reservationOf);
    const [first = {}] = own;
    const what = 'a case';
    const total = { bytes: integerOf(first, 'total_bytes', what), files: integerOf(first, 'total_files', what) };
    return { version: first['quota_version'] ?? '', reservations, total };
  });
}

function reservationOf(row: Row): CaseReservation {
  const what = 'a reservation';
  const paths: unknown = parseOwnJson(row['paths'] ?? 'null');
  if (!Array.isArray(paths) || !paths.every((path) => typeof path === 'string'))
    throw tamperedError(`${what} has no paths`);
  return {
    key: textOf(row, 'reservation_key', what),
    run_id: textOf(row, 'run_id', what),
    paths,
    bytes: integerOf(row, 'bytes', what),
    files: integerOf(row, 'files', what),
    whole: { bytes: integerOf(row, 'whole_bytes', what), files: integerOf(row, 'whole_files', what) },
  };
}

/** The changes as rows. */
const CHANGES = `jsonb_to_recordset(p_quota -> 'changes')
  AS q (tree integer, case_id text, version text, checked boolean, changed boolean, released jsonb, reserved jsonb)`;

/** Locks all cases of a batch at once, in the order of their ids. */
const LOCK_RESERVATIONS = `
CREATE FUNCTION lock_reservations(p_quota jsonb, p_cases text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  v_cases text[] := p_cases || (SELECT array_agg(q.case_id) FROM ${CHANGES});
BEGIN
  INSERT INTO cases (case_id) SELECT DISTINCT c COLLATE "C" FROM unnest(v_cases) AS c ORDER BY c COLLATE "C"
  ON CONFLICT DO NOTHING;
  PERFORM 1 FROM cases c WHERE c.case_id = ANY (v_cases) ORDER BY c.case_id FOR UPDATE;
END $body$;`;

/** The changes as rows, and up to which total of the case the decisions hold. */
const LIMITED_CHANGES = `jsonb_to_recordset(p_quota -> 'changes') AS q (tree integer, case_id text, version text,
      checked boolean, changed boolean, limit_bytes bigint, limit_files bigint)`;

/**
 * The statuses, with the conflicts of appends that depend on other reservations than the case has. A change also holds
 * while no more was reserved than it leaves room for.
 */
const RESERVATION_STATUSES = `
CREATE FUNCTION reservation_statuses(p_quota jsonb, p_statuses text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  v_tree integer;
BEGIN
  FOR v_tree IN
    SELECT q.tree FROM ${CHANGES} WHERE q.checked AND q.case_id IN (
      SELECT q.case_id FROM ${LIMITED_CHANGES} JOIN cases c ON c.case_id = q.case_id
      WHERE p_statuses[q.tree] = 'conflict'
        OR (p_statuses[q.tree] = 'committed' AND q.checked AND c.quota_version <> q.version
            AND (c.reserved_bytes <= q.limit_bytes AND c.reserved_files <= q.limit_files) IS NOT TRUE))
  LOOP
    IF p_statuses[v_tree] = 'committed' THEN p_statuses[v_tree] := 'conflict'; END IF;
  END LOOP;
  RETURN p_statuses;
END $body$;`;

/**
 * Applies the changes of committed appends. A new change counts whole if another one affects one of its paths. A case
 * of which an append was refused gets another version than the batch has: the worker may have decided more with it.
 */
const STORE_RESERVATIONS = `
CREATE FUNCTION store_reservations(p_quota jsonb, p_statuses text[], p_trees text[]) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
  v_next text := p_quota ->> 'next';
BEGIN
  DELETE FROM reservations r USING ${CHANGES}, jsonb_array_elements_text(q.released) AS o (run_id)
  WHERE q.changed AND p_statuses[q.tree] = 'committed'
    AND r.tree_id = p_trees[q.tree] AND r.run_id = o.run_id AND r.case_id = q.case_id;
  IF p_quota @? '$.changes[*].reserved[*]' THEN
    WITH added AS (
      SELECT q.tree, q.case_id, n.* FROM ${CHANGES}, jsonb_to_recordset(q.reserved) AS n (key text, run_id text,
        paths text[], bytes bigint, files bigint, whole_bytes bigint, whole_files bigint)
      WHERE q.changed AND p_statuses[q.tree] = 'committed'
    ), counted AS (
      SELECT a.*, EXISTS (SELECT FROM added o WHERE o.case_id = a.case_id AND o.key <> a.key AND o.paths && a.paths)
        OR EXISTS (SELECT FROM reservations r WHERE r.case_id = a.case_id AND r.paths && a.paths) AS whole FROM added a
    ), affected AS (
      UPDATE reservations r SET bytes = r.whole_bytes, files = r.whole_files
      FROM added a WHERE r.case_id = a.case_id AND r.paths && a.paths
    )
    INSERT INTO reservations (case_id, reservation_key, tree_id, run_id, paths, bytes, files, whole_bytes, whole_files)
    SELECT c.case_id, c.key, p_trees[c.tree], c.run_id, c.paths, CASE WHEN c.whole THEN c.whole_bytes ELSE c.bytes END,
      CASE WHEN c.whole THEN c.whole_files ELSE c.files END, c.whole_bytes, c.whole_files
    FROM counted c ON CONFLICT DO NOTHING;
    UPDATE cases c SET reserved_bytes = c.reserved_bytes + a.bytes, reserved_files = c.reserved_files + a.files
    FROM (SELECT q.case_id, sum(n.whole_bytes) AS bytes, sum(n.whole_files) AS files
          FROM ${CHANGES}, jsonb_to_recordset(q.reserved) AS n (whole_bytes bigint, whole_files bigint)
          WHERE q.changed AND p_statuses[q.tree] = 'committed' GROUP BY q.case_id) AS a
    WHERE c.case_id = a.case_id;
  END IF;
  UPDATE cases c SET quota_version = CASE WHEN c.quota_version = q.version AND NOT q.refused THEN v_next
                                          ELSE v_next || '+' END
  FROM (SELECT q.case_id, min(q.version) AS version,
          bool_or(p_statuses[q.tree] = 'conflict') OR count(DISTINCT q.version) > 1 AS refused
        FROM ${CHANGES} GROUP BY q.case_id HAVING bool_or(q.changed AND p_statuses[q.tree] = 'committed')) AS q
  WHERE c.case_id = q.case_id;
END $body$;`;

/** The functions that those of the labels call (postgres-labels.ts). */
export const CREATE_RESERVATION_FUNCTIONS = [LOCK_RESERVATIONS, RESERVATION_STATUSES, STORE_RESERVATIONS].join('\n');
