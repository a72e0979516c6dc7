// `turnpike init --store`: creates a ledger in a database, or a further home for a worker of an existing one.
//
// The order makes an interrupted command repeatable: keys, tables, volume, head file, and the file that makes the home.

import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { headFile } from '../../../stores/ledger/head-file.js';
import { refuseNetworkFileSystem } from '../../../sandbox/files/network-file-system.js';
import { createPostgresStore, openPostgresStore } from '../../../stores/postgres/postgres-ledger-store.js';
import { hasPostgresLedger, openPostgresCluster } from '../../../stores/postgres/cluster/postgres-cluster.js';
import { usageError } from '../../../core/errors.js';
import type { ClusterDirectory, Installation } from '../../../engine/ports/ledger/cluster.js';
import type { LogHead } from '../../../engine/ports/ledger/ledger-store.js';
import { isVacant, makeFolder } from '../../../home/home.js';
import { homePaths, keyFolder, type KeyFolder } from '../../../home/home-paths.js';
import { createHeadSeal, ensureLedgerKey, readLedgerSigner } from '../../../home/ledger-key.js';
import { drawId, openVolume, readVolume, writeStoreHome, type Volume } from '../../../home/store-home.js';
import { ignoreInGit } from '../../../home/tracked-keys.js';
import { withoutPassword } from '../../../home/hide-passwords.js';
import type { ExitCode } from '../command.js';
import { createContract, writeExample, type ExampleFile, type TemplateName } from '../templates.js';
import type { Io } from '../io.js';
import { displayPath } from '../options/folders.js';
import { escapeLines, jsonLine } from '../text/terminal.js';

/** The options of `turnpike init` for a ledger in a database. */
interface StoreOptions {
  readonly schema: string;
  readonly keys: string | undefined;
  readonly sandbox: string | undefined;
  readonly volume: string | undefined;
  readonly unsafeShared: boolean;
  readonly withoutVolume: boolean;
  readonly template: TemplateName;
  readonly json: boolean;
}

interface NewHome {
  readonly home: string;
  readonly contract: string;
  readonly url: string;
  /** The private ledger key that the user chose; undefined: a new one. */
  readonly key: string | undefined;
}

interface Place {
  readonly url: string;
  readonly schema: string;
  readonly keys: KeyFolder;
  /** Null for a worker without the volume. */
  readonly sandbox: string | null;
  /** The option `--volume`. */
  readonly volumeName: string | undefined;
}

/** @throws UsageError if the home exists, or the ledger has other keys or another volume */
export async function initStore(given: NewHome, options: StoreOptions, io: Io): Promise<ExitCode> {
  const { home, contract, url, key } = given;
  if (!isVacant(home)) throw usageError(`${home} is not empty, and nothing was created: name another folder`);
  const { schema, volume: volumeName, template, unsafeShared: isUnsafe } = options;
  const keys = keyFolder(options.keys ?? join(home, 'keys'));
  const sandbox = sandboxOf(options, home);
  const place: Place = { url, schema, keys, sandbox, volumeName };
  const shownUrl = withoutPassword(url);
  const isNew = !(await hasPostgresLedger(place));
  if (isNew && sandbox === null) throw usageError('the first home of a ledger has its volume: omit --without-volume');
  const { vkey, head } = await withoutRemains([home, keys.keys, sandbox], async () => {
    if (sandbox !== null && !isUnsafe) {
      makeFolder(sandbox);
      refuseNetworkFileSystem(sandbox);
    }
    const signer = isNew ? createKeys(keys, key) : requireKeys(place, key);
    return { vkey: signer, head: await openLedger(place, isNew) };
  });
  const { ledger_id, volume_id, volume } = await withCluster(place, (cluster) => install(cluster, place, vkey, head));
  makeFolder(home);
  ignoreInGit(home);
  await writeHead(home, keys, head);
  const hasContract = existsSync(contract) && !isVacant(contract);
  if (!hasContract) await createContract(contract, template, () => Promise.resolve());
  const places = { home: displayPath(home, io), contract: displayPath(contract, io) };
  const files = hasContract ? [] : await writeExample(template, io.cwd, places);
  const stored = { version: 1, url: shownUrl, schema, ledger_id, volume_id } as const;
  const unsafe = isUnsafe ? ({ unsafe_shared: true } as const) : {};
  writeStoreHome(home, { ...stored, ...unsafe, keys: keys.keys, sandbox });
  const result = {
    home,
    contract,
    ledger: isNew ? 'created' : 'joined',
    ledger_id,
    keys: keys.keys,
    sandbox,
    volume,
    files,
  };
  const lines = [
    `${isNew ? 'created the ledger    ' : 'joined the ledger     '} ${ledger_id} in schema ${schema} of ${shownUrl}`,
    `home directory         ${home}/`,
    `contract folder        ${contract}/`,
    `key folder             ${keys.keys}/  (all workers need it; back it up apart from the database)`,
    ...exampleLines(files),
    `sandbox volume         ${volume === null ? 'none: other workers execute the steps' : `${volume.name} in ${sandbox}/`}`,
    '',
    'next: turnpike serve --home DIR, on as many machines as you like; turnpike cluster status shows them',
  ];
  await io.stdout.write(options.json ? jsonLine(result) : escapeLines(lines));
  return 0;
}

