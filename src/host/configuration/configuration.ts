// The configuration of a process: the values of a file and of the environment, which wins. Options of a command and
// arguments of a call win over both. Unknown keys are errors: a misspelt limit must not silently be no limit.

import { dirname, resolve } from 'node:path';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { isJsonObject, type Json } from '../../core/contract/json.js';
import { usageError } from '../../core/errors.js';
import { readStrictYaml } from '../../core/policy/files/strict-yaml.js';
import {
  describeType,
  keyText,
  VARIABLE_PREFIX,
  variableOf,
  type ConfigurationKey,
  type ConfigurationType,
  type ConfigurationValue,
} from './configuration-key.js';
import { nearestName } from './nearest-name.js';

/** A file that was read. */
export interface ConfigurationFile {
  /** Absolute. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a value comes from: a file and line, or a variable. */
export type ConfigurationOrigin =
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly variable: string };

export interface ConfiguredValue {
  readonly value: ConfigurationValue;
  readonly origin: ConfigurationOrigin;
}

export interface Configuration {
  /** Null without a file. */
  readonly file: string | null;
  /** By `keyText`. */
  readonly values: ReadonlyMap<string, ConfiguredValue>;
  /** Variables with the prefix of this program that are no keys. */
  readonly ignored: readonly string[];
}

export interface ConfigurationSources {
  readonly file: ConfigurationFile | null;
  readonly environment: Environment;
  /** Sections of the file that another program reads; their content is not checked. */
  readonly otherSections?: readonly string[];
  /** Variables that are not keys, but are read elsewhere. */
  readonly reserved?: readonly string[];
}

/** What one source has: its values by `keyText`, and all problems in it. */
interface SourceResult {
  readonly values: ReadonlyMap<string, ConfiguredValue>;
  readonly problems: readonly string[];
}

const NOTHING: SourceResult = { values: new Map(), problems: [] };

/**
 * The values of all sources, in the order of the keys.
 * @throws UsageError that lists every problem
 */
export function mergeConfiguration(
  keys: readonly ConfigurationKey[],
  { file, environment, otherSections = [], reserved = [] }: ConfigurationSources,
): Configuration {
  const fromFile = file === null ? NOTHING : parseFile(keys, file, otherSections);
  const { ignored, ...fromEnvironment } = parseEnvironment(keys, environment, reserved);
  const problems = [...fromFile.problems, ...fromEnvironment.problems];
  if (problems.length > 0) throw usageError(`the configuration is invalid:\n${problems.join('\n')}`);
  const values = new Map<string, ConfiguredValue>();
  for (const name of keys.map(keyText)) {
    const value = fromEnvironment.values.get(name) ?? fromFile.values.get(name);
    if (value !== undefined) values.set(name, value);
  }
  return { file: file?.path ?? null, values, ignored };
}

const sectionsOf = (keys: readonly ConfigurationKey[]): ReadonlySet<string> =>
  new Set(keys.flatMap(({ section }) => section ?? []));

const LIMITS = { bytes_max: 65_536, parts_max: 8_192 };
const TEXT_LENGTH_MAX = 4_096;
const LIST_LENGTH_MAX = 256;

function parseFile(
  keys: readonly ConfigurationKey[],
  { path, bytes }: ConfigurationFile,
  otherSections: readonly string[],
): SourceResult {
  const { document, problems: syntax } = readStrictYaml(bytes, LIMITS);
  if (document === null)
    return { values: new Map(), problems: syntax.map(({ line, message }) => `${path}:${line}: ${message}`) };
  const known = new Map(keys.map((key) => [keyText(key), key]));
  const sections = sectionsOf(keys);
  const values = new Map<string, ConfiguredValue>();
  const problems: string[] = [];
  const lineOf = (...parts: readonly (string | null)[]): number =>
    document.lineOf(
      parts.map((part) => (part === null ? '' : `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`)).join(''),
    );
  const report = (section: string | null, name: string, message: string): void =>
    void problems.push(`${path}:${lineOf(section, name)}: ${quoteForMessage(keyText({ section, name }))} ${message}`);
  const suggest = (section: string | null, name: string): string => {
    const names = keys.filter((key) => key.section === section).map((key) => key.name);
    const nearest = nearestName(name, section === null ? [...names, ...sections] : names);
    return nearest === null ? '' : `; did you mean ${keyText({ section, name: nearest })}?`;
  };
  const read = (section: string | null, name: string, data: Json): void => {
    const key = known.get(keyText({ section, name }));
    if (key === undefined) {
      report(section, name, `is not a key${suggest(section, name)}`);
      return;
    }
    const value = parseFileValue(key.type, data, dirname(path));
    if (value === null) report(section, name, `takes ${describeType(key.type)}`);
    else values.set(keyText(key), { value, origin: { kind: 'file', path, line: lineOf(section, name) } });
  };
  for (const [name, data] of Object.entries(document.data)) {
    if (otherSections.includes(name)) continue;
    if (!sections.has(name)) read(null, name, data);
    else if (!isJsonObject(data)) report(null, name, 'takes a mapping of keys to values');
    else for (const [member, value] of Object.entries(data)) read(name, member, value);
  }
  return { values, problems };
}

