// Where an installation stores its files: four parts, which may lie in different places. A home is all four in one
// folder. Every function takes the part that it needs.

import { join } from 'node:path';
import type { LedgerKeyPaths } from './ledger-key.js';

/** The ledger store of a home: an SQLite database, and the contents that are too large for it. It has one writer. */
export interface LedgerFiles {
  readonly ledger: string;
  readonly artifacts: string;
  /**
   * Takes space until the disk is full. Then it is given up, so that work in flight can be recorded. It may be deleted
   * at any time.
   */
  readonly reserve: string;
}

/**
 * The key folder: all secrets, for the owner alone. It belongs to one ledger, wherever that is stored, and is backed up
 * apart from it: a copy of `caseKeys` undoes erasures.
 */
export interface KeyFolder {
  /** The folder. The key of the emergency overlay, and the highest epoch that was seen, lie in it too. */
  readonly keys: string;
  /** Signs the checkpoints of the ledger, and erasures. */
  readonly ledgerKey: LedgerKeyPaths;
  /** Makes step proofs and gate checksums. */
  readonly sessionKey: string;
  /** The folder of the keys that encrypt the content of cases. */
  readonly caseKeys: string;
  /** Who may do what over HTTP: the hash of each token. */
  readonly tokens: string;
  /** The newest head of each worker of a shared ledger (stores/ledger/kept-heads.ts). */
  readonly heads: string;
}

/** The sandbox volume: the files that agents work on, `<sandbox>/<case>/`. */
export interface SandboxVolume {
  readonly sandbox: string;
}

/** The local state of one process on one machine. It needs a local file system, and no other process may use it. */
export interface LocalState {
  /** The folder. */
  readonly state: string;
  /** The newest head of the ledger that this machine knows: a store that is behind it is rejected (D15). */
  readonly head: string;
  /** The control socket, while the ledger is open (D13). */
  readonly control: string;
  /** A folder for each command of a spec while it runs. Each opening empties it. */
  readonly scratch: string;
  /** A cache of replay points: it may be deleted at any time. */
  readonly history: string;
  /** The emergency overlay (D1); missing until the first `turnpike policy deny`. Its key is in the key folder. */
  readonly overlay: string;
  /** The run of the agent that `turnpike mcp` serves over stdio. */
  readonly mcpRun: string;
  /** The bearer token of `turnpike mcp --http`, while it serves. */
  readonly mcpToken: string;
}

/** A home: the four parts in one folder. */
export interface HomePaths extends LedgerFiles, KeyFolder, SandboxVolume, LocalState {
  readonly home: string;
}

export const ledgerFiles = (folder: string): LedgerFiles => ({
  ledger: join(folder, 'ledger.db'),
  artifacts: join(folder, 'artifacts'),
  reserve: join(folder, 'ledger.reserve'),
});

export const keyFolder = (folder: string): KeyFolder => ({
  keys: folder,
  ledgerKey: { privateKey: join(folder, 'ledger.key'), publicKey: join(folder, 'ledger.vkey') },
  sessionKey: join(folder, 'session.key'),
  caseKeys: join(folder, 'cases'),
  tokens: join(folder, 'tokens.json'),
  heads: join(folder, 'heads'),
});

export const sandboxVolume = (folder: string): SandboxVolume => ({ sandbox: folder });

export const localState = (folder: string): LocalState => ({
  state: folder,
  head: join(folder, 'ledger.head'),
  control: join(folder, 'control.sock'),
  scratch: join(folder, 'scratch'),
  history: join(folder, 'history.cache'),
  overlay: join(folder, 'overlay.json'),
  mcpRun: join(folder, 'mcp-run'),
  mcpToken: join(folder, 'mcp-token'),
});

export const homePaths = (home: string): HomePaths => ({
  home,
  ...ledgerFiles(home),
  ...keyFolder(join(home, 'keys')),
  ...sandboxVolume(join(home, 'sandbox')),
  ...localState(home),
});
