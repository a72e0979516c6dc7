// The keys of cases, each in a file with mode 0600. Content of a case is encrypted with its key. So destroying the key
// destroys the content, wherever its bytes remain: in free pages of a database, in its WAL, in retired disk blocks.
//
//   K1. A key is durable before anything is encrypted with it.
//   K2. The erasure note is durable before the key is destroyed, and the erasure counts from then on. If the process
//       dies in between, the next writer removes the key. An unsigned note removes no key: otherwise anyone who can
//       create files there could destroy content.
//   K3. A key number is used once, also by several processes: the first one to make a key wins. After an erasure or a
//       replacement the case continues with the next number.
//   K4. A signed list names all erasures (erasure-list.ts). It is durable before the key is destroyed, too.
//   K5. The note of a replacement has the replaced key, encrypted with the next one. So the next key opens all content
//       of the case, also in an older copy of the ledger, and destroying it destroys all of that. The replacement
//       counts from the note on. Until the file of the replaced key is destroyed, the replacement is unfinished.

import { randomBytes, createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LedgerError, usageError } from '../../core/errors.js';
import type { CaseKeyReplacement, CaseKeyReplacer } from '../../engine/ports/ledger/case-key-table.js';
import type { Erasure, ErasureSeal, TreeAppend } from '../../engine/ports/ledger/ledger-store.js';
import { CASE_KEYS_MAX, CaseKeyNotes, wrappedName, type ReplacementNote } from './case-key-notes.js';
import { appendErasures, ERASURE_LIST, type ListedErasure } from './erasure-list.js';
import { createFile, readSmallFile } from '../../system/files/small-file.js';
import { shredFile } from './key-file.js';
import { fsyncDirectorySync } from '../../system/files/fsync-directory.js';
import { createLruMap } from '../../system/lru-map.js';
import { tamperedError } from '../ledger/store-errors.js';

/** Maximum number of keys in each cache. */
const KNOWN_MAX = 1_024;

/** A key of a case; numbers start at 1. */
export interface CaseKey {
  readonly no: number;
  readonly cipher: CaseCipher;
}

/** A destroyed key. It encrypted only contents whose number is below `erased_below`. */
interface ErasedKey {
  readonly erased_below: number;
}

/** A cipher that may be used while the file of the key at `path` exists. */
interface KnownKey {
  readonly cipher: CaseCipher;
  readonly path: string;
}

export class CaseKeys {
  readonly #notes: CaseKeyNotes;
  #current = createLruMap<CaseKey>(KNOWN_MAX);
  #known = createLruMap<KnownKey | ErasedKey>(KNOWN_MAX);

  /** @param seal returns what signs notes, called when needed; null: they are not signed */
  constructor(directory: string, seal: () => ErasureSeal | null) {
    this.#notes = new CaseKeyNotes(directory, seal);
  }

  get directory(): string {
    return this.#notes.directory;
  }

  /** Signs and verifies notes with this seal from now on. */
  sealWith(seal: () => ErasureSeal | null): void {
    this.#notes.seal = seal;
    this.#known = createLruMap(KNOWN_MAX);
  }

  /** Reads every key again when it is used next: another process may have erased a case or replaced its key. */
  forget(): void {
    this.#current = createLruMap(KNOWN_MAX);
    this.#known = createLruMap(KNOWN_MAX);
  }

  /** The key that now encrypts content of the case; created if it does not exist. Only for the writer. */
  currentKey(case_id: string): CaseKey {
    const known = this.#current.get(case_id);
    if (known !== undefined) return known;
    let no = this.#lastEnded(case_id) + 1;
    while (this.#isAfter(case_id, no)) {
      // A later key shows that this one has ended: perhaps just now, by another process.
      const ended = this.#lastEnded(case_id);
      if (ended < no) throw this.#endlessError(case_id, no);
      no = ended + 1;
    }
    const cipher = this.#read(case_id, no) ?? this.#make(case_id, no);
    const key = { no, cipher };
    this.#current.set(case_id, key);
    return key;
  }

