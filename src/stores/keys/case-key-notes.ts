// The files of case keys: a key, the note that it was erased, and the note that another key replaced it. Each note is
// signed with the key of the ledger, so only its owner can end a key.

import { join } from 'node:path';
import { PolicyError } from '../../core/errors.js';
import type { CaseKeyReplacement } from '../../engine/ports/ledger/case-key-table.js';
import type { ErasureSeal } from '../../engine/ports/ledger/ledger-store.js';
import { folderNames } from '../../system/files/folder-names.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { isCaseId } from '../ledger/check-batch.js';
import { tamperedError } from '../ledger/store-errors.js';

/** The most keys that one case may have. */
export const CASE_KEYS_MAX = 1_000;
const FILE_BYTES_MAX = 2_048;
/** A file that a destroyed key leaves if the process is killed at the wrong time. */
const OVERWRITTEN = /^\0+$/;
const KEY = /^turnpike-case-key ([A-Za-z0-9+/]{43}=)\n$/;
/** The rest of an erasure note: number of contents, time, and who requested it. */
const ERASED = /^(\d{1,15})\n([^\n]*)\n([^\n]*)\n$/;
/** The rest of a replacement note: as above, the role, and the replaced key, which the new one has encrypted. */
const REPLACED = /^(\d{1,15})\n([^\n]*)\n([^\n]*)\n([^\n]*)\n([A-Za-z0-9+/]{80})\n$/;
const NAME = /^(.+)\.([1-9]\d*)\.(erased|key|replaced)$/;

type FileKind = 'key' | 'erased' | 'replaced';

/** A file of a case key. */
export interface CaseKeyFile {
  readonly case_id: string;
  readonly no: number;
  readonly kind: FileKind;
  readonly name: string;
}

export interface ErasureNote {
  /** The destroyed key encrypted only contents whose number is below this one. */
  readonly erased_below: number;
  readonly at: string;
  readonly by: string;
}

export interface ReplacementNote extends CaseKeyReplacement {
  /** The replaced key, which the next one opens under the name `wrappedName`. */
  readonly wrapped: Buffer;
}

/** The name under which the next key encrypts a replaced one. */
export const wrappedName = (case_id: string, no: number): string => `${case_id}\n${no}`;

/** The file of a case key that has this name; null for any other file. */
export function caseKeyFileOf(name: string): CaseKeyFile | null {
  const [, case_id, no, kind] = NAME.exec(name) ?? [];
  return case_id === undefined ? null : { case_id, no: Number(no), kind: kind as FileKind, name };
}

/** A key of a case, without its secret. */
export interface ListedCaseKey {
  /** The case and the number of the key. */
  readonly id: string;
  /** `replacing`: another key has replaced it, and the replacement is unfinished. */
  readonly state: 'current' | 'retired' | 'replacing' | 'erased';
  /** The file of the key, or of the note that ended it. */
  readonly path: string;
}

/** The keys of cases in a folder, by case and number. */
export function listCaseKeys(directory: string): readonly ListedCaseKey[] {
  const found = new Map<string, ListedCaseKey>();
  const names = folderNames(directory);
  const keys = new Set(names.filter((name) => name.endsWith('.key')));
  // In the order of names the note of an erasure comes first, then the key, then the note of a replacement.
  for (const file of names.map(caseKeyFileOf).filter((one) => one !== null)) {
    const { case_id, no, kind, name } = file;
    const id = `${case_id}.${no}`;
    if (found.get(id)?.state === 'erased') continue;
    const replaced = keys.has(`${id}.key`) ? 'replacing' : 'retired';
    const state = kind === 'key' ? 'current' : kind === 'replaced' ? replaced : 'erased';
    found.set(id, { id, state, path: join(directory, name) });
  }
  return [...found.values()];
}

export class CaseKeyNotes {
  readonly directory: string;
  seal: () => ErasureSeal | null;

  constructor(directory: string, seal: () => ErasureSeal | null) {
    this.directory = directory;
    this.seal = seal;
  }

  /** @throws LedgerError LEDGER_TAMPERED for an invalid case id */
  path(case_id: string, no: number, kind: FileKind): string {
    // The case id may come from a tampered database.
    if (!isCaseId(case_id)) throw tamperedError(`not a case id: ${JSON.stringify(case_id)}`);
    return join(this.directory, `${case_id}.${no}.${kind}`);
  }

