// A home directory whose ledger is in a database: its local state, and a file that names the database, the keys and the
// sandbox volume. Several workers share the keys and the volume; each has a home of its own.

import { join } from 'node:path';
import Type, { type Static, type TSchema } from 'typebox';
import { createFile, readSmallFile } from '../system/files/small-file.js';
import { drawSeed } from '../stores/keys/key-file.js';
import { refuseLaterVersion } from '../core/contract/file-format.js';
import { readJson } from '../core/contract/json.js';
import { closed, Nullable } from '../core/contract/shapes.js';
import { isConforming, isInstance } from '../core/contract/validators.js';
import { PolicyError, usageError } from '../core/errors.js';
import { homePaths, keyFolder, sandboxVolume, type HomePaths } from './home-paths.js';

const STORE_FILE = 'store.json';
/** In the sandbox folder. No case can have this name, because the id of a case has no dot. */
const VOLUME_FILE = 'volume.json';
/** The format of both files. */
const VERSION = 1;
const BYTES_MAX = 16_384;
const MODE = 0o600;

const VOLUME_NAME = '^[A-Za-z0-9][A-Za-z0-9_.-]*$';
/** A sandbox folder that workers share. Its id is drawn, so a folder of the same name elsewhere is another volume. */
export const Volume = Type.Object(
  {
    version: Type.Literal(VERSION),
    name: Type.String({ minLength: 1, maxLength: 80, pattern: VOLUME_NAME }),
    id: Type.String({ minLength: 8, maxLength: 80, pattern: '^[A-Za-z0-9_-]+$' }),
  },
  closed,
);
export type Volume = Static<typeof Volume>;

const StoreHome = Type.Object(
  {
    version: Type.Literal(VERSION),
    url: Type.String({ minLength: 1, maxLength: 4_096 }),
    schema: Type.String({ minLength: 1, maxLength: 63 }),
    ledger_id: Type.String({ minLength: 8, maxLength: 80 }),
    volume_id: Type.String({ minLength: 8, maxLength: 80 }),
    keys: Type.String({ minLength: 1, maxLength: 4_096 }),
    /** Null for a worker without the sandbox volume. */
    sandbox: Nullable(Type.String({ minLength: 1, maxLength: 4_096 })),
    /** Whether the volume may be on a network file system. */
    unsafe_shared: Type.Optional(Type.Literal(true)),
  },
  closed,
);
/** The database of a home, without a password, and its shared folders as absolute paths. */
export type StoreHome = Static<typeof StoreHome>;

/**
 * @returns null for a home with a ledger of its own
 * @throws PolicyError for a damaged file, LedgerError for one of a later version
 */
export const readStoreHome = (home: string): StoreHome | null => readStored(join(home, STORE_FILE), StoreHome);

/** Names the database in a home. @throws UsageError if the home has one already */
export function writeStoreHome(home: string, stored: StoreHome): void {
  if (!createFile(join(home, STORE_FILE), `${JSON.stringify(stored, null, 2)}\n`, MODE)) {
    throw usageError(`${home} is a home directory already: name a new folder`);
  }
}

/**
 * The paths of a home, wherever its keys and its sandbox are. The emergency overlay of a shared ledger lies in the key
 * folder, so that one file serves all workers.
 */
export function locateHome(home: string): HomePaths {
  const paths = homePaths(home);
  const stored = readStoreHome(home);
  if (stored === null) return paths;
  const keys = keyFolder(stored.keys);
  const volume = stored.sandbox === null ? {} : sandboxVolume(stored.sandbox);
  return { ...paths, ...keys, ...volume, overlay: sharedOverlay(keys.keys) };
}

/** The emergency overlay of a shared ledger. @param keys the key folder */
export const sharedOverlay = (keys: string): string => join(keys, 'overlay.json');

/**
 * The folder of exports. For a shared ledger it is on the volume, because any worker may perform an export; no case can
 * have its name.
 */
export const locateExports = ({ home, state }: HomePaths): string => {
  const stored = readStoreHome(home);
  return stored?.sandbox == null ? join(state, 'exports') : sharedExports(stored.sandbox);
};

/** The folder of exports on a volume. */
export const sharedExports = (sandbox: string): string => join(sandbox, '.exports');

/** The files of a volume that belong to no case. */
export const volumeFiles = (sandbox: string): readonly string[] => [join(sandbox, VOLUME_FILE), sharedExports(sandbox)];

/** The file of a home that names its database. */
export const storeFile = (home: string): string => join(home, STORE_FILE);

/** @returns null if the folder is no volume @throws PolicyError for a damaged file, LedgerError for a later one */
export const readVolume = (sandbox: string): Volume | null => readStored(join(sandbox, VOLUME_FILE), Volume);

/**
 * Makes a folder a volume, unless it is one. @param name default: the name that it has, or `default`
 * @throws UsageError if the volume has another name
 */
export function openVolume(sandbox: string, name?: string): Volume {
  const drawn: Volume = { version: VERSION, name: name ?? 'default', id: drawId('vol_') };
  if (!isConforming(Volume, drawn)) throw usageError('--volume takes a name of letters, digits, dots, - and _');
  if (readVolume(sandbox) === null) createFile(join(sandbox, VOLUME_FILE), `${JSON.stringify(drawn)}\n`, MODE);
  const volume = readVolume(sandbox);
  if (volume === null) throw damagedError(join(sandbox, VOLUME_FILE));
  if (name === undefined || volume.name === name) return volume;
  throw usageError(`${sandbox} is the volume ${volume.name}: omit --volume, or name another folder with --sandbox`);
}

/** Random bytes of an id. */
const ID_BYTES = 12;
/** Draws the id of a volume or of a ledger. */
export const drawId = (prefix: 'vol_' | 'led_'): string =>
  `${prefix}${Buffer.from(drawSeed(ID_BYTES)).toString('hex')}`;

function readStored<T extends TSchema>(path: string, schema: T): Static<T> | null {
  const bytes = readSmallFile(path, { bytesMax: BYTES_MAX });
  if (bytes === null) return null;
  const value = readJson(bytes);
  if (value !== undefined) refuseLaterVersion(value, VERSION, path);
  if (isInstance(schema, value)) return value;
  throw damagedError(path);
}

const damagedError = (path: string): PolicyError =>
  new PolicyError({ code: 'POLICY_UNREADABLE', message: `${path} is damaged: restore it from a backup` });
