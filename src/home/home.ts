import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { headFile, type HeadFile } from '../stores/ledger/head-file.js';
import { folderHeads, headNameOf, keptHeads } from '../stores/ledger/kept-heads.js';
import { openSqliteRecords } from '../stores/records/sqlite-ledger-records.js';
import { openCaseKeyTable } from '../stores/sqlite/content/sqlite-case-key-table.js';
import { createSqliteStore, openSqliteStore } from '../stores/sqlite/sqlite-ledger-store.js';
import { openUntouchedDatabase } from '../stores/sqlite/untouched-file.js';
import { usageError, type UsageError } from '../core/errors.js';
import {
  generateLedgerKey,
  draftLedgerKey,
  installLedgerKey,
  readDraftedSigner,
  readLedgerSigner,
  readLedgerVerifier,
  refuseLostKey,
  createHeadSeal,
  createErasureSeal,
  isRotating,
} from './ledger-key.js';
import { EMPTY_HEAD } from '../core/ledger/proof/merkle.js';
import type { ErasureSeal, ExternalHeadStore, HeadSeal, LedgerStore } from '../engine/ports/ledger/ledger-store.js';
import { isShared, type HeadTable } from '../engine/ports/ledger/shared-store.js';
import { keysOf } from '../core/ledger/proof/key-history.js';
import { refuseCopied, refuseUnfinishedCopy } from './copy-marker.js';
import { homePaths, type HomePaths, type KeyFolder, type LedgerFiles, type LocalState } from './home-paths.js';
import { ignoreInGit, isIgnoringAll } from './tracked-keys.js';

export { homePaths, type HomePaths, type KeyFolder, type LocalState } from './home-paths.js';

export interface HomeStores {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  /** Signs the heads of a home whose heads are not signed yet. Its ledger must have been checked. */
  readonly signHeads?: () => Promise<void>;
}

/**
 * Whether a home can be created here: the folder is missing, empty, or contains only the remains of an interrupted
 * creation.
 */
export const isVacant = (home: string): boolean =>
  !existsSync(home) || readdirSync(home).every((name) => isLeftOver(join(home, name), name));

const isLeftOver = (path: string, name: string): boolean =>
  name === 'keys'
    ? readdirSync(path).every((key) => /^ledger\.v?key(?:\.new-[0-9a-f]+)?$|^\.gitignore$/.test(key))
    : name === 'artifacts' || name === 'sandbox'
      ? readdirSync(path).length === 0
      : name === '.gitignore'
        ? isIgnoringAll(path)
        : /^ledger\.db\.new-\d+(?:-journal|-wal|-shm)?$|^(?:unfinished-copy\.json|\.gitignore)\.new-[0-9a-f]+$/.test(
            name,
          );

/** Creates a folder that only its owner can read, if it is missing. */
export const makeFolder = (folder: string): void => void mkdirSync(folder, { recursive: true, mode: 0o700 });

/**
 * Creates a home with an empty ledger. Its checkpoints are signed with `ledgerKey`, an existing key, or a new one.
 * @throws UsageError if the folder contains anything else
 */
export async function createHome(home: string, ledgerKey?: string): Promise<HomePaths> {
  if (!isVacant(home)) {
    throw usageError(`${home} is not empty: name a new folder, or open the home as it is`);
  }
  const paths = homePaths(home);
  for (const folder of [paths.home, paths.artifacts, paths.sandbox, paths.keys]) makeFolder(folder);
  ignoreInGit(home);
  const signer =
    (ledgerKey === undefined ? readLedgerSigner(paths.ledgerKey) : null) ??
    installLedgerKey(paths.ledgerKey, ledgerKey ?? generateLedgerKey());
  const store = createSqliteStore(sqliteFiles(paths));
  await store.close();
  const head = headFile(paths.head, createHeadSeal(signer));
  await head.write({ size: EMPTY_HEAD.size, root: EMPTY_HEAD.root });
  await head.close();
  return paths;
}

/** @throws UsageError if there is no home here */
export function requireHome(home: string): void {
  if (isVacant(home)) throw noHomeError(home);
}

const noHomeError = (home: string): UsageError =>
  usageError(`${home} is not a home directory: create one with \`turnpike init\``);

/** Opens the stores of an existing home. A reader changes no file of it, and may read while another process writes. */
export function openHome(
  paths: HomePaths,
  { readOnly, isCopySource = false }: { readonly readOnly: boolean; readonly isCopySource?: boolean },
): HomeStores {
  refuseUnfinishedCopy(paths.home);
  if (!readOnly && !isCopySource) refuseCopied(paths.home);
  if (!existsSync(paths.ledger) && !existsSync(paths.head)) {
    throw noHomeError(paths.home);
  }
  const erasureSeal = erasureSealOf(paths, { readOnly });
  const store = openSqliteStore({
    ...sqliteFiles(paths),
    ...(readOnly && { untouched: openUntouchedDatabase }),
    erasureSeal,
    records: openSqliteRecords,
    caseKeyTable: openCaseKeyTable,
  });
  const { externalHeadStore, signed } = openHead(paths, { readOnly });
  return readOnly || signed
    ? { store, externalHeadStore }
    : { store, externalHeadStore, signHeads: () => signHeads(paths, store, externalHeadStore) };
}

