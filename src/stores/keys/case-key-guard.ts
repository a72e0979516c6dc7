// Binds a folder of case keys to one ledger, so that no content is encrypted with a key that is not the ledger's.
//
//   G1. The folder names its ledger by the hash of the first log entry, which every copy of the ledger shares. A folder
//       without a name gets one when one of its keys opens a content of the ledger.
//   G2. A key is used for the first time only after it has opened what the ledger has under it. So a key that is
//       missing is not made a second time, and a key of another case or ledger encrypts nothing.

import { join } from 'node:path';
import { LedgerError } from '../../core/errors.js';
import { createFile, readSmallFile } from '../../system/files/small-file.js';
import { tamperedError } from '../ledger/store-errors.js';
import { createLruMap } from '../../system/lru-map.js';
import type { CaseKeys } from './case-keys.js';

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

  /** The cases whose keys have opened no content of the ledger yet, each once. */
  unproven(case_ids: Iterable<string>): readonly string[] {
    return [...new Set(case_ids)].filter((case_id) => this.#proven.get(case_id) !== true);
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
