// Makes the target of a copy into PostgreSQL a home of a shared ledger: the keys and the volume are recorded in the
// database, and the folder names the database. So commands and workers open the copy like any shared ledger.

import { usageError, type UsageError } from '../../../core/errors.js';
import { withoutPassword } from '../../../home/hide-passwords.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { drawId, openVolume, writeStoreHome } from '../../../home/store-home.js';
import type { LedgerLocation } from '../../../home/ledger-location.js';

/**
 * Records the installation of a copy. Does nothing for an SQLite home.
 * @throws UsageError if the key folder has no ledger key; LedgerError LEDGER_UNAVAILABLE
 */
export async function installCopy({ paths, postgres }: LedgerLocation): Promise<void> {
  if (postgres === null) return;
  const { keys, ledgerKey, sandbox, home } = paths;
  const vkey = readLedgerSigner(ledgerKey)?.vkey;
  if (vkey === undefined) throw missingKeyError(keys);
  const { openPostgresCluster } = await import('../../../stores/postgres/cluster/postgres-cluster.js');
  const cluster = openPostgresCluster(postgres);
  try {
    const volume_id = openVolume(sandbox).id;
    const { ledger_id } = await cluster.install({ ledger_id: drawId('led_'), vkey, volume_id });
    const [url, { schema }] = [withoutPassword(postgres.url), postgres];
    writeStoreHome(home, { version: 1, url, schema, ledger_id, volume_id, keys, sandbox });
  } finally {
    await cluster.close();
  }
}

/** A shared ledger is identified by its key. @throws UsageError if a copy into PostgreSQL would have none */
export function requireKey(from: LedgerLocation, to: LedgerLocation): void {
  if (to.postgres !== null && readLedgerSigner(from.paths.ledgerKey) === null) throw missingKeyError(from.paths.keys);
}

const missingKeyError = (keys: string): UsageError =>
  usageError(`${keys} has no ledger key: open the source once, so that its heads are signed, and copy again`);