/** The files of the SQLite store of a home. */
export const sqliteFiles = ({ ledger, artifacts, caseKeys }: LedgerFiles & KeyFolder) => ({
  file: ledger,
  artifactsDir: artifacts,
  caseKeysDir: caseKeys,
});

/** Signs and verifies erasures with the ledger key, which is read at each use; null without a key. */
export const erasureSealOf =
  ({ ledgerKey }: Pick<KeyFolder, 'ledgerKey'>, { readOnly }: { readonly readOnly: boolean }) =>
  (): ErasureSeal | null =>
    createErasureSeal(readOnly ? readLedgerVerifier(ledgerKey) : readLedgerSigner(ledgerKey), {
      acceptRetired: isRotating(ledgerKey),
    });

/** Starts to sign heads. The key takes effect when the first signed head is durable; until then it can be repeated. */
export async function signHeads(
  { ledgerKey }: Pick<KeyFolder, 'ledgerKey'>,
  store: LedgerStore,
  externalHeadStore: HeadFile,
): Promise<void> {
  // The key folder of a home whose heads are not signed is empty, and a copy may have left it out.
  makeFolder(dirname(ledgerKey.privateKey));
  const { signer, settle } = draftLedgerKey(ledgerKey);
  externalHeadStore.sealWith(createHeadSeal(signer));
  const head = await store.head();
  // Twice, so that neither slot of the file contains an unsigned head.
  await externalHeadStore.write(head);
  await externalHeadStore.write(head);
  settle();
}

/** Opens the head file for a writer or a reader. `signed` requires signatures of all its heads. */
export const openHead = (
  { head, ...keys }: Pick<LocalState, 'head'> & Pick<KeyFolder, 'ledgerKey'>,
  { readOnly }: { readonly readOnly: boolean },
): SignableHead => openSignable((seal) => headFile(head, seal), keys, { readOnly });

/** Opens the head of a shared ledger: that of the local state, and those of the other workers. */
export function openSharedHead(
  store: LedgerStore,
  { head, state }: Pick<LocalState, 'head' | 'state'>,
  keys: Pick<KeyFolder, 'ledgerKey' | 'heads'>,
  { readOnly }: { readonly readOnly: boolean },
): SignableHead {
  const worker = headNameOf(state);
  return openSignable(
    (seal) =>
      keptHeads(headFile(head, seal), [
        folderHeads(keys.heads, worker, seal),
        ...tableHeads(store, keys, worker, seal),
      ]),
    keys,
    { readOnly },
  );
}

/** Without a local state, only the other database knows more than the ledger. */
export const addTableHeads = (
  store: LedgerStore,
  keys: Pick<KeyFolder, 'keys' | 'ledgerKey'>,
  memory: HeadFile,
  seal: HeadSeal | null,
): HeadFile => keptHeads(memory, tableHeads(store, keys, headNameOf(keys.keys), seal));

/** The heads in the other database that the store was opened with. */
function tableHeads(
  store: LedgerStore,
  keys: Pick<KeyFolder, 'ledgerKey'>,
  worker: string,
  seal: HeadSeal | null,
): readonly HeadFile[] {
  const table = headTableOf(store);
  if (table === null) return [];
  let ledger: string | null = null;
  return [table.open({ ledger: () => (ledger ??= firstKeyOf(keys)), worker }, seal)];
}

/** Null for a store without one. */
export const headTableOf = (store: LedgerStore): HeadTable | null =>
  isShared(store) ? (store.headTable ?? null) : null;

/** The first key of a ledger, which names it in every rotation; null without a key. */
export function firstKeyOf({ ledgerKey }: Pick<KeyFolder, 'ledgerKey'>): string | null {
  const verifier = readLedgerVerifier(ledgerKey);
  return verifier === null ? null : (keysOf(verifier).at(-1)?.vkey ?? null);
}

export interface SignableHead {
  readonly externalHeadStore: HeadFile;
  readonly signed: boolean;
}

/** Opens the head file with the ledger key. With a drafted key, heads may still be unsigned. */
export function openSignable(
  open: (seal: HeadSeal | null) => HeadFile,
  { ledgerKey }: Pick<KeyFolder, 'ledgerKey'>,
  { readOnly }: { readonly readOnly: boolean },
): SignableHead {
  const key = readOnly ? readLedgerVerifier(ledgerKey) : readLedgerSigner(ledgerKey);
  const externalHeadStore = open(key === null ? null : createHeadSeal(key, ledgerKey));
  const drafted = key === null ? readDraftedSigner(ledgerKey) : null;
  if (key === null && drafted === null) refuseLostKey(ledgerKey);
  if (drafted !== null) externalHeadStore.sealWith(createHeadSeal(drafted));
  return { externalHeadStore, signed: key !== null };
}
