import { InvariantError } from '../errors.js';
import type { Erased, Erasure } from '../ports/ledger-store.js';
import type { SqliteArtifacts } from './sqlite-artifacts.js';
import type { Connection } from './sqlite-database.js';

/**
 * Destroys the key of a case, and what of its content was never encrypted with one. When it was cut short, the same
 * erasure does the rest.
 * @param inTransaction does the work in a transaction of its own; false, with nothing done, where that cannot be now
 */
export function eraseCase(
  { db, artifacts }: { readonly db: Connection; readonly artifacts: SqliteArtifacts },
  erasure: Erasure,
  inTransaction: (work: () => void) => boolean,
): Erased {
  const { case_id, tree_ids } = erasure;
  const erased = artifacts.ofCase(case_id);
  const key_no = artifacts.destroyKey(erasure, erased);
  let removeFiles = (): void => undefined;
  const done = inTransaction(() => {
    removeFiles = artifacts.blank(case_id, key_no);
    const forget = db.prepare('DELETE FROM snapshots WHERE tree_id = ?');
    for (const tree_id of tree_ids) forget.run(tree_id);
  });
  if (!done) throw new InvariantError('a case cannot be erased while rows of records wait');
  removeFiles();
  // What was deleted stands in the log of the database still.
  db.pragma('wal_checkpoint(TRUNCATE)');
  return erased;
}
