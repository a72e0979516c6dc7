// Where the hook program counts what it denies without a decision, and a service what it denies over HTTP without a
// record: in small files, a byte for each time. Nothing of them is trusted. A failure to count changes nothing else.
// `turnpike agents sessions` reads them.

import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { toRecordedScopeValue } from '../../../core/contract/free-text.js';
import { sha256 } from '../../../core/contract/hash.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { readRegularSync } from '../../../system/files/open-file.js';
import { dataFolder } from '../clients/client-names.js';
import { UNDECIDED_REASONS, type Client, type UndecidedReason } from '../hook-event.js';
import { totalOf, UNDECIDED_MAX, type UndecidedCounts } from '../undecided-calls.js';

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/** More files are not made. */
const FILES_MAX = 1_024;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The byte that counts a call, by the reason of its denial. */
const BYTES: Readonly<Record<UndecidedReason, string>> = {
  no_service: 's',
  too_long: 'l',
  unreadable: 'u',
  failed: 'f',
  refused: 'r',
};

/** The counts of one home. */
export class CountFiles {
  readonly #folder: string;
  readonly #home: string;

  constructor(home: string, environment: Readonly<Record<string, string | undefined>>) {
    const userHome = environment['HOME'] ?? homedir();
    this.#folder = join(dataFolder({ userHome, environment }), 'undecided');
    this.#home = canonicalHome(home);
  }

  /** @param session null for events that name none */
  read(client: Client, session: string | null): UndecidedCounts {
    return countsIn(readCountFile(this.#pathOf(client, session), UNDECIDED_MAX));
  }

  /** A session too many is counted with the events that name none. */
  add(client: Client, session: string | null, reason: UndecidedReason): void {
    const byte = BYTES[reason];
    if (!addToCountFile(this.#pathOf(client, session), byte, UNDECIDED_MAX) && session !== null)
      addToCountFile(this.#pathOf(client, null), byte, UNDECIDED_MAX);
  }

  remove(client: Client, session: string | null): void {
    removeCountFile(this.#pathOf(client, session));
  }

  /** How many calls of a client are counted for other sessions than these. */
  others(client: Client, sessions: readonly string[]): number {
    const known = new Set(sessions.map((session) => countFileName(this.#home, client, session)));
    return listCountFiles(this.#folder)
      .filter((name) => name.startsWith(countFilePrefix(this.#home, client)) && !known.has(name))
      .map((name) => totalOf(countsIn(readCountFile(join(this.#folder, name), UNDECIDED_MAX))))
      .reduce((sum, count) => sum + count, 0);
  }

  #pathOf(client: Client, session: string | null): string {
    return join(this.#folder, countFileName(this.#home, client, session));
  }
}

/** What a file counts. A byte that stands for no reason counts too. */
export function countsIn(bytes: Uint8Array): UndecidedCounts {
  const counts: Partial<Record<UndecidedReason, number>> = {};
  for (const byte of bytes.subarray(0, UNDECIDED_MAX)) {
    const letter = String.fromCharCode(byte);
    const reason = UNDECIDED_REASONS.find((one) => BYTES[one] === letter) ?? 'unreadable';
    counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}

/** The name of the file that counts for a session, or for events without one; its beginning is that of its home. */
const countFileName = (home: string, client: Client, session: string | null): string =>
  `${countFilePrefix(home, client)}${hashOf(session === null ? null : toRecordedScopeValue(session))}`;

const countFilePrefix = (home: string, client: Client): string => `${hashOf(home)}-${client}-`;

const hashOf = (value: string | null): string => sha256(canonicalJson([value])).slice(0, 32);

/** The bytes of a file; none if there is no such file, or another one. */
export function readCountFile(path: string, bytesMax: number): Uint8Array {
  try {
    return readRegularSync(path, bytesMax);
  } catch {
    return new Uint8Array();
  }
}

/** @returns whether it is counted: in a file that is full, and in one too many, it is not */
export function addToCountFile(path: string, byte: string, bytesMax: number): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    const descriptor = openCountFile(path);
    try {
      const file = fstatSync(descriptor);
      return file.isFile() && file.size < bytesMax && writeSync(descriptor, byte) === 1;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false;
  }
}

function openCountFile(path: string): number {
  try {
    return openSync(path, APPEND);
  } catch {
    if (readdirSync(dirname(path)).length >= FILES_MAX) throw new RangeError(`${dirname(path)} is full`);
    return openSync(path, APPEND | constants.O_CREAT, FILE_MODE);
  }
}

export const removeCountFile = (path: string): void => rmSync(path, { force: true });

/** The names of the count files of a folder, sorted. */
export function listCountFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort().slice(0, FILES_MAX);
  } catch {
    return [];
  }
}

/** The path by which two processes name one home, whether it exists or not. */
function canonicalHome(home: string): string {
  try {
    return realpathSync(home);
  } catch {
    return resolve(home);
  }
}
