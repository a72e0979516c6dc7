// The keys of cases, each in a file with mode 0600. Content of a case is encrypted with its key. So destroying the key
// destroys the content, wherever its bytes remain: in free pages of a database, in its WAL, in retired disk blocks.
//
//   K1. A key is durable before anything is encrypted with it.
//   K2. The erasure note is durable before the key is destroyed, and the erasure counts from then on. If the process
//       dies in between, the next writer removes the key. An unsigned note removes no key: otherwise anyone who can
//       create files there could destroy content.
//   K3. A key number is used once, also by several processes: the first one to make a key wins. After an erasure the
//       case continues with the next number.
//   K4. A signed list names all erasures (erasure-list.ts). It is durable before the key is destroyed, too.

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LedgerError, PolicyError } from '../../errors.js';
import type { Erasure, ErasureSeal } from '../../ports/ledger/ledger-store.js';
import { CASE_KEY_BYTES, caseCipher, type CaseCipher } from './case-cipher.js';
import { appendErasures, ERASURE_LIST, type ListedErasure } from './erasure-list.js';
import { isCaseId } from '../ledger/check-batch.js';
import { errorCode } from '../system/error-code.js';
import { createFile, readSmallFile, replaceFile } from '../files/small-file.js';
import { shredFile } from './key-file.js';
import { fsyncDirectorySync } from '../files/fsync-directory.js';
import { createLruMap } from '../system/lru-map.js';
import { tamperedError } from '../ledger/store-errors.js';

/** Maximum number of keys in each cache. */
const KNOWN_MAX = 1_024;
const FILE_BYTES_MAX = 2_048;
const KEY = /^turnpike-case-key ([A-Za-z0-9+/]{43}=)\n$/;
/** The rest of an erasure note: number of contents, time, and who requested it. */
const ERASED = /^(\d{1,15})\n([^\n]*)\n([^\n]*)\n$/;
const ERASURE_FILE = /^(.+)\.([1-9]\d*)\.erased$/;

/** A key of a case; numbers start at 1. */
export interface CaseKey {
  readonly no: number;
  readonly cipher: CaseCipher;
}

/** A destroyed key. It encrypted only contents whose number is below `erased_below`. */
export interface ErasedKey {
  readonly erased_below: number;
}

interface ErasureNote extends ErasedKey {
  readonly at: string;
  readonly by: string;
}

export class CaseKeys {
  readonly #directory: string;
  #seal: () => ErasureSeal | null;
  #current = createLruMap<CaseKey>(KNOWN_MAX);
  #known = createLruMap<CaseCipher | ErasedKey>(KNOWN_MAX);

  /** @param seal returns what signs erasure notes, called when needed; null: they are not signed */
  constructor(directory: string, seal: () => ErasureSeal | null) {
    this.#directory = directory;
    this.#seal = seal;
  }

  /** Signs and verifies erasure notes with this seal from now on. */
  sealWith(seal: () => ErasureSeal | null): void {
    this.#seal = seal;
    this.#known = createLruMap(KNOWN_MAX);
  }

  /** Reads every key again when it is used next: another process may have erased a case. */
  forget(): void {
    this.#current = createLruMap(KNOWN_MAX);
    this.#known = createLruMap(KNOWN_MAX);
  }

  /** The key that now encrypts content of the case; created if it does not exist. Only for the writer. */
  currentKey(case_id: string): CaseKey {
    const known = this.#current.get(case_id);
    if (known !== undefined) return known;
    const no = this.lastErased(case_id) + 1;
    const cipher = this.#read(case_id, no) ?? this.#make(case_id, no);
    const key = { no, cipher };
    this.#current.set(case_id, key);
    return key;
  }

