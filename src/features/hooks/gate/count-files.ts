// Where the hook program counts what it denies without a decision, and a service what it denies over HTTP without a
// record. `turnpike agents sessions` reads it.

import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  addToCountFile,
  canonicalHome,
  listCountFiles,
  readCountFile,
  removeCountFile,
} from '../client-files/count-file.js';
import { dataFolder } from '../clients/settings-places.js';
import type { Client, UndecidedReason } from '../hook-event.js';
import {
  byteOf,
  countFileName,
  countFilePrefix,
  countsIn,
  totalOf,
  UNDECIDED_MAX,
  type UndecidedCounts,
} from '../undecided-calls.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The counts of one home. */
export class CountFiles {
  readonly #folder: string;
  readonly #home: string;

  constructor(home: string, environment: Environment) {
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
    const byte = byteOf(reason);
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
