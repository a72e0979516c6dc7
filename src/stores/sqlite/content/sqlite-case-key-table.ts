// The keys of the cases of an SQLite ledger. After a replacement, the contents of a case are encrypted with its current
// key, in parts (decision 0022). Each part is one transaction, whose files are durable before it. So a crash leaves
// each content under the replaced key or the current one; both are readable, and the work continues with what is left.

import { LedgerError } from '../../../core/errors.js';
import type { ResealedPart } from '../../../engine/ports/ledger/case-key-table.js';
import { type CaseKey, SEAL_BYTES } from '../../keys/case-keys.js';
import { truncateWal, type SqliteConnection } from '../sqlite-binding.js';
import { withoutTriggers } from '../sqlite-database.js';
import type { OpenCaseKeyTable } from '../sqlite-writer.js';
import { readArtifactFileSync, removeReplacedFiles, writeArtifactFile } from './sqlite-artifact-files.js';
import type { ContentStorage } from './sqlite-artifacts.js';

/** Rows that one part looks at, and bytes that it encrypts: some 50 ms. The first content may be larger. */
const ROWS_MAX = 2_000;
const BYTES_MAX = 8 * 1_024 * 1_024;

/** The keys of the cases of an SQLite ledger. */
export const openCaseKeyTable: OpenCaseKeyTable = ({ storage, writer, attempt }) => {
  const { keys } = storage;
  const onContents = <T>(work: (parts: ResealParts, inTransaction: (part: () => void) => boolean) => T): Promise<T> =>
    attempt(() => writer().onContents(({ db }, inTransaction) => work({ db, storage }, inTransaction)));
  return {
    cases: () => keys.cases().filter((case_id) => keys.has(case_id)),
    unfinished: () => keys.unfinishedReplacements(),
    begin: (case_id, by) => onContents((parts) => keys.replace(case_id, countCaseContents(parts, case_id), by)),
    reseal: (case_ids, from) => onContents((parts, inTransaction) => resealPart(parts, case_ids, from, inTransaction)),
    finish: (case_ids) =>
      onContents((parts) => {
        removeResealed(parts, case_ids);
        for (const case_id of case_ids) keys.destroyReplaced(case_id);
      }),
  };
};

interface ResealParts {
  readonly db: SqliteConnection;
  readonly storage: ContentStorage;
}

interface OldRow {
  readonly artifact_no: number;
  readonly case_id: string;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly byte_size: number;
  readonly sealed: number;
}

/** How many contents of the case an erasure would remove. */
function countCaseContents({ db, storage }: ResealParts, case_id: string): number {
  const sql = 'SELECT count(*) FROM artifacts WHERE case_id = ? AND sealed > ?';
  return Number(db.prepare(sql).pluck().get(case_id, storage.keys.lastErased(case_id)));
}

/**
 * Encrypts one part of the contents.
 * @param inTransaction runs the work in its own transaction; returns false, with nothing done, if it cannot now
 * @throws LedgerError LEDGER_UNAVAILABLE; LEDGER_TAMPERED for a content that its key does not open
 */
function resealPart(
  parts: ResealParts,
  case_ids: readonly string[],
  from: number,
  inTransaction: (work: () => void) => boolean,
): ResealedPart {
  const { db } = parts;
  const named = new Set(case_ids);
  const targets = new Map<string, Target>();
  const rows = rowsFrom(db, from, case_ids);
  const old: OldRow[] = [];
  let bytes = 0;
  let next = nextAfter(db, from);
  for (const row of rows) {
    if (!named.has(row.case_id)) continue;
    const target = targets.get(row.case_id) ?? targetOf(parts, row.case_id);
    targets.set(row.case_id, target);
    if (!isOld(row, target)) continue;
    if (old.length > 0 && bytes + row.byte_size > BYTES_MAX) {
      next = row.artifact_no;
      break;
    }
    old.push(row);
    bytes += row.byte_size;
  }
  if (old.length === 0) return { contents: 0, next };
  // `secure_delete` overwrites the rows as they were.
  const reseal = (): void => resealRows(parts, old);
  const isDone = inTransaction(() => withoutTriggers(db, ['artifacts_update'], reseal));
  if (!isDone) throw laterError('rows of records are pending');
  return { contents: old.length, next };
}