  /** The key with this number, or its erasure. @throws LedgerError LEDGER_TAMPERED if it is missing without a note */
  get(case_id: string, no: number): CaseCipher | ErasedKey {
    const id = `${case_id} ${no}`;
    const known = this.#known.get(id);
    // Another process may have erased it in the meantime: then this process must not use it either.
    if (known !== undefined && ('erased_below' in known || existsSync(this.#path(case_id, no, 'key')))) return known;
    const found = erasedKeyOf(this.#readErasure(case_id, no)) ?? this.#keyOrNote(case_id, no);
    this.#known.set(id, found);
    return found;
  }

  /** Reads the note again after the key, because another process may erase the key in between. */
  #keyOrNote(case_id: string, no: number): CaseCipher | ErasedKey {
    try {
      const cipher = this.#read(case_id, no);
      if (cipher !== null) return cipher;
    } catch (error) {
      const erased = erasedKeyOf(this.#readErasure(case_id, no));
      if (erased !== null) return erased;
      throw error;
    }
    const erased = erasedKeyOf(this.#readErasure(case_id, no));
    if (erased !== null) return erased;
    throw tamperedError(`the key ${this.#path(case_id, no, 'key')} is missing: restore it from a backup`);
  }

  has(case_id: string): boolean {
    return existsSync(this.#path(case_id, this.lastErased(case_id) + 1, 'key'));
  }

  /** The cases with erased keys, and the number of the last one of each. @throws LedgerError LEDGER_TAMPERED */
  erasedCases(): readonly { readonly case_id: string; readonly key_no: number }[] {
    const cases = this.#names().map((name) => ERASURE_FILE.exec(name)?.[1]);
    const named = [...new Set(cases.filter((case_id) => case_id !== undefined))].sort();
    return named.map((case_id) => ({ case_id, key_no: this.lastErased(case_id) }));
  }

  /** The erasure of a key of the case, as its note says; null without a note. @throws LedgerError LEDGER_TAMPERED */
  erasureOf(case_id: string, key_no: number): ListedErasure | null {
    const note = this.#readErasure(case_id, key_no);
    return note === null ? null : { case_id, key_no, at: note.at, by: note.by };
  }

  /** The number of the last erased key of the case; 0 if none was erased. */
  lastErased(case_id: string): number {
    for (let no = 1; ; no += 1) if (this.#readErasure(case_id, no) === null) return no - 1;
  }

  /**
   * Destroys the current key of the case, and remains of earlier erasures. A case without a key gets only the note that
   * this number was erased.
   * @param contents number of contents in the ledger now
   * @returns the number up to which all keys are destroyed
   */
  destroy(case_id: string, contents: number, { at, by }: Pick<Erasure, 'at' | 'by'>): number {
    const last = this.lastErased(case_id);
    const no = last + 1;
    const statement = `${statementOf(case_id, no)}${contents}\n${at}\n${by}\n`;
    // First, so that after any failure nothing is encrypted with a key that may have an erasure note.
    this.forget();
    this.#makeFolder();
    replaceFile(this.#path(case_id, no, 'erased'), this.#seal()?.seal(statement) ?? statement, 0o600);
    this.#listErasures();
    for (let old = 1; old <= no; old += 1) shredFile(this.#path(case_id, old, 'key'));
    return no;
  }

  /** Destroys keys whose erasure was interrupted (K2). The writer calls it when it starts. */
  finishErasures(): void {
    const names = new Set(this.#names());
    // A killed writer may not have made the names durable on which K1 and K2 rely.
    if (names.size > 0) fsyncDirectorySync(this.#directory);
    this.#listErasures();
    for (const name of names) {
      const [, case_id = '', no = ''] = ERASURE_FILE.exec(name) ?? [];
      if (!names.has(`${case_id}.${no}.key`) || !this.#isErased(case_id, Number(no))) continue;
      shredFile(this.#path(case_id, Number(no), 'key'));
    }
  }

  /** K4. Notes that are not valid are left out: reading that content reports them. */
  #listErasures(): void {
    const seal = this.#seal();
    if (seal === null) return;
    const found: ListedErasure[] = [];
    for (const name of this.#names()) {
      const [, case_id, no] = ERASURE_FILE.exec(name) ?? [];
      if (case_id === undefined || !this.#isErased(case_id, Number(no))) continue;
      const erased = this.erasureOf(case_id, Number(no));
      if (erased !== null) found.push(erased);
    }
    appendErasures(join(this.#directory, ERASURE_LIST), seal, found);
  }

  /** False also for a note with an invalid signature; reading that content reports it. */
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

  /** @throws LedgerError LEDGER_TAMPERED for an erasure note with an invalid signature */
  #readErasure(case_id: string, no: number): ErasureNote | null {
    const path = this.#path(case_id, no, 'erased');
    const note = readText(path);
    if (note === null) return null;
    const seal = this.#seal();
    const statement = seal === null ? note : seal.open(note);
    const prefix = statementOf(case_id, no);
    const rest = statement?.startsWith(prefix) ? statement.slice(prefix.length) : '';
    const [, contents, at = '', by = ''] = ERASED.exec(rest) ?? [];
    if (contents !== undefined) return { erased_below: Number(contents), at, by };
    throw tamperedError(`${path} does not say, under the key of this ledger, that this content was erased`);
  }

  #read(case_id: string, no: number): CaseCipher | null {
    const path = this.#path(case_id, no, 'key');
    const text = readText(path);
    if (text === null) return null;
    const [, key] = KEY.exec(text) ?? [];
    if (key === undefined) throw tamperedError(`${path} is not a valid key: restore it from a backup`);
    return caseCipher(Buffer.from(key, 'base64'));
  }

  #make(case_id: string, no: number): CaseCipher {
    const key = randomBytes(CASE_KEY_BYTES);
    this.#makeFolder();
    const path = this.#path(case_id, no, 'key');
    if (createFile(path, `turnpike-case-key ${key.toString('base64')}\n`, 0o600)) return caseCipher(key);
    // Another process was faster. Content may be encrypted with its key already.
    const cipher = this.#read(case_id, no);
    if (cipher !== null) return cipher;
    throw tamperedError(`the key ${path} was removed while it was made`);
  }

  #makeFolder(): void {
    const made = mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) fsyncDirectorySync(dirname(this.#directory));
  }

  #path(case_id: string, no: number, what: 'key' | 'erased'): string {
    // The case id may come from a tampered database.
    if (!isCaseId(case_id)) throw tamperedError(`not a case id: ${JSON.stringify(case_id)}`);
    return join(this.#directory, `${case_id}.${no}.${what}`);
  }
}

const erasedKeyOf = (note: ErasureNote | null): ErasedKey | null =>
  note === null ? null : { erased_below: note.erased_below };

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

const statementOf = (case_id: string, no: number): string => `turnpike erasure\n${case_id}\n${no}\n`;
