// The keys of cases, each a file that is the owner's alone. Content of a case is encrypted with its key, so that to
// destroy the key is to destroy the content, wherever else its bytes may lie: in the free pages of a database, in its
// log, in the blocks that a disk has put aside.
//
//   K1. A key is durable before anything is encrypted with it.
//   K2. What says that a key was erased is durable before the key is destroyed, and counts from then on: whoever dies
//       in between has erased it, and the next writer takes away what is left of the key. What is not vouched for
//       takes no key away: whoever has put it there would destroy content by it.
//   K3. A number is used once. After an erasure the case goes on with the next one.

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { LedgerError, PolicyError } from '../../errors.js';
import type { Erasure, ErasureSeal } from '../../ports/ledger/ledger-store.js';
import { CASE_KEY_BYTES, caseCipher, type CaseCipher } from './case-cipher.js';
import { isCaseId } from '../ledger/check-batch.js';
import { errorCode } from '../system/error-code.js';
import { readSmallFile, replaceFile } from '../files/small-file.js';
import { fsyncDirectorySync } from '../files/fsync-directory.js';
import { createLruMap } from '../system/lru-map.js';
import { tamperedError } from '../ledger/store-errors.js';

/** So many keys are kept at hand. */
const KNOWN_MAX = 1_024;
const FILE_BYTES_MAX = 2_048;
const KEY = /^turnpike-case-key ([A-Za-z0-9+/]{43}=)\n$/;
/** How many contents there were, when it was, and who wanted it. */
const ERASED = /^(\d{1,15})\n[^\n]*\n[^\n]*\n$/;
const ERASURE_FILE = /^(.+)\.([1-9]\d*)\.erased$/;

/** A key of a case: its number counts from 1. */
export interface CaseKey {
  readonly no: number;
  readonly cipher: CaseCipher;
}

/** A key that was destroyed: it had encrypted content with numbers below this one, and nothing else. */
export interface ErasedKey {
  readonly erased_below: number;
}

export class CaseKeys {
  readonly #directory: string;
  #seal: () => ErasureSeal | null;
  #current = createLruMap<CaseKey>(KNOWN_MAX);
  #known = createLruMap<CaseCipher | ErasedKey>(KNOWN_MAX);

  /** @param seal who vouches for erasures, asked when it is needed; null where nobody does */
  constructor(directory: string, seal: () => ErasureSeal | null) {
    this.#directory = directory;
    this.#seal = seal;
  }

  /** From now on erasures are signed, and verified, with this seal. */
  sealWith(seal: () => ErasureSeal | null): void {
    this.#seal = seal;
    this.#known = createLruMap(KNOWN_MAX);
  }

  /** The key that content of the case is encrypted with now; made where there is none. For the writer. */
  currentKey(case_id: string): CaseKey {
    const known = this.#current.get(case_id);
    if (known !== undefined) return known;
    const no = this.lastErased(case_id) + 1;
    const cipher = this.#read(case_id, no) ?? this.#make(case_id, no);
    const key = { no, cipher };
    this.#current.set(case_id, key);
    return key;
  }

