import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { headFile, type HeadFile } from '../adapters/head-file.js';
import { createSqliteStore, openSqliteStore } from '../adapters/sqlite-ledger-store.js';
import { UsageError } from '../errors.js';
import {
  drawLedgerKey,
  draftLedgerKey,
  installLedgerKey,
  readDraftedSigner,
  readLedgerSigner,
  readLedgerVerifier,
  refuseLostKey,
  sealBy,
  vouchingBy,
  type LedgerKeyPaths,
} from './ledger-key.js';
import { EMPTY_HEAD } from '../ledger/merkle.js';
import type { HeadAnchor, LedgerStore } from '../ports/ledger-store.js';

/** Where everything of one installation lies. */
export interface HomePaths {
  readonly home: string;
  readonly ledger: string;
  readonly head: string;
  readonly artifacts: string;
  readonly sandbox: string;
  /** Where commands of specs have their own folders while they run: what is there at an opening is left over. */
  readonly scratch: string;
  readonly control: string;
  /** What signs and verifies: for nobody but the owner. */
  readonly keys: string;
  /** What signs the checkpoints of the ledger. */
  readonly ledgerKey: LedgerKeyPaths;
  /** Who may do what over HTTP: of each token its hash. */
  readonly tokens: string;
  /** What readers remember of the ledger: may be lost at any time. */
  readonly history: string;
  /** The emergency overlay (D1); not there until the first `turnpike policy deny`. */
  readonly overlay: string;
}

export const homePaths = (home: string): HomePaths => ({
  home,
  ledger: join(home, 'ledger.db'),
  head: join(home, 'ledger.head'),
  artifacts: join(home, 'artifacts'),
  sandbox: join(home, 'sandbox'),
  scratch: join(home, 'scratch'),
  control: join(home, 'control.sock'),
  keys: join(home, 'keys'),
  ledgerKey: { privateKey: join(home, 'keys/ledger.key'), publicKey: join(home, 'keys/ledger.vkey') },
  tokens: join(home, 'keys/tokens.json'),
  history: join(home, 'history.cache'),
  overlay: join(home, 'overlay.json'),
});

export interface HomeStores {
  readonly store: LedgerStore;
  readonly anchor: HeadAnchor;
  /** Of a home whose heads are not signed yet: from the next one on they are. Its ledger must have been checked. */
  readonly signHeads?: () => Promise<void>;
}

/**
 * Whether nothing is there yet: a home is made only in a folder that is missing, or empty but for what a making that
 * was cut short has left.
 */
export const isVacant = (home: string): boolean =>
  !existsSync(home) || readdirSync(home).every((name) => isLeftOver(join(home, name), name));

const isLeftOver = (path: string, name: string): boolean =>
  name === 'keys'
    ? readdirSync(path).every((key) => /^ledger\.v?key(?:\.new-[0-9a-f]+)?$/.test(key))
    : name === 'artifacts' || name === 'sandbox'
      ? readdirSync(path).length === 0
      : /^ledger\.db\.new-\d+(?:-journal|-wal|-shm)?$/.test(name);

/** A folder for nobody but the owner, if there is none yet. */
export const makeFolder = (folder: string): void => void mkdirSync(folder, { recursive: true, mode: 0o700 });

/**
 * Makes a home with an empty ledger, whose checkpoints are signed with `ledgerKey`, with one that lies there already,
 * or with one that is drawn. @throws UsageError when something else is there already
 */
export async function createHome(home: string, ledgerKey?: string): Promise<HomePaths> {
  if (!isVacant(home)) {
    throw new UsageError({
      code: 'USAGE',
      message: `${home} is not empty: name a new folder, or open the home as it is`,
    });
  }
  const paths = homePaths(home);
  for (const folder of [paths.home, paths.artifacts, paths.sandbox, paths.keys]) makeFolder(folder);
  const signer =
    (ledgerKey === undefined ? readLedgerSigner(paths.ledgerKey) : null) ??
    installLedgerKey(paths.ledgerKey, ledgerKey ?? drawLedgerKey());
  const store = createSqliteStore({ file: paths.ledger, artifactsDir: paths.artifacts });
  await store.close();
  const head = headFile(paths.head, sealBy(signer));
  await head.write({ size: EMPTY_HEAD.size, root: EMPTY_HEAD.root });
  await head.close();
  return paths;
}

/** Opens the stores of a home that exists. A reader may look while another process writes. */
export function openHome(paths: HomePaths, { readOnly }: { readonly readOnly: boolean }): HomeStores {
  if (!existsSync(paths.ledger) && !existsSync(paths.head)) {
    throw new UsageError({ code: 'USAGE', message: `${paths.home} is no home: make one with \`turnpike init\`` });
  }
  const erasureSeal = () =>
    vouchingBy(readOnly ? readLedgerVerifier(paths.ledgerKey) : readLedgerSigner(paths.ledgerKey));
  const store = openSqliteStore({ file: paths.ledger, artifactsDir: paths.artifacts, readOnly, erasureSeal });
  const { anchor, signed } = openHead(paths, { readOnly });
  return readOnly || signed ? { store, anchor } : { store, anchor, signHeads: () => signHeads(paths, store, anchor) };
}

/** The key counts when the first head that it has signed is durable: what is cut short before can be done again. */
async function signHeads(paths: HomePaths, store: LedgerStore, anchor: HeadFile): Promise<void> {
  const { signer, settle } = draftLedgerKey(paths.ledgerKey);
  anchor.sealWith(sealBy(signer));
  const head = await store.head();
  // Twice, so that neither slot of the file holds one without a signature.
  await anchor.write(head);
  await anchor.write(head);
  settle();
}

/** The head file of a home, as whoever writes, or reads, may believe it. `signed` says that all its heads must be. */
export function openHead(
  paths: HomePaths,
  { readOnly }: { readonly readOnly: boolean },
): { readonly anchor: HeadFile; readonly signed: boolean } {
  const key = readOnly ? readLedgerVerifier(paths.ledgerKey) : readLedgerSigner(paths.ledgerKey);
  const anchor = headFile(paths.head, key === null ? null : sealBy(key));
  const drafted = key === null ? readDraftedSigner(paths.ledgerKey) : null;
  if (key === null && drafted === null) refuseLostKey(paths.ledgerKey);
  if (drafted !== null) anchor.sealWith(sealBy(drafted));
  return { anchor, signed: key !== null };
}
