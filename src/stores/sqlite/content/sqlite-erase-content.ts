import { LedgerError } from '../../../core/errors.js';
import type { ErasureResult, Erasure } from '../../../engine/ports/ledger/ledger-store.js';
import { removePlainFiles, sealArtifactFile } from './sqlite-artifact-files.js';
import type { ContentStorage, SqliteArtifacts } from './sqlite-artifacts.js';
import type { SqliteConnection } from '../sqlite-binding.js';
import { withoutTriggers } from '../sqlite-database.js';

interface ErasureParts {
  readonly db: SqliteConnection;
  readonly artifacts: SqliteArtifacts;
}

/**
 * Erases the content of a case by destroying its key. First it encrypts or removes all plain content of the case; until
 * the key is destroyed nothing is lost. So a crash or failure leaves the case either erased or not, and the operator
 * can repeat the erasure. A ledger in memory has no keys: its rows lose their bytes.
 * @param inTransaction runs the work in its own transaction; returns false, with nothing done, if it cannot now
 */
export function eraseCaseContent(
  parts: ErasureParts,
  erasure: Erasure,
  inTransaction: (work: () => void) => boolean,
): ErasureResult {
  const { db, artifacts } = parts;
  const { case_id, tree_ids } = erasure;
  const { storage } = artifacts;
  const erased = countContents(parts, case_id);
  let removeFiles = (): void => undefined;
  const isDone = inTransaction(() => {
    if (storage === null) removeBytes(db, case_id);
    else removeFiles = sealPlain(db, storage, case_id);
    const forget = db.prepare('DELETE FROM snapshots WHERE tree_id = ?');
    for (const tree_id of tree_ids) forget.run(tree_id);
  });
  if (!isDone) throw eraseLaterError('rows of records are pending');
  if (storage === null) {
    artifacts.forgetRecent();
    return erased;
  }
  removeFiles();
  // The WAL still contains what was deleted or was stored as plain content.
  const [log] = db.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
  if (log?.busy !== 0) throw eraseLaterError('a reader keeps a transaction open');
  artifacts.destroyKey(storage, erasure, erased);
  return erased;
}

/** The contents of a case that an erasure would remove. */
function countContents({ db, artifacts: { storage } }: ErasureParts, case_id: string): ErasureResult {
  const isLeft = storage === null ? 'bytes IS NOT NULL' : '(sealed = 0 OR sealed > @erased)';
  const sql = `SELECT count(*) AS contents, ifnull(sum(byte_size), 0) AS bytes FROM artifacts
    WHERE case_id = @case_id AND ${isLeft}`;
  const erased = storage?.keys.lastErased(case_id) ?? 0;
  return db.prepare(sql).get({ case_id, erased }) as ErasureResult;
}

/** Within the open transaction. */
function removeBytes(db: SqliteConnection, case_id: string): void {
  withoutTriggers(db, ['artifacts_update'], () => {
    db.prepare('UPDATE artifacts SET bytes = NULL WHERE case_id = ?').run(case_id);
  });
}

interface PlainRow {
  readonly artifact_no: number;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly bytes: Uint8Array | null;
}

/**
 * Encrypts contents from before case keys existed with the key of their case, within the open transaction. So nothing
 * is lost yet, and destroying the key destroys these contents too.
 * @returns a function that removes the plain files; call it after the commit
 */
function sealPlain(db: SqliteConnection, { directory, keys }: ContentStorage, case_id: string): () => void {
  const plain = db
    .prepare(`SELECT artifact_no, lower(hex(sha256)) AS sha256, bytes FROM artifacts WHERE case_id = ? AND sealed = 0`)
    .all(case_id) as PlainRow[];
  if (plain.length > 0) {
    const { no, cipher } = keys.currentKey(case_id);
    // The only rows that ever change, and only here.
    withoutTriggers(db, ['artifacts_update'], () => {
      const update = db.prepare('UPDATE artifacts SET bytes = ?, sealed = ? WHERE artifact_no = ?');
      for (const { artifact_no, sha256, bytes } of plain) {
        const seal = (content: Uint8Array): Uint8Array => cipher.seal(content, Buffer.from(sha256, 'hex'));
        if (bytes === null) sealArtifactFile({ directory, case_id, sha256, sealed: no }, seal);
        update.run(bytes === null ? null : seal(bytes), no, artifact_no);
      }
    });
  }
  return () => removePlainFiles(directory, case_id);
}

const eraseLaterError = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the case cannot be erased now, because ${why}: try again` });