  /** The key of this number, or what became of it. @throws LedgerError LEDGER_TAMPERED where it is merely gone */
  get(case_id: string, no: number): CaseCipher | ErasedKey {
    const id = `${case_id} ${no}`;
    const known = this.#known.get(id);
    // Another process may have erased it meanwhile: then its content is not to be had here either.
    if (known !== undefined && ('erased_below' in known || existsSync(this.#path(case_id, no, 'key')))) return known;
    const found = this.#readErasure(case_id, no) ?? this.#keyOrNote(case_id, no);
    this.#known.set(id, found);
    return found;
  }

  /** Another process may erase it between one look and the other: then there is a note by now. */
  #keyOrNote(case_id: string, no: number): CaseCipher | ErasedKey {
    try {
      const cipher = this.#read(case_id, no);
      if (cipher !== null) return cipher;
    } catch (error) {
      const erased = this.#readErasure(case_id, no);
      if (erased !== null) return erased;
      throw error;
    }
    const erased = this.#readErasure(case_id, no);
    if (erased !== null) return erased;
    throw tamperedError(`the key ${this.#path(case_id, no, 'key')} is missing: restore it from a backup`);
  }

  /** Whether the case has a key now. */
  has(case_id: string): boolean {
    return existsSync(this.#path(case_id, this.lastErased(case_id) + 1, 'key'));
  }

  /** The number of the last key of the case that was erased; 0 where none was. */
  lastErased(case_id: string): number {
    for (let no = 1; ; no += 1) if (this.#readErasure(case_id, no) === null) return no - 1;
  }

  /**
   * Destroys the key that the case has, and whatever an erasure before this one has left of it. A case without a key
   * gets none: its number says that it was erased.
   * @param contents how many contents the ledger has by now
   * @returns the number up to which all keys are destroyed
   */
  destroy(case_id: string, contents: number, { at, by }: Pick<Erasure, 'at' | 'by'>): number {
    const last = this.lastErased(case_id);
    const no = last + 1;
    const statement = `${statementOf(case_id, no)}${contents}\n${at}\n${by}\n`;
    // First: whatever fails from here on, nothing is encrypted any more with a key that may be said to be erased.
    this.#current = createLruMap(KNOWN_MAX);
    this.#known = createLruMap(KNOWN_MAX);
    this.#makeFolder();
    replaceFile(this.#path(case_id, no, 'erased'), this.#seal()?.seal(statement) ?? statement, 0o600);
    for (let old = 1; old <= no; old += 1) this.#shred(this.#path(case_id, old, 'key'));
    return no;
  }

  /** Takes away keys whose erasure was cut short (K2). For the writer, when it begins. */
  finishErasures(): void {
    const names = new Set(this.#names());
    // Who was killed may not have made the names durable that are relied on from now on (K1, K2).
    if (names.size > 0) fsyncDirectorySync(this.#directory);
    for (const name of names) {
      const [, case_id = '', no = ''] = ERASURE_FILE.exec(name) ?? [];
      if (!names.has(`${case_id}.${no}.key`) || !this.#isErased(case_id, Number(no))) continue;
      this.#shred(this.#path(case_id, Number(no), 'key'));
    }
  }

  /** False too for what is not vouched for, which whoever reads that content is told. */
  #isErased(case_id: string, no: number): boolean {
    try {
      return this.#readErasure(case_id, no) !== null;
    } catch (error) {
      if (error instanceof LedgerError) return false;
      throw error;
    }
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#directory);
    } catch (cause) {
      if (errorCode(cause) === 'ENOENT') return [];
      throw cause;
    }
  }

  /** @throws LedgerError LEDGER_TAMPERED for what says that it was erased and is not vouched for */
  #readErasure(case_id: string, no: number): ErasedKey | null {
    const path = this.#path(case_id, no, 'erased');
    const note = readText(path);
    if (note === null) return null;
    const seal = this.#seal();
    const statement = seal === null ? note : seal.open(note);
    const prefix = statementOf(case_id, no);
    const [, contents] = ERASED.exec(statement?.startsWith(prefix) ? statement.slice(prefix.length) : '') ?? [];
    if (contents !== undefined) return { erased_below: Number(contents) };
    throw tamperedError(`${path} does not say, under the key of this ledger, that this content was erased`);
  }

  #read(case_id: string, no: number): CaseCipher | null {
    const path = this.#path(case_id, no, 'key');
    const text = readText(path);
    if (text === null) return null;
    const [, key] = KEY.exec(text) ?? [];
    if (key === undefined) throw tamperedError(`${path} is no key: restore it from a backup`);
    return caseCipher(Buffer.from(key, 'base64'));
  }

  #make(case_id: string, no: number): CaseCipher {
    const key = randomBytes(CASE_KEY_BYTES);
    this.#makeFolder();
    replaceFile(this.#path(case_id, no, 'key'), `turnpike-case-key ${key.toString('base64')}\n`, 0o600);
    return caseCipher(key);
  }

  #makeFolder(): void {
    const made = mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) fsyncDirectorySync(dirname(this.#directory));
  }

  /** Overwritten first: a file that is unlinked still lies where it lay. */
  #shred(path: string): void {
    let file: number;
    try {
      file = openSync(path, 'r+');
    } catch (cause) {
      if (errorCode(cause) === 'ENOENT') return;
      throw cause;
    }
    try {
      writeSync(file, Buffer.alloc(fstatSync(file).size), 0, null, 0);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    unlinkSync(path);
    fsyncDirectorySync(this.#directory);
  }

  #path(case_id: string, no: number, what: 'key' | 'erased'): string {
    // It may come from a database that somebody changed.
    if (!isCaseId(case_id)) throw tamperedError(`not a case id: ${JSON.stringify(case_id)}`);
    return join(this.#directory, `${case_id}.${no}.${what}`);
  }
}

/** @returns null where there is no file @throws LedgerError LEDGER_TAMPERED for one that is not the owner's alone */
function readText(path: string): string | null {
  try {
    const bytes = readSmallFile(path, { bytesMax: FILE_BYTES_MAX, forbiddenMode: 0o077 });
    return bytes === null ? null : Buffer.from(bytes).toString('utf8');
  } catch (cause) {
    if (cause instanceof PolicyError) throw tamperedError(cause.message);
    throw cause;
  }
}

const statementOf = (case_id: string, no: number): string => `turnpike erasure\n${case_id}\n${no}\n`;