const isText = (value: Json | undefined): value is string =>
  typeof value === 'string' && value.length > 0 && value.length <= TEXT_LENGTH_MAX && !value.includes('\0');

/** @returns null for a value of another type */
function parseFileValue(type: ConfigurationType, value: Json, folder: string): ConfigurationValue | null {
  switch (type.kind) {
    case 'text':
      return isText(value) ? value : null;
    case 'path':
      return isText(value) ? resolve(folder, value) : null;
    case 'list':
      return Array.isArray(value) && value.length <= LIST_LENGTH_MAX && value.every(isText) ? value : null;
    case 'flag':
      return typeof value === 'boolean' ? value : null;
    case 'integer':
      return typeof value === 'number' && isInteger(type, value) ? value : null;
    case 'choice':
      return isText(value) && type.choices.includes(value) ? value : null;
  }
}

const isInteger = ({ min, max }: { readonly min: number; readonly max: number }, value: number): boolean =>
  Number.isSafeInteger(value) && value >= min && value <= max;

/**
 * What a container platform sets in every container if one of its services is named `turnpike`. Such a service puts
 * variables with our prefix into every environment, so an unknown one is an error only if it looks like a key.
 */
const PLATFORM_VARIABLE = /^TURNPIKE_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT(?:_\d+_.*)?)$/;

function parseEnvironment(
  keys: readonly ConfigurationKey[],
  environment: Environment,
  reserved: readonly string[],
): SourceResult & Pick<Configuration, 'ignored'> {
  const known = new Map(keys.map((key) => [variableOf(key), key]));
  const values = new Map<string, ConfiguredValue>();
  const [ignored, problems]: [string[], string[]] = [[], []];
  for (const [variable, text] of Object.entries(environment).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!variable.startsWith(VARIABLE_PREFIX) || text === undefined || reserved.includes(variable)) continue;
    const key = known.get(variable);
    if (key === undefined) {
      const problem = unknownVariable(variable, [...known.keys()], sectionsOf(keys));
      if (problem === null) ignored.push(variable);
      else problems.push(problem);
      continue;
    }
    const value = parseVariable(key.type, text);
    if (value === null) problems.push(`${variable} takes ${describeType(key.type)}`);
    else values.set(keyText(key), { value, origin: { kind: 'environment', variable } });
  }
  return { values, ignored, problems };
}

/** A name that another program may well have set is no problem. */
function unknownVariable(variable: string, known: readonly string[], sections: ReadonlySet<string>): string | null {
  if (PLATFORM_VARIABLE.test(variable)) return null;
  const nearest = nearestName(variable, known);
  if (nearest !== null) return `${variable} is not a variable of this program; did you mean ${nearest}?`;
  const section = [...sections].find((name) => variable.startsWith(`${VARIABLE_PREFIX}${name.toUpperCase()}_`));
  return section === undefined ? null : `${variable} names no key of ${section}`;
}

/** Lists are separated by commas. @returns null for a text that is not a value of the type */
function parseVariable(type: ConfigurationType, text: string): ConfigurationValue | null {
  switch (type.kind) {
    case 'text':
    case 'path':
      return text === '' ? null : text;
    case 'list': {
      const items = text.split(',').map((item) => item.trim());
      return items.includes('') ? null : items;
    }
    case 'flag':
      return text === 'true' ? true : text === 'false' ? false : null;
    case 'integer':
      return /^\d{1,16}$/.test(text) && isInteger(type, Number(text)) ? Number(text) : null;
    case 'choice':
      return type.choices.includes(text) ? text : null;
  }
}