  /** Whether the key is missing, and the next one exists. */
  #isAfter(case_id: string, no: number): boolean {
    const [own, next] = [no, no + 1].map((number) => existsSync(this.#notes.path(case_id, number, 'key')));
    return own === false && next === true;
  }

  /** Making the key again would use its number twice (K3). */
  #endlessError(case_id: string, no: number): LedgerError {
    const path = this.#notes.path(case_id, no, 'key');
    return tamperedError(`the key ${path} and the note of its end are missing: restore them from a backup`);
  }

  /** The key with this number, or its erasure. @throws LedgerError LEDGER_TAMPERED if it is missing without a note */
  get(case_id: string, no: number): CaseCipher | ErasedKey {
    const id = `${case_id} ${no}`;
    const known = this.#known.get(id);
    // Another process may have erased it in the meantime: then this process must not use it either.
    if (known !== undefined && ('erased_below' in known || existsSync(known.path))) return cipherOf(known);
    const found = this.#erasedKey(case_id, no) ?? this.#keyOrErasure(case_id, no);
    this.#known.set(id, found);
    return cipherOf(found);
  }

  /** Reads the notes again after the key, because another process may erase the key in between. */
  #keyOrErasure(case_id: string, no: number): KnownKey | ErasedKey {
    try {
      const key = this.#find(case_id, no);
      if (key !== null) return key;
    } catch (error) {
      const erased = this.#erasedKey(case_id, no);
      if (erased !== null) return erased;
      throw error;
    }
    // The key may also have been replaced in between.
    const found = this.#erasedKey(case_id, no) ?? this.#find(case_id, no);
    if (found !== null) return found;
    const path = this.#notes.path(case_id, no, 'key');
    const replaced = this.#notes.replacement(case_id, no);
    if (replaced === null) throw tamperedError(`the key ${path} is missing: restore it from a backup`);
    throw tamperedError(
      `the key ${path} was replaced on ${replaced.at} by ${replaced.by}, and no key of this folder opens it: ` +
        `restore ${this.#notes.path(case_id, this.#lastReplaced(case_id, no) + 1, 'key')} from a backup`,
    );
  }

  /** The key, or what the keys after it have encrypted of it (K5). */
  #find(case_id: string, no: number): KnownKey | null {
    let replacedBy = no;
    let cipher = this.#read(case_id, no);
    while (cipher === null && this.#notes.replacement(case_id, replacedBy) !== null) {
      replacedBy += 1;
      cipher = this.#read(case_id, replacedBy);
    }
    if (cipher === null) return null;
    for (let wrapped = replacedBy - 1; wrapped >= no; wrapped -= 1) {
      const note = this.#notes.replacement(case_id, wrapped);
      const key = note === null ? null : cipher.unwrap(note.wrapped, wrappedName(case_id, wrapped));
      if (key === null) throw this.#unopenedError(case_id, wrapped);
      cipher = caseCipher(key);
    }
    return { cipher, path: this.#notes.path(case_id, replacedBy, 'key') };
  }

  /** The erasure of the key, or of the one that has replaced it: then what it encrypted cannot be opened either. */
  #erasedKey(case_id: string, no: number): ErasedKey | null {
    const note = this.#notes.erasure(
      case_id,
      this.#notes.erasure(case_id, no) === null ? this.#lastReplaced(case_id, no) + 1 : no,
    );
    return note === null ? null : { erased_below: note.erased_below };
  }

  /** The last one of the consecutive replaced keys from `no` on; `no - 1` if that one was not replaced. */
  #lastReplaced(case_id: string, no: number): number {
    let last = no;
    while (this.#notes.replacement(case_id, last) !== null) last += 1;
    return last - 1;
  }

  has(case_id: string): boolean {
    return existsSync(this.#notes.path(case_id, this.#lastEnded(case_id) + 1, 'key'));
  }

  /** The cases with keys, current or not, by name. */
  cases(): readonly string[] {
    return [...new Set(this.#notes.files().map(({ case_id }) => case_id))].sort();
  }

  /** The cases with erased keys, and the number of the last one of each. @throws LedgerError LEDGER_TAMPERED */
  erasedCases(): readonly { readonly case_id: string; readonly key_no: number }[] {
    const erased = this.#notes.files().filter(({ kind }) => kind === 'erased');
    const named = [...new Set(erased.map(({ case_id }) => case_id))].sort();
    return named.map((case_id) => ({ case_id, key_no: this.lastErased(case_id) }));
  }

  /** The erasure of a key of the case, as its note says; null without a note. @throws LedgerError LEDGER_TAMPERED */
  erasureOf(case_id: string, key_no: number): ListedErasure | null {
    const note = this.#notes.erasure(case_id, key_no);
    return note === null ? null : { case_id, key_no, at: note.at, by: note.by };
  }

  /** The number of the last erased key of the case; 0 if none was erased. What later keys encrypted is not erased. */
  lastErased(case_id: string): number {
    for (let no = this.#lastEnded(case_id); no > 0; no -= 1) if (this.#notes.erasure(case_id, no) !== null) return no;
    return 0;
  }

  /** The number of the last key that was erased or replaced; 0 if none was. */
  #lastEnded(case_id: string): number {
    for (let no = 1; ; no += 1) {
      if (this.#notes.erasure(case_id, no) === null && this.#notes.replacement(case_id, no) === null) return no - 1;
    }
  }

  /**
   * Destroys the current key of the case, and remains of earlier erasures and replacements. A case without a key gets
   * only the note that this number was erased.
   * @param contents number of contents in the ledger now
   * @returns the number up to which all keys are destroyed
   */
  destroy(case_id: string, contents: number, { at, by }: Pick<Erasure, 'at' | 'by'>): number {
    const no = this.#lastEnded(case_id) + 1;
    // First, so that after any failure nothing is encrypted with a key that may have an erasure note.
    this.forget();
    this.#makeFolder();
    this.#notes.writeErasure(case_id, no, { erased_below: contents, at, by });
    this.#listErasures();
    for (let old = 1; old <= no; old += 1) shredFile(this.#notes.path(case_id, old, 'key'));
    return no;
  }

  /** Destroys keys whose erasure was interrupted (K2). The writer calls it when it starts. */
  finishErasures(): void {
    const files = this.#notes.files();
    // A killed writer may not have made the names durable on which K1 and K2 rely.
    if (this.#notes.names().length > 0) fsyncDirectorySync(this.#notes.directory);
    this.#listErasures();
    const erased = new Set(files.filter(({ kind }) => kind === 'erased').map(({ case_id }) => case_id));
    for (const { case_id, no, kind } of files) {
      // What a replaced key has encrypted is erased together with the key that replaced it.
      if (kind !== 'key' || !erased.has(case_id) || !this.#isErased(case_id, no)) continue;
      shredFile(this.#notes.path(case_id, no, 'key'));
    }
  }

  /** K4. Notes that are not valid are left out: reading that content reports them. */
  #listErasures(): void {
    const seal = this.#notes.seal();
    if (seal === null) return;
    const found: ListedErasure[] = [];
    for (const { case_id, no, kind } of this.#notes.files()) {
      if (kind !== 'erased' || !this.#isErased(case_id, no)) continue;
      const erased = this.erasureOf(case_id, no);
      if (erased !== null) found.push(erased);
    }
    appendErasures(join(this.#notes.directory, ERASURE_LIST), seal, found);
  }

  /** False also for a note with an invalid signature; reading that content reports it. */
  #isErased(case_id: string, no: number): boolean {
    try {
      return this.#erasedKey(case_id, no) !== null;
    } catch (error) {
      if (error instanceof LedgerError) return false;
      throw error;
    }
  }

  /**
   * Replaces the current key of the case (K5).
   * @param contents how many contents the case has now
   * @throws UsageError if it has no key, or has had too many; LedgerError LEDGER_TAMPERED
   */
  replace(case_id: string, contents: number, { at, by, role }: CaseKeyReplacer): CaseKeyReplacement {
    const key_no = this.#lastEnded(case_id) + 1;
    const replaced = this.#notes.key(case_id, key_no);
    if (replaced === null) throw usageError(`the case ${case_id} has no key: nothing of it is encrypted`);
    if (key_no >= CASE_KEYS_MAX) throw usageError(`the key of a case can be replaced ${CASE_KEYS_MAX - 1} times`);
    // K1. An attempt that was interrupted here has left a key that has encrypted nothing.
    const next = this.#read(case_id, key_no + 1) ?? this.#make(case_id, key_no + 1);
    const wrapped = next.wrap(replaced, wrappedName(case_id, key_no));
    // First, so that after any failure nothing is encrypted with a key that may have a note.
    this.forget();
    this.#notes.writeReplacement({ case_id, key_no, contents, at, by, role, wrapped });
    return { case_id, key_no, contents, at, by, role };
  }

  /** The notes of all replacements, by case and number. @throws LedgerError LEDGER_TAMPERED for an invalid one */
  replacements(): readonly CaseKeyReplacement[] {
    const replaced = this.#notes.files().filter(({ kind }) => kind === 'replaced');
    const notes = replaced.map(({ case_id, no }) => this.#notes.replacement(case_id, no));
    return notes.filter((note) => note !== null).map(withoutKey);
  }

  /** The replacements whose old key is not destroyed yet. @throws like `replacements` */
  unfinishedReplacements(): readonly CaseKeyReplacement[] {
    const names = new Set(this.#notes.names());
    return this.replacements().filter(({ case_id, key_no }) => names.has(`${case_id}.${key_no}.key`));
  }

  /**
   * Encrypts content again, with the current key of its case.
   * @throws LedgerError LEDGER_TAMPERED if the key that has encrypted it does not open it
   */
  reseal({ case_id, key_no, sha256, stored }: SealedContent): { readonly key_no: number; readonly stored: Buffer } {
    const [old, hash] = [this.get(case_id, key_no), Buffer.from(sha256, 'hex')];
    const content = 'erased_below' in old || stored === null ? null : old.open(stored, hash);
    if (content !== null) {
      const { no, cipher } = this.currentKey(case_id);
      return { key_no: no, stored: cipher.seal(content, hash) };
    }
    throw tamperedError(
      `the content of case ${case_id} stored as ${sha256} is not what it was, so it cannot be encrypted with another ` +
        'key: restore it from a backup',
    );
  }

  /** Destroys the replaced keys of a case. Nothing that they have encrypted may be left in the ledger. */
  destroyReplaced(case_id: string): void {
    const last = this.#lastEnded(case_id);
    // The oldest first: the next key has to open it.
    for (let no = 1; no <= last; no += 1) {
      const [note, path] = [this.#notes.replacement(case_id, no), this.#notes.path(case_id, no, 'key')];
      if (note === null || !existsSync(path)) continue;
      const key = this.#notes.key(case_id, no);
      // An older copy of the ledger needs what the note has of the key.
      const opened = this.#read(case_id, no + 1)?.unwrap(note.wrapped, wrappedName(case_id, no));
      if (key !== null && opened?.equals(key) !== true) throw this.#unopenedError(case_id, no);
      shredFile(path);
    }
    this.forget();
  }

  #unopenedError(case_id: string, no: number): LedgerError {
    const [note, next] = (['replaced', 'key'] as const).map((kind, at) => this.#notes.path(case_id, no + at, kind));
    return tamperedError(`${next ?? ''} does not open the key in ${note ?? ''}: restore both from one backup`);
  }

  #read(case_id: string, no: number): CaseCipher | null {
    const key = this.#notes.key(case_id, no);
    return key === null ? null : caseCipher(key);
  }

  #make(case_id: string, no: number): CaseCipher {
    const key = randomBytes(CASE_KEY_BYTES);
    this.#makeFolder();
    const path = this.#notes.path(case_id, no, 'key');
    if (createFile(path, `turnpike-case-key ${key.toString('base64')}\n`, 0o600)) return caseCipher(key);
    // Another process was faster. Content may be encrypted with its key already.
    const cipher = this.#read(case_id, no);
    if (cipher !== null) return cipher;
    throw tamperedError(`the key ${path} was removed while it was made`);
  }

  #makeFolder(): void {
    const { directory } = this.#notes;
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) fsyncDirectorySync(dirname(directory));
  }
}

const cipherOf = (key: KnownKey | ErasedKey): CaseCipher | ErasedKey => ('cipher' in key ? key.cipher : key);

const withoutKey = ({ case_id, key_no, contents, at, by, role }: ReplacementNote): CaseKeyReplacement => ({
  ...{ case_id, key_no, contents },
  ...{ at, by, role },
});

// Encrypts the stored content of a case: AES-256-GCM, with the hash of the content as associated data.

const CASE_KEY_BYTES = 32;
/** Length of the authentication tag: sealed content is longer than the content by this number of bytes. */
export const SEAL_BYTES = 16;

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;

/** Encrypts and decrypts content with one key. */
export interface CaseCipher {
  /** @param hash SHA-256 of the content */
  seal(content: Uint8Array, hash: Uint8Array): Buffer;
  /** @returns null if the bytes were not sealed with this key for this hash */
  open(sealed: Uint8Array, hash: Uint8Array): Buffer | null;
  /** Encrypts the one key that this key replaces. @param name its case and number */
  wrap(replaced: Uint8Array, name: string): Buffer;
  /** @returns null if the bytes were not wrapped with this key under this name */
  unwrap(wrapped: Uint8Array, name: string): Buffer | null;
}

/**
 * Creates the cipher of a case key. The nonce is derived from the hash of the content with a separate key. So equal
 * content gives equal bytes, different content gets another nonce, and an agent cannot choose two contents that share a
 * nonce.
 */
export function caseCipher(key: Uint8Array): CaseCipher {
  const contentKey = deriveKey(key, 'turnpike content');
  const nonceKey = deriveKey(key, 'turnpike nonce');
  const nonceOf = (hash: Uint8Array): Buffer =>
    createHmac('sha256', nonceKey).update(hash).digest().subarray(0, NONCE_BYTES);
  // A key of its own: an agent chooses contents, and no content may share key and nonce with a wrapped key.
  const wrapKey = (): Buffer => deriveKey(key, 'turnpike replaced key');
  return {
    seal: (content, hash) => encrypt({ key: contentKey, nonce: nonceOf(hash), about: hash }, content),
    open: (sealed, hash) => decrypt({ key: contentKey, nonce: nonceOf(hash), about: hash }, sealed),
    wrap: (replaced, name) => {
      const nonce = randomBytes(NONCE_BYTES);
      return Buffer.concat([nonce, encrypt({ key: wrapKey(), nonce, about: Buffer.from(name) }, replaced)]);
    },
    unwrap: (wrapped, name) => {
      const [nonce, sealed] = [wrapped.subarray(0, NONCE_BYTES), wrapped.subarray(NONCE_BYTES)];
      return decrypt({ key: wrapKey(), nonce: Buffer.from(nonce), about: Buffer.from(name) }, sealed);
    },
  };
}

interface CipherParts {
  readonly key: Buffer;
  readonly nonce: Buffer;
  /** The associated data. */
  readonly about: Uint8Array;
}

function encrypt({ key, nonce, about }: CipherParts, content: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(about);
  return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

function decrypt({ key, nonce, about }: CipherParts, sealed: Uint8Array): Buffer | null {
  const end = sealed.byteLength - SEAL_BYTES;
  if (end < 0 || nonce.byteLength !== NONCE_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: SEAL_BYTES });
  decipher.setAAD(about).setAuthTag(sealed.subarray(end));
  const content = decipher.update(sealed.subarray(0, end));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return content;
}

const deriveKey = (key: Uint8Array, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', purpose, CASE_KEY_BYTES));

// Binds a folder of case keys to one ledger, so that no content is encrypted with a key that is not the ledger's.
//
//   G1. The folder names its ledger by the hash of the first log entry, which every copy of the ledger shares. A folder
//       without a name gets one when one of its keys opens a content of the ledger.
//   G2. A key is used for the first time only after it has opened what the ledger has under it. So a key that is
//       missing is not made a second time, and a key of another case or ledger encrypts nothing.

/** In the folder of the case keys. */
export const KEY_FOLDER_NAME = 'ledger.origin';
const NAME = /^turnpike-case-keys ([0-9a-f]{64})\n$/;
const NAME_BYTES_MAX = 128;
/** How many keys are known to be those of the ledger. */
const PROVEN_MAX = 10_000;

/** A stored content of a case. */
export interface SealedContent {
  readonly case_id: string;
  readonly key_no: number;
  /** Of the content before encryption, in lower-case hex. */
  readonly sha256: string;
  /** Null if it is too large to be read here: then only the key must exist. */
  readonly stored: Uint8Array | null;
}

/** What a ledger says about its keys. */
export interface KeyedLedger {
  /** The hash of the first log entry; null if the log is empty, or its beginning is archived. */
  readonly origin: string | null;
  readonly isEmpty: boolean;
  /** Its newest content of a case, if it has any. */
  readonly newest: SealedContent | null;
}

export class CaseKeyGuard {
  readonly #keys: CaseKeys;
  #proven = createLruMap<true>(PROVEN_MAX);
  #isNamed = false;

  constructor(keys: CaseKeys) {
    this.#keys = keys;
  }

  /** Whether the folder names the ledger, which was compared. */
  get isNamed(): boolean {
    return this.#isNamed;
  }

  /** G1, for a reader. @throws LedgerError LEDGER_CONFLICT if the folder names another ledger */
  refuseOther({ origin, isEmpty }: Pick<KeyedLedger, 'origin' | 'isEmpty'>): void {
    const name = this.#readName();
    if (name === null || name === origin || (origin === null && !isEmpty)) return;
    throw this.#foreignError(`it names the ledger ${name.slice(0, 16)}, and this one is ${shortName(origin)}`);
  }

  /** G1, for a writer. @throws LedgerError LEDGER_CONFLICT if the folder is not that of the ledger */
  bind(ledger: KeyedLedger): void {
    this.refuseOther(ledger);
    const { origin, newest } = ledger;
    const name = this.#readName();
    this.#isNamed = name !== null && name === origin;
    if (this.#isNamed || newest === null) return;
    if (!this.#opens(newest)) {
      throw this.#foreignError(`no key in it opens the content of ${newest.case_id} in the ledger`);
    }
    if (name !== null || origin === null) return;
    createFile(join(this.#keys.directory, KEY_FOLDER_NAME), `turnpike-case-keys ${origin}\n`, 0o600);
    this.refuseOther(ledger);
    this.#isNamed = true;
  }

  /** The cases with content in a batch whose keys have opened no content of the ledger yet, each once. */
  unproven(trees: readonly TreeAppend[]): readonly string[] {
    const found = new Set<string>();
    for (const { artifacts } of trees) {
      for (const { artifact } of artifacts) {
        const { case_id } = artifact;
        if (case_id !== null && this.#proven.get(case_id) !== true) found.add(case_id);
      }
    }
    return [...found];
  }

  /**
   * G2. @param newest the newest content of the case whose key was not erased
   * @throws LedgerError LEDGER_TAMPERED if the keys of the folder do not open it
   */
  prove(case_id: string, newest: SealedContent | null): void {
    if (newest !== null && !this.#opens(newest)) {
      throw tamperedError(
        `no key of ${case_id} in ${this.#keys.directory} opens what the ledger has under key ${newest.key_no} of the ` +
          'case: mount the key folder of the ledger, or restore the key from a backup',
      );
    }
    this.#proven.set(case_id, true);
  }

  /** Whether a key opens the content, or was erased with it. */
  #opens({ case_id, key_no, sha256, stored }: SealedContent): boolean {
    try {
      const cipher = this.#keys.get(case_id, key_no);
      return 'erased_below' in cipher || stored === null || cipher.open(stored, Buffer.from(sha256, 'hex')) !== null;
    } catch (error) {
      if (error instanceof LedgerError) return false;
      throw error;
    }
  }

  /** @throws LedgerError LEDGER_TAMPERED for a name that is not valid */
  #readName(): string | null {
    const path = join(this.#keys.directory, KEY_FOLDER_NAME);
    const bytes = readSmallFile(path, { bytesMax: NAME_BYTES_MAX, forbiddenMode: 0o022 });
    if (bytes === null) return null;
    const [, name] = NAME.exec(Buffer.from(bytes).toString('latin1')) ?? [];
    if (name !== undefined) return name;
    throw tamperedError(`${path} does not name a ledger: remove it, and the next opening writes it anew`);
  }

  #foreignError(why: string): LedgerError {
    return new LedgerError({
      code: 'LEDGER_CONFLICT',
      message: `${this.#keys.directory} is not the key folder of the ledger: ${why}. Mount the key folder of the ledger`,
    });
  }
}

const shortName = (origin: string | null): string => (origin === null ? 'empty' : origin.slice(0, 16));
