import { LedgerError } from '../errors.js';
import type { Erased, Erasure } from '../ports/ledger-store.js';
import type { SqliteArtifacts } from './sqlite-artifacts.js';
import type { Connection } from './sqlite-database.js';

/**
 * Destroys the key of a case. Before that nothing is lost, and whatever else the ledger has of its content in the clear
 * is taken away, or encrypted with that key: so whoever is killed, or fails, has erased it or not, and the same erasure
 * can be asked for again.
 * @param inTransaction does the work in a transaction of its own; false, with nothing done, where that cannot be now
 */
export function eraseCase(
  { db, artifacts }: { readonly db: Connection; readonly artifacts: SqliteArtifacts },
  erasure: Erasure,
  inTransaction: (work: () => void) => boolean,
): Erased {
  const { case_id, tree_ids } = erasure;
  const erased = artifacts.ofCase(case_id);
  let removeFiles = (): void => undefined;
  const done = inTransaction(() => {
    removeFiles = artifacts.sealPlain(case_id);
    const forget = db.prepare('DELETE FROM snapshots WHERE tree_id = ?');
    for (const tree_id of tree_ids) forget.run(tree_id);
  });
  if (!done) throw notNow('rows of records wait');
  removeFiles();
  // What was deleted, or in the clear, stands in the log of the database still.
  const [log] = db.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
  if (log?.busy !== 0) throw notNow('somebody reads the ledger for long');
  artifacts.destroyKey(erasure, erased);
  return erased;
}

const notNow = (why: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: `the case cannot be erased now, because ${why}: ask again` });
