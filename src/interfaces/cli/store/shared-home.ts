// Opens the database that a home names. The driver is loaded only here and in what this imports lazily.

import { headFile } from '../../../stores/ledger/head-file.js';
import { overlayFile, overlayFiles } from '../../../home/policy/overlay-file.js';
import { LedgerError, usageError } from '../../../core/errors.js';
import { keysOf } from '../../../core/ledger/proof/key-history.js';
import type { ClusterDirectory, Installation } from '../../../engine/ports/ledger/cluster.js';
import type { SharedLedgerStore } from '../../../engine/ports/ledger/shared-store.js';
import type { OverlaySource } from '../../../engine/ports/policy-sources.js';
import { erasureSealOf, openSharedHead, openSignable, type HomePaths, type HomeStores } from '../../../home/home.js';
import { hasUnfinishedRotation } from '../../../home/keys/rotate-ledger-key.js';
import { readLedgerVerifier } from '../../../home/ledger-key.js';
import { readStoreHome, readVolume, type StoreHome } from '../../../home/store-home.js';
import { withoutPassword } from '../../../home/hide-passwords.js';
import type { CommandArguments, CommandOption } from '../command.js';
import { errorCode } from '../../../system/error-code.js';

export const SCHEMA_DEFAULT = 'turnpike';

/** The option of commands that may name the database of the home again, for example with a password. */
export const STORE_OPTION = {
  name: 'store',
  value: 'URL',
  help: 'the PostgreSQL database of the ledger (default: the one that the home names)',
} as const satisfies CommandOption;

/** Where the workers also store their heads; like `STORE_OPTION`, it may have a password. */
export const HEADS_OPTION = {
  name: 'heads',
  value: 'URL',
  help: 'a database of another server, where workers also store their newest heads (default: none)',
} as const satisfies CommandOption;

/** A home whose ledger is in a database, and the URL to use now. */
export interface SharedHome {
  readonly paths: HomePaths;
  readonly stored: StoreHome;
  /** May contain a password. */
  readonly url: string;
  /** The database of heads; null: heads are only in files. */
  readonly heads: string | null;
}

/**
 * @param args the options `--store` and `--heads`
 * @returns null for a home with a ledger of its own
 * @throws UsageError if that is combined with `--store`
 */
export function findSharedHome(
  paths: HomePaths,
  { values: { store: url, heads } }: { readonly values: Pick<CommandArguments['values'], 'store' | 'heads'> },
): SharedHome | null {
  if (url !== undefined) withoutPassword(url);
  if (heads !== undefined) withoutPassword(heads, HEADS_OPTION.name);
  const stored = readStoreHome(paths.home);
  if (stored !== null) return { paths, stored, url: url ?? stored.url, heads: heads ?? null };
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
  const { openPostgresCluster } = await importWithPackage(
    'pg',
    () => import('../../../stores/postgres/cluster/postgres-cluster.js'),
  );
  return openPostgresCluster({ url, schema, readOnly });
}

/**
 * Opens the ledger for writing, as one of several workers.
 * @param alone keeps all other writers out, for a rotation of the key, and for what an interrupted one has left
 * @throws LedgerError LEDGER_CONFLICT if it is not the ledger of this home, or has other keys
 */
export async function openSharedStore(
  shared: SharedHome,
  { alone = false }: { readonly alone?: boolean } = {},
): Promise<SharedLedgerStore> {
  const { openPostgresStore } = await importWithPackage(
    'pg',
    () => import('../../../stores/postgres/postgres-ledger-store.js'),
  );
  const { url, paths, stored } = shared;
  const place = { url, schema: stored.schema, caseKeysDir: paths.caseKeys };
  const store = await openPostgresStore({ ...place, ...headsOf(shared), alone });
  try {
    // After the opening: the store refuses to join once the key was rotated since.
    await checkInstallation(shared);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

const headsOf = ({ heads }: SharedHome) => (heads === null ? {} : { heads });

/**
 * Whether a rotation of the key was interrupted, or is running in another process.
 * @throws LedgerError as `openSharedStore`
 */
export async function hasOpenRotation(shared: SharedHome): Promise<boolean> {
  const { ledgerKey } = shared.paths;
  const cluster = await openCluster(shared, true);
  try {
    if ((await cluster.isRotating()) || hasUnfinishedRotation(ledgerKey)) return true;
    // A database that was restored from before a rotation names an older key.
    const installation = await cluster.installation();
    return (
      installation !== null &&
      readLedgerVerifier(ledgerKey)?.vkey !== installation.vkey &&
      isKeyOf(shared, installation)
    );
  } finally {
    await cluster.close();
  }
}

/**
 * Opens the ledger and the head file of the home for reading. @throws as `openSharedStore`
 * @param allHeads also reads the heads of the other workers
 */
export async function openSharedReader(
  shared: SharedHome,
  { allHeads = false }: { readonly allHeads?: boolean } = {},
): Promise<HomeStores> {
  const { openPostgresStore } = await importWithPackage(
    'pg',
    () => import('../../../stores/postgres/postgres-ledger-store.js'),
  );
  await checkInstallation(shared);
  const { url, paths, stored } = shared;
  const erasureSeal = erasureSealOf(paths, { readOnly: true });
  const place = { url, schema: stored.schema, caseKeysDir: paths.caseKeys };
  const heads = allHeads ? headsOf(shared) : {};
  const store = await openPostgresStore({ ...place, ...heads, readOnly: true, erasureSeal });
  try {
    if (allHeads)
      return { store, externalHeadStore: openSharedHead(store, paths, paths, { readOnly: true }).externalHeadStore };
    return {
      store,
      externalHeadStore: openSignable((seal) => headFile(paths.head, seal), paths, { readOnly: true })
        .externalHeadStore,
    };
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
    if (!isKeyOf(shared, installation)) throw otherKeysError(shared, installation);
  } finally {
    await cluster.close();
  }
  if (stored.sandbox === null || readVolume(paths.sandbox)?.id === stored.volume_id) return;
  throw otherLedgerError(`${paths.sandbox} is not the volume of ${paths.home}: mount that volume there`);
}

/** Whether the key folder knows the key of the ledger: it is the current one, or an unfinished rotation replaces it. */
function isKeyOf({ paths: { ledgerKey } }: SharedHome, { vkey }: Installation): boolean {
  const verifier = readLedgerVerifier(ledgerKey);
  return verifier !== null && keysOf(verifier).some((key) => key.vkey === vkey);
}

function otherKeysError({ paths: { keys, ledgerKey } }: SharedHome, { vkey }: Installation): LedgerError {
  const [own, current] = [readLedgerVerifier(ledgerKey)?.name, vkey.split('+')[0]];
  if (own === undefined || own !== current)
    return otherLedgerError(`the keys in ${keys} are not those of the ledger: mount its key folder there`);
  return otherLedgerError(
    `the key of the ledger was rotated, and ${keys} is a copy of the key folder from before: ` +
      'mount the key folder of the ledger there, or copy it again, and destroy the old copy',
  );
}

const otherLedgerError = (message: string): LedgerError => new LedgerError({ code: 'LEDGER_CONFLICT', message });

/**
 * Loads a part of the command that needs an optional package.
 * @throws UsageError that names the package, if it is not installed
 */
export async function importWithPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const isMissing = /^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error));
    if (!isMissing || !String(error).includes(`'${name}'`)) throw error;
    throw usageError(`this needs the package ${name}, which is not installed: run \`npm install ${name}\``);
  }
}