  /** The names in the folder; none if it does not exist. */
  names(): readonly string[] {
    return folderNames(this.directory);
  }

  files(): readonly CaseKeyFile[] {
    return this.names()
      .map(caseKeyFileOf)
      .filter((file) => file !== null);
  }

  /**
   * The bytes of a key. @returns null if there is no file, or it was overwritten and not removed yet
   * @throws LedgerError LEDGER_TAMPERED
   */
  key(case_id: string, no: number): Buffer | null {
    const path = this.path(case_id, no, 'key');
    const text = readText(path);
    if (text === null || OVERWRITTEN.test(text)) return null;
    const [, key] = KEY.exec(text) ?? [];
    if (key === undefined) throw tamperedError(`${path} is not a valid key: restore it from a backup`);
    return Buffer.from(key, 'base64');
  }

  /** @throws LedgerError LEDGER_TAMPERED for a note with an invalid signature, or about another key */
  erasure(case_id: string, no: number): ErasureNote | null {
    const rest = this.#read(case_id, no, 'erased');
    if (rest === null) return null;
    const [, contents, at = '', by = ''] = ERASED.exec(rest) ?? [];
    if (contents !== undefined) return { erased_below: Number(contents), at, by };
    throw this.#invalid(case_id, no, 'erased', 'this content was erased');
  }

  /** @throws like `erasure` */
  replacement(case_id: string, no: number): ReplacementNote | null {
    const rest = this.#read(case_id, no, 'replaced');
    if (rest === null) return null;
    const [, contents, at = '', by = '', role = '', wrapped] = REPLACED.exec(rest) ?? [];
    if (wrapped === undefined) throw this.#invalid(case_id, no, 'replaced', 'another key replaced this one');
    return { case_id, key_no: no, contents: Number(contents), at, by, role, wrapped: Buffer.from(wrapped, 'base64') };
  }

  writeErasure(case_id: string, no: number, { erased_below, at, by }: ErasureNote): void {
    this.#write(case_id, no, 'erased', `${erased_below}\n${at}\n${by}\n`);
  }

  writeReplacement({ case_id, key_no, contents, at, by, role, wrapped }: ReplacementNote): void {
    const rest = `${contents}\n${at}\n${by}\n${role}\n${wrapped.toString('base64')}\n`;
    this.#write(case_id, key_no, 'replaced', rest);
  }

  /** What follows the statement of a note; an empty text if the note is not valid. @returns null if there is no file */
  #read(case_id: string, no: number, kind: 'erased' | 'replaced'): string | null {
    const note = readText(this.path(case_id, no, kind));
    if (note === null) return null;
    const seal = this.seal();
    const statement = seal === null ? note : seal.open(note);
    const prefix = statementOf(case_id, no, kind);
    return statement?.startsWith(prefix) ? statement.slice(prefix.length) : '';
  }

  #write(case_id: string, no: number, kind: 'erased' | 'replaced', rest: string): void {
    const statement = `${statementOf(case_id, no, kind)}${rest}`;
    replaceFile(this.path(case_id, no, kind), this.seal()?.seal(statement) ?? statement, 0o600);
  }

  #invalid(case_id: string, no: number, kind: FileKind, what: string): Error {
    return tamperedError(`${this.path(case_id, no, kind)} does not say, under the key of this ledger, that ${what}`);
  }
}

const statementOf = (case_id: string, no: number, kind: 'erased' | 'replaced'): string =>
  `turnpike ${kind === 'erased' ? 'erasure' : 'replacement'}\n${case_id}\n${no}\n`;

/** @returns null if there is no file @throws LedgerError LEDGER_TAMPERED if other users have access to it */
function readText(path: string): string | null {
  try {
    const bytes = readSmallFile(path, { bytesMax: FILE_BYTES_MAX, forbiddenMode: 0o077 });
    return bytes === null ? null : Buffer.from(bytes).toString('utf8');
  } catch (cause) {
    if (cause instanceof PolicyError) throw tamperedError(cause.message);
    throw cause;
  }
}
