// The options of `openTurnpike` that are plain data, from a configuration file and the environment.

import { resolve } from 'node:path';
import { readRegularSync } from '../../system/files/open-file.js';
import { readEnvironment } from '../../system/environment.js';
import { errorCode } from '../../system/error-code.js';
import { usageError } from '../../core/errors.js';
import { INTERPRETERS } from '../../kernel/interpreter/interpreter.js';
import type { TurnpikeOptions } from '../turnpike-options.js';
import { mergeConfiguration, type Configuration, type ConfigurationFile, type Environment } from './configuration.js';
import { keyText, VARIABLE_PREFIX, type ConfigurationKey } from './configuration-key.js';

/** The name of the file that is read by default, in the working directory. */
export const CONFIGURATION_FILE = 'turnpike.yaml';
/** The variable that names another file. */
export const CONFIGURATION_VARIABLE = `${VARIABLE_PREFIX}CONFIG`;
/** Variables that are no keys: the file's name, and a secret that does not belong into a file. */
export const RESERVED_VARIABLES: readonly string[] = [CONFIGURATION_VARIABLE, `${VARIABLE_PREFIX}OIDC_CLIENT_SECRET`];
/** What commands read and the library does not: sections, the URL of a ledger, and a file of registrations. */
export const COMMAND_SECTIONS = ['serve', 'mcp', 'worker', 'store', 'registrations'] as const;

const BYTES_MAX = 65_536;
const WALL_MODES: readonly NonNullable<TurnpikeOptions['wall']>[] = ['auto', 'required', 'off'];
const BYTES = { kind: 'integer', min: 1, max: Number.MAX_SAFE_INTEGER } as const;

/** The names are those of `TurnpikeOptions` and `StorageOptions` in snake_case. */
export const TURNPIKE_KEYS: readonly ConfigurationKey[] = [
  { section: null, name: 'home', type: { kind: 'path' }, help: 'the home directory' },
  { section: null, name: 'contract', type: { kind: 'path' }, help: 'the contract folder' },
  { section: null, name: 'sandbox', type: { kind: 'path' }, help: 'the folder of the case sandboxes' },
  { section: null, name: 'exports', type: { kind: 'path' }, help: 'the folder of exports' },
  { section: null, name: 'keys', type: { kind: 'path' }, help: 'the key folder of a store (library only)' },
  { section: null, name: 'state', type: { kind: 'path' }, help: 'the local state of a store (library only)' },
  {
    section: null,
    name: 'live_trees_max',
    type: { kind: 'integer', min: 1, max: 10_000_000 },
    help: 'maximum number of run trees in memory',
  },
  { section: null, name: 'control', type: { kind: 'flag' }, help: 'whether to serve the control socket' },
  {
    section: null,
    name: 'wall',
    type: { kind: 'choice', choices: WALL_MODES },
    help: 'whether commands of specs run inside bubblewrap',
  },
  {
    section: null,
    name: 'restarts',
    type: { kind: 'choice', choices: ['manual', 'automatic'] },
    help: 'the reaction to a temporary failure of the ledger',
  },
  {
    section: null,
    name: 'interpreter',
    type: { kind: 'choice', choices: INTERPRETERS },
    help: 'what runs the machines',
  },
  {
    section: null,
    name: 'unsafe',
    type: { kind: 'flag' },
    help: 'accept a platform without a safe file sandbox; for development',
  },
  { section: 'storage', name: 'run_bytes', type: BYTES, help: 'budget of one run tree' },
  { section: 'storage', name: 'case_bytes', type: BYTES, help: 'budget of all run trees of a case' },
  { section: 'storage', name: 'actor_bytes', type: BYTES, help: 'budget of one actor within an hour' },
  { section: 'storage', name: 'free_bytes_min', type: BYTES, help: 'with less free space no run starts' },
  { section: 'storage', name: 'reserved_bytes', type: BYTES, help: 'reserve for recording what is in flight' },
];

/** Where `readTurnpikeOptions` reads. */
export interface ReadOptionsOptions {
  /** Default: the file that TURNPIKE_CONFIG names, else turnpike.yaml in the working directory if it exists. */
  readonly file?: string;
  /** Default: the environment of this process. */
  readonly environment?: Environment;
  /** Default: the working directory of this process. */
  readonly cwd?: string;
}

/** The options of `openTurnpike` that a configuration can give. */
export type ConfiguredOptions = Pick<
  TurnpikeOptions,
  | 'home'
  | 'contract'
  | 'exports'
  | 'keys'
  | 'state'
  | 'liveTreesMax'
  | 'control'
  | 'wall'
  | 'restarts'
  | 'interpreter'
  | 'unsafe'
  | 'storage'
> & { readonly sandbox?: string };

/**
 * The options of `openTurnpike` in turnpike.yaml and TURNPIKE_* variables. A variable wins over the file; spread the
 * result before your own options, so that they win over both.
 * @throws UsageError for an unreadable file, an unknown key, or a value of the wrong type
 */
export function readTurnpikeOptions({
  file,
  environment = readEnvironment(),
  cwd = '.',
}: ReadOptionsOptions = {}): ConfiguredOptions {
  const found = readConfigurationFile(cwd, file ?? environment[CONFIGURATION_VARIABLE]);
  const ownVariables = Object.fromEntries(
    Object.entries(environment).filter(([name]) => !COMMAND_SECTIONS.some((section) => isVariableOf(name, section))),
  );
  const sources = { file: found, environment: ownVariables, otherSections: COMMAND_SECTIONS };
  return toTurnpikeOptions(mergeConfiguration(TURNPIKE_KEYS, { ...sources, reserved: RESERVED_VARIABLES }));
}

const isVariableOf = (variable: string, section: string): boolean =>
  `${variable}_`.startsWith(`${VARIABLE_PREFIX}${section.toUpperCase()}_`);

/**
 * Reads the named file, or the default one if it exists.
 * @throws UsageError if a named file does not exist, and for a file that cannot be read
 */
export function readConfigurationFile(cwd: string, named: string | undefined): ConfigurationFile | null {
  const path = resolve(cwd, named ?? CONFIGURATION_FILE);
  try {
    // Follows links: container platforms mount configuration through them.
    return { path, bytes: readRegularSync(path, BYTES_MAX) };
  } catch (cause) {
    if (errorCode(cause) !== 'ENOENT') throw usageError(`the configuration file cannot be read: ${messageOf(cause)}`);
    if (named !== undefined) throw usageError(`${path} does not exist: name a configuration file`);
    return null;
  }
}

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

/** The values of `TURNPIKE_KEYS` as options. */
export function toTurnpikeOptions({ values }: Configuration): ConfiguredOptions {
  const [options, storage]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
  for (const key of TURNPIKE_KEYS) {
    const found = values.get(keyText(key));
    if (found !== undefined) (key.section === null ? options : storage)[toCamelCase(key.name)] = found.value;
  }
  return { ...options, ...(Object.keys(storage).length === 0 ? {} : { storage }) };
}

const toCamelCase = (name: string): string => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
