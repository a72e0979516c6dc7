// Where a ledger is that a command opens, copies or restores: a home directory, or a ledger in PostgreSQL with a folder
// that has the other parts of a home.

import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { usageError } from '../core/errors.js';
import { homePaths, type HomePaths } from './home-paths.js';
import { locateHome, readStoreHome, sharedOverlay } from './store-home.js';

/** Where the tables of a ledger in PostgreSQL are. */
export interface PostgresLocation {
  readonly url: string;
  readonly schema: string;
}

/** A ledger with its keys, local state and sandbox. */
export interface LedgerLocation {
  /** The folder of the home. With `postgres`, it has every part but the ledger store. */
  readonly paths: HomePaths;
  /** Null for an SQLite ledger in the folder. */
  readonly postgres: PostgresLocation | null;
}

/** How a caller names a location. */
export interface LocationOptions {
  /** With a URL: the folder of keys, local state and sandbox. */
  readonly home?: string;
  /** With a URL: the schema of the tables. @default 'turnpike' */
  readonly schema?: string;
}

const URL_PREFIX = /^postgres(?:ql)?:\/\//;
const SCHEMA_DEFAULT = 'turnpike';

/**
 * The location that a caller names: the path of a home directory, or a `postgres://` URL.
 * A home directory may name a database itself.
 * @throws UsageError if an option is missing, or does not belong to this kind of location
 */
export function resolveLocation(name: string, { home, schema }: LocationOptions = {}, cwd = '.'): LedgerLocation {
  if (!URL_PREFIX.test(name)) {
    if (home !== undefined || schema !== undefined) {
      throw usageError(`${name} is a home directory: omit the options for a ledger in PostgreSQL`);
    }
    const paths = locateHome(resolve(cwd, name));
    return { paths, postgres: readStoreHome(paths.home) };
  }
  if (home === undefined) {
    throw usageError('a ledger in PostgreSQL also needs a folder with its keys, local state and sandbox: name it');
  }
  const folder = resolve(cwd, home);
  const paths = readStoreHome(folder) === null ? sharedPaths(folder) : locateHome(folder);
  return { paths, postgres: { url: name, schema: schema ?? SCHEMA_DEFAULT } };
}

/** The paths of a new home whose ledger will be shared. */
function sharedPaths(folder: string): HomePaths {
  const paths = homePaths(folder);
  return { ...paths, overlay: sharedOverlay(paths.keys) };
}

/** The location as text, without the password of a URL. The same ledger has the same text. */
export function locationText({ paths, postgres }: LedgerLocation): string {
  if (postgres === null) return realPathOf(paths.home);
  return `${withoutPassword(postgres.url)} (schema ${postgres.schema})`;
}

function withoutPassword(text: string): string {
  try {
    const { host, pathname } = new URL(text);
    return `postgres://${host}${pathname}`;
  } catch {
    throw usageError('the URL of the PostgreSQL database is malformed');
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
