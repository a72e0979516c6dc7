// The reservations and labels of cases, as `SharedLedgerStore` describes them. A reservation is a row for each decided
// change. Both have a version in the row of the case, whose lock serializes the commits that change them or depend on
// them (sql/quotas.sql).

import { parseOwnJson } from '../../../core/contract/json.js';
import type {
  CaseQuota,
  CaseReservation,
  SharedAppend,
  SharedBatch,
} from '../../../engine/ports/ledger/shared-store.js';
import { tamperedError } from '../../ledger/store-errors.js';
import type { CommitRecord, QuotasJson } from '../commit-records.js';
import type { ReaderPool } from '../postgres-connection.js';
import { idParameter, integerOf, textOf, type Row } from '../postgres-values.js';

/** What a batch does with reservations and labels. @returns null for nothing */
export function quotasJson({ quota_version, trees }: SharedBatch): QuotasJson | null {
  const changes = trees.flatMap(({ quotas }, at) => quotas.map((quota) => toChange(quota, at + 1)));
  const labels = trees.flatMap(({ label }, at) =>
    label === null ? [] : [{ append: at + 1, case_id: label.case_id, version: label.version, raised: label.isRaised }],
  );
  return changes.length + labels.length === 0 ? null : { next: quota_version, changes, labels };
}

function toChange(
  { case_id, version, isChecked, total, room, reserved, released }: SharedAppend['quotas'][number],
  append: number,
): CommitRecord<'quota_change'> {
  return {
    append,
    case_id,
    version,
    checked: isChecked,
    changed: reserved.length > 0 || released.length > 0,
    limit_bytes: room === null ? null : total.bytes + room.bytes,
    limit_files: room === null ? null : total.files + room.files,
    released,
    reserved: reserved.map(({ key, run_id, paths, bytes, files, whole }) => ({
      ...{ key, run_id, paths, bytes, files },
      ...{ whole_bytes: whole.bytes, whole_files: whole.files },
    })),
  };
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

const LABEL_VERSION = 'SELECT c.label_version FROM cases c WHERE c.case_id = $1';

/** See `SharedLedgerStore.labelVersion`. */
export async function readLabelVersion(pool: ReaderPool, case_id: string): Promise<number> {
  const [row] = await pool.read(LABEL_VERSION, [idParameter(case_id)]);
  return row === undefined ? 0 : integerOf(row, 'label_version', 'a case');
}
