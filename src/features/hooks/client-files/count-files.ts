// Calls that a hook has denied without a decision of the service: nothing of them is in the ledger. The hook program
// counts them in a file for each session, outside of the project, and reports the counts with the next event; a service
// counts what it denies over HTTP without a record. `turnpike agents sessions` reads the files. Anyone may have changed
// one, so it holds nothing but counts: one byte for each call. A failure to count changes nothing else.

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
import { dataFolder, CLIENT_NAMES } from '../clients/client-names.js';
import { UNDECIDED_REASONS, type Client, type UndecidedReason } from '../hook-event.js';

/** How many calls were denied for each reason. */
export type UndecidedCounts = Readonly<Partial<Record<UndecidedReason, number>>>;

/** No file counts more calls. */
export const UNDECIDED_MAX = 4_096;

export const totalOf = (counts: UndecidedCounts): number =>
  Object.values(counts).reduce((sum: number, count) => sum + count, 0);

/**
 * The session that an event names, in a text that may be cut or no JSON: it only decides where a call is counted.
 * @returns null if none is found
 */
export function sessionIn(client: Client, text: string): string | null {
  const found = CLIENT_NAMES[client].sessionMembers.map((name) => valueIn(text, name));
  return found.find((value) => value !== null) ?? null;
}

/** Whether the event is that of a call before it is made. What has no name counts as one. */
export const isCallIn = (text: string): boolean =>
  !/^(?:post|after|session|subagent|tool_result)/i.test(
    valueIn(text, 'hook_event_name') ?? valueIn(text, 'hookName') ?? '',
  );

const valueIn = (text: string, name: string): string | null =>
  new RegExp(`"${name}"\\s*:\\s*"([^"\\\\]{1,128})"`).exec(text)?.[1] ?? null;

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
    return readCounts(this.#pathOf(client, session));
  }

  /** A session too many is counted with the events that name none. */
  add(client: Client, session: string | null, reason: UndecidedReason): void {
    const byte = BYTES[reason];
    if (!addToFile(this.#pathOf(client, session), byte) && session !== null)
      addToFile(this.#pathOf(client, null), byte);
  }

  remove(client: Client, session: string | null): void {
    rmSync(this.#pathOf(client, session), { force: true });
  }

  /** How many calls of a client are counted for other sessions than these. */
  others(client: Client, sessions: readonly string[]): number {
    const known = new Set(sessions.map((session) => this.#nameOf(client, session)));
    return namesIn(this.#folder)
      .filter((name) => name.startsWith(this.#prefixOf(client)) && !known.has(name))
      .map((name) => totalOf(readCounts(join(this.#folder, name))))
      .reduce((sum, count) => sum + count, 0);
  }

  #pathOf(client: Client, session: string | null): string {
    return join(this.#folder, this.#nameOf(client, session));
  }

  /** The name of the file that counts for a session, or for events without one; its beginning is that of its home. */
  #nameOf(client: Client, session: string | null): string {
    return `${this.#prefixOf(client)}${hashOf(session === null ? null : toRecordedScopeValue(session))}`;
  }

  #prefixOf(client: Client): string {
    return `${hashOf(this.#home)}-${client}-`;
  }
}

/** What a file counts. A byte that stands for no reason counts too. */
function countsIn(bytes: Uint8Array): UndecidedCounts {
  const counts: Partial<Record<UndecidedReason, number>> = {};
  for (const byte of bytes) {
    const letter = String.fromCharCode(byte);
    const reason = UNDECIDED_REASONS.find((one) => BYTES[one] === letter) ?? 'unreadable';
    counts[reason] = (counts[reason] ?? 0) + 1;
  }
  return counts;
}

const hashOf = (value: string | null): string => sha256(canonicalJson([value])).slice(0, 32);

/** Nothing is counted in a file that is not there, or that is no file of counts. */
function readCounts(path: string): UndecidedCounts {
  try {
    return countsIn(readRegularSync(path, UNDECIDED_MAX));
  } catch {
    return {};
  }
}

/** @returns whether it is counted: in a file that is full, and in one too many, it is not */
function addToFile(path: string, byte: string): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    const descriptor = openCountFile(path);
    try {
      const file = fstatSync(descriptor);
      return file.isFile() && file.size < UNDECIDED_MAX && writeSync(descriptor, byte) === 1;
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

/** The names of the files of a folder, sorted. */
function namesIn(folder: string): readonly string[] {
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
