// Checks the data of a configuration file against the keys. Unknown keys are errors: a misspelt limit must not silently
// be no limit.

import { dirname, resolve } from 'node:path';
import { quoteForMessage } from '../../core/contract/finding-text.js';
import { isJsonObject, type Json } from '../../core/contract/json.js';
import { readStrictYaml, type YamlDocument } from '../../core/policy/files/strict-yaml.js';
import {
  describeType,
  keyText,
  type ConfigurationKey,
  type ConfigurationType,
  type ConfigurationValue,
} from './configuration-key.js';
import { nearestName } from './nearest-name.js';

const LIMITS = { bytes_max: 65_536, parts_max: 8_192 };
const TEXT_LENGTH_MAX = 4_096;
const LIST_LENGTH_MAX = 256;

/** A file that was read. */
export interface ConfigurationFile {
  /** Absolute. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** One value of a file, and its line. */
export interface FileValue {
  readonly value: ConfigurationValue;
  readonly line: number;
}

export interface DocumentResult {
  /** By `keyText`. */
  readonly values: ReadonlyMap<string, FileValue>;
  readonly problems: readonly string[];
}

/**
 * The values of a configuration file, and all problems in it, each with file and line.
 * @param otherSections sections that another program reads; their content is not checked
 */
export function parseConfigurationFile(
  keys: readonly ConfigurationKey[],
  file: ConfigurationFile,
  otherSections: readonly string[] = [],
): DocumentResult {
  const { document, problems } = readStrictYaml(file.bytes, LIMITS);
  if (document === null) {
    return { values: new Map(), problems: problems.map(({ line, message }) => `${file.path}:${line}: ${message}`) };
  }
  return new DocumentReader(keys, file, document, otherSections).read();
}

class DocumentReader {
  readonly #keys: ReadonlyMap<string, ConfigurationKey>;
  readonly #sections: ReadonlySet<string>;
  readonly #file: ConfigurationFile;
  readonly #document: YamlDocument;
  readonly #otherSections: readonly string[];
  readonly #values = new Map<string, FileValue>();
  readonly #problems: string[] = [];

  constructor(
    keys: readonly ConfigurationKey[],
    file: ConfigurationFile,
    document: YamlDocument,
    otherSections: readonly string[],
  ) {
    this.#keys = new Map(keys.map((key) => [keyText(key), key]));
    this.#sections = new Set(keys.flatMap(({ section }) => section ?? []));
    this.#file = file;
    this.#document = document;
    this.#otherSections = otherSections;
  }

  read(): DocumentResult {
    for (const [name, value] of Object.entries(this.#document.data)) {
      if (this.#otherSections.includes(name)) continue;
      if (this.#sections.has(name)) this.#readSection(name, value);
      else this.#readValue(null, name, value);
    }
    return { values: this.#values, problems: this.#problems };
  }

  #readSection(section: string, value: Json): void {
    if (!isJsonObject(value)) {
      this.#report(section, null, 'takes a mapping of keys to values');
      return;
    }
    for (const [name, member] of Object.entries(value)) this.#readValue(section, name, member);
  }

  #readValue(section: string | null, name: string, value: Json): void {
    const key = this.#keys.get(keyText({ section, name }));
    if (key === undefined) {
      this.#report(section, name, `is not a key${this.#suggest(section, name)}`);
      return;
    }
    const parsed = parseFileValue(key.type, value, dirname(this.#file.path));
    if (parsed === null) this.#report(section, name, `takes ${describeType(key.type)}`);
    else this.#values.set(keyText(key), { value: parsed, line: this.#lineOf(section, name) });
  }

  #suggest(section: string | null, name: string): string {
    const names = [...this.#keys.values()].filter((key) => key.section === section).map((key) => key.name);
    const nearest = nearestName(name, section === null ? [...names, ...this.#sections] : names);
    return nearest === null ? '' : `; did you mean ${keyText({ section, name: nearest })}?`;
  }

  #report(section: string | null, name: string | null, message: string): void {
    const key = name === null ? (section ?? '') : keyText({ section, name });
    this.#problems.push(`${this.#file.path}:${this.#lineOf(section, name)}: ${quoteForMessage(key)} ${message}`);
  }

  #lineOf(section: string | null, name: string | null): number {
    const parts = [section, name].flatMap((part) => part ?? []);
    return this.#document.lineOf(parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
  }
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
      return Number.isSafeInteger(value) && Number(value) >= type.min && Number(value) <= type.max
        ? Number(value)
        : null;
    case 'choice':
      return isText(value) && type.choices.includes(value) ? value : null;
  }
}