interface Target {
  readonly current: CaseKey;
  readonly lastErased: number;
}

const targetOf = ({ storage: { keys } }: ResealParts, case_id: string): Target => ({
  lastErased: keys.lastErased(case_id),
  current: keys.currentKey(case_id),
});

/** Whether a content is neither erased nor under the current key. */
const isOld = ({ sealed }: Pick<OldRow, 'sealed'>, { current, lastErased }: Target): boolean =>
  sealed > lastErased && sealed < current.no;

const COLUMNS = 'artifact_no, case_id, lower(hex(sha256)) AS sha256, byte_size, sealed';

function rowsFrom(db: SqliteConnection, from: number, case_ids: readonly string[]): readonly OldRow[] {
  const [one = ''] = case_ids;
  const where = case_ids.length === 1 ? 'case_id = @one' : 'case_id IS NOT NULL';
  const sql = `SELECT ${COLUMNS} FROM artifacts WHERE artifact_no >= @from AND artifact_no < @end AND ${where}
    ORDER BY artifact_no`;
  const range = { from, end: from + ROWS_MAX };
  return db.prepare(sql).all(case_ids.length === 1 ? { ...range, one } : range) as OldRow[];
}

/** @returns null if no rows follow the part from here */
function nextAfter(db: SqliteConnection, from: number): number | null {
  const sql = 'SELECT min(artifact_no) FROM artifacts WHERE artifact_no >= ?';
  return db
    .prepare(sql)
    .pluck()
    .get(from + ROWS_MAX) as number | null;
}

function resealRows({ db, storage: { directory, keys } }: ResealParts, rows: readonly OldRow[]): void {
  const read = db.prepare('SELECT bytes FROM artifacts WHERE artifact_no = ?').pluck();
  const update = db.prepare('UPDATE artifacts SET bytes = ?, sealed = ? WHERE artifact_no = ?');
  for (const { artifact_no, case_id, sha256, byte_size, sealed } of rows) {
    const place = { directory, case_id, sha256, sealed };
    const inline = read.get(artifact_no) as Uint8Array | null;
    const stored = inline ?? readArtifactFileSync(place, byte_size + SEAL_BYTES);
    const resealed = keys.reseal({ case_id, key_no: sealed, sha256, stored });
    if (inline === null) writeArtifactFile({ ...place, sealed: resealed.key_no }, resealed.stored);
    update.run(inline === null ? null : resealed.stored, resealed.key_no, artifact_no);
  }
}

/**
 * Removes the files of contents under replaced keys, and the bytes of rows under them.
 * @throws LedgerError LEDGER_UNAVAILABLE if contents under a replaced key remain, or a reader keeps old pages
 */
function removeResealed(parts: ResealParts, case_ids: readonly string[]): void {
  const { db, storage } = parts;
  const left = keysInUse(db, case_ids).find(({ case_id, sealed }) => isOld({ sealed }, targetOf(parts, case_id)));
  if (left !== undefined) throw laterError(`contents of ${left.case_id} are still under a replaced key`);
  // The WAL still contains the rows as they were.
  if (!truncateWal(db)) throw laterError('a reader keeps a transaction open');
  for (const case_id of case_ids) removeReplacedFiles(storage.directory, case_id, storage.keys.currentKey(case_id).no);
}

/** The keys of the contents of these cases, with one pass over the table. */
function keysInUse(db: SqliteConnection, case_ids: readonly string[]): readonly Pick<OldRow, 'case_id' | 'sealed'>[] {
  const [one = ''] = case_ids;
  const where = case_ids.length === 1 ? 'case_id = @one' : 'case_id IS NOT NULL';
  const sql = `SELECT DISTINCT case_id, sealed FROM artifacts WHERE ${where}`;
  const found = db.prepare(sql).all(case_ids.length === 1 ? { one } : {}) as Pick<OldRow, 'case_id' | 'sealed'>[];
  const named = new Set(case_ids);
  return found.filter(({ case_id }) => named.has(case_id));
}

const laterError = (why: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNAVAILABLE',
    message: `the rotation cannot be finished now, because ${why}: rotate the key again, which finishes it`,
  });
