// Opens the database that a home names. The driver is loaded only here and in what this imports lazily.

import { headFile } from '../../adapters/ledger/head-file.js';
import { overlayFile, overlayFiles } from '../../adapters/policy/overlay-file.js';
import { LedgerError, usageError } from '../../errors.js';
import type { ClusterDirectory } from '../../ports/ledger/cluster.js';
import type { SharedLedgerStore } from '../../ports/ledger/shared-store.js';
import type { OverlaySource } from '../../ports/overlay-source.js';
import { erasureSealOf, openSignable, type HomePaths, type HomeStores } from '../../runtime/home/home.js';
import { readLedgerVerifier } from '../../runtime/home/ledger-key.js';
import { readStoreHome, readVolume, type StoreHome } from '../../runtime/home/store-home.js';
import { withoutPassword } from '../../runtime/home/hide-passwords.js';
import type { CommandOption } from '../command.js';

export const SCHEMA_DEFAULT = 'turnpike';

/** The option of commands that may name the database of the home again, for example with a password. */
export const STORE_OPTION: CommandOption = {
  name: 'store',
  value: 'URL',
  help: 'the PostgreSQL database of the ledger (default: the one that the home names)',
};

/** A home whose ledger is in a database, and the URL to use now. */
export interface SharedHome {
  readonly paths: HomePaths;
  readonly stored: StoreHome;
  /** May contain a password. */
  readonly url: string;
}

/**
 * @param url the option `--store`
 * @returns null for a home with a ledger of its own
 * @throws UsageError if that is combined with `--store`
 */
export function findSharedHome(paths: HomePaths, url: string | undefined): SharedHome | null {
  if (url !== undefined) withoutPassword(url);
  const stored = readStoreHome(paths.home);
  if (stored !== null) return { paths, stored, url: url ?? stored.url };
  if (url === undefined) return null;
  throw usageError(
    `${paths.home} does not name a database: create a home with \`turnpike init --store URL --home DIR\``,
  );
}

/** Opens the list of workers. */
export async function openCluster(
  { url, stored: { schema } }: SharedHome,
  readOnly = false,
): Promise<ClusterDirectory> {
  const { openPostgresCluster } = await import('../../adapters/postgres/cluster/postgres-cluster.js');
  return openPostgresCluster({ url, schema, readOnly });
}

/**
 * Opens the ledger for writing, as one of several workers.
 * @throws LedgerError LEDGER_CONFLICT if it is not the ledger of this home, or has other keys
 */
export async function openSharedStore(shared: SharedHome): Promise<SharedLedgerStore> {
  const { openPostgresStore } = await import('../../adapters/postgres/postgres-ledger-store.js');
  await checkInstallation(shared);
  const { url, paths, stored } = shared;
  return openPostgresStore({ url, schema: stored.schema, caseKeysDir: paths.caseKeys });
}

/** Opens the ledger and the head file of the home for reading. @throws as `openSharedStore` */
export async function openSharedReader(shared: SharedHome): Promise<HomeStores> {
  const { openPostgresStore } = await import('../../adapters/postgres/postgres-ledger-store.js');
  await checkInstallation(shared);
  const { url, paths, stored } = shared;
  const erasureSeal = erasureSealOf(paths, { readOnly: true });
  const place = { url, schema: stored.schema, caseKeysDir: paths.caseKeys };
  const store = await openPostgresStore({ ...place, readOnly: true, erasureSeal });
  try {
    return { store, anchor: openSignable((seal) => headFile(paths.head, seal), paths, { readOnly: true }).anchor };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** The emergency overlay in the key folder, which all workers share. */
export const sharedOverlay = ({ overlay, keys }: HomePaths): OverlaySource => overlayFile(overlayFiles(overlay, keys));

async function checkInstallation(shared: SharedHome): Promise<void> {
  const { paths, stored } = shared;
  const cluster = await openCluster(shared, true);
  try {
    const installation = await cluster.installation();
    if (installation?.ledger_id !== stored.ledger_id) {
      throw otherLedgerError(`the database has another ledger than ${paths.home}: name its database with --store`);
    }
    if (readLedgerVerifier(paths.ledgerKey)?.vkey !== installation.vkey) {
      throw otherLedgerError(`the keys in ${paths.keys} are not those of the ledger: mount its key folder there`);
    }
  } finally {
    await cluster.close();
  }
  if (stored.sandbox === null || readVolume(paths.sandbox)?.id === stored.volume_id) return;
  throw otherLedgerError(`${paths.sandbox} is not the volume of ${paths.home}: mount that volume there`);
}

const otherLedgerError = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_CONFLICT', message });