const exampleLines = (files: readonly ExampleFile[]): readonly string[] =>
  (['created', 'kept'] as const).flatMap((state) => {
    const names = files.filter((file) => file.state === state).map(({ name }) => name);
    const label = state === 'created' ? 'created the example   ' : 'not replaced          ';
    return names.length === 0 ? [] : [`${label} ${names.join(', ')}`];
  });

/**
 * Does `work`, which makes the tables last. If it fails, removes the folders that it has created: no table names them
 * yet, and the command can be repeated.
 */
async function withoutRemains<T>(folders: readonly (string | null)[], work: () => Promise<T>): Promise<T> {
  const missing = folders
    .filter((folder) => folder !== null)
    .map(firstMissing)
    .filter((folder) => folder !== null);
  try {
    return await work();
  } catch (error) {
    for (const folder of missing) rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

/** The highest folder of the path that does not exist; null if all do. */
function firstMissing(folder: string): string | null {
  if (existsSync(folder)) return null;
  return firstMissing(dirname(folder)) ?? folder;
}

/** Existing keys are used: an earlier command may have been interrupted. @returns the public key */
function createKeys(keys: KeyFolder, key: string | undefined): string {
  makeFolder(keys.keys);
  ignoreInGit(keys.keys);
  return ensureLedgerKey(keys.ledgerKey, key ?? null).vkey;
}

function requireKeys({ schema, keys }: Place, key: string | undefined): string {
  const there = `schema ${schema} has a ledger already`;
  if (key !== undefined)
    throw usageError(`${there}: omit --ledger-key and --ledger-name, and name its keys with --keys`);
  const signer = readLedgerSigner(keys.ledgerKey);
  if (signer !== null) return signer.vkey;
  throw usageError(`${there}, and ${keys.keys} has no ledger key: name the key folder of the ledger with --keys`);
}

async function openLedger({ url, schema, keys }: Place, isNew: boolean): Promise<LogHead> {
  const open = isNew ? createPostgresStore : openPostgresStore;
  const store = await open({ url, schema, caseKeysDir: keys.caseKeys });
  try {
    return await store.head();
  } finally {
    await store.close();
  }
}

async function withCluster<T>({ url, schema }: Place, work: (cluster: ClusterDirectory) => Promise<T>): Promise<T> {
  const cluster = openPostgresCluster({ url, schema });
  try {
    return await work(cluster);
  } finally {
    await cluster.close();
  }
}

/** Records the keys and the volume of a new ledger, or compares them. @throws UsageError for others */
async function install(
  cluster: ClusterDirectory,
  place: Place,
  vkey: string,
  { size }: LogHead,
): Promise<JoinedLedger> {
  const recorded = await cluster.installation();
  if (recorded === null && size > 0) {
    const message = 'the ledger has entries, but the database does not say which keys are its own';
    throw usageError(`${message}: \`turnpike init\` can only join a ledger that it has created`);
  }
  if (recorded !== null) return compareInstallation(place, vkey, recorded);
  if (place.sandbox === null) throw usageError('the ledger has no volume yet: omit --without-volume');
  makeFolder(place.sandbox);
  const { id: volume_id } = openVolume(place.sandbox, place.volumeName);
  const installation = await cluster.install({ ledger_id: drawId('led_'), vkey, volume_id });
  return compareInstallation(place, vkey, installation);
}

interface JoinedLedger {
  readonly ledger_id: string;
  readonly volume_id: string;
  /** Null without the volume. */
  readonly volume: Volume | null;
}

function compareInstallation(
  { keys, sandbox, volumeName }: Place,
  vkey: string,
  { ledger_id, volume_id, ...recorded }: Installation,
): JoinedLedger {
  if (recorded.vkey !== vkey) {
    const message = `the ledger has the key ${nameOf(recorded.vkey)}, and ${keys.keys} has the key ${nameOf(vkey)}`;
    const action = 'mount the key folder of the ledger as it is now, and name it with --keys';
    throw usageError(`${message}: ${action}; if its key is being rotated, start one of its workers first`);
  }
  if (sandbox === null) return { ledger_id, volume_id, volume: null };
  if (readVolume(sandbox)?.id !== volume_id) {
    throw usageError(`${sandbox} is not the sandbox volume of the ledger: mount that, and name it with --sandbox`);
  }
  return { ledger_id, volume_id, volume: openVolume(sandbox, volumeName) };
}

/** @returns null with `--without-volume` @throws UsageError if the options also name a volume */
function sandboxOf({ withoutVolume, sandbox, volume }: StoreOptions, home: string): string | null {
  if (!withoutVolume) return sandbox ?? join(home, 'sandbox');
  if (sandbox === undefined && volume === undefined) return null;
  throw usageError('--without-volume joins without a volume: omit --sandbox and --volume');
}

/** The name and the short hash of a public key. */
const nameOf = (vkey: string): string => vkey.split('+').slice(0, 2).join('+');

/** From now on, this home refuses a database that is older than this head. */
async function writeHead(home: string, keys: KeyFolder, { size, root }: LogHead): Promise<void> {
  const signer = readLedgerSigner(keys.ledgerKey);
  const file = headFile(homePaths(home).head, signer === null ? null : createHeadSeal(signer));
  await file.write({ size, root });
  await file.close();
}
