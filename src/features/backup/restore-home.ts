// Restores a ledger from a backup into a new home (decision 0044).
//
//   X1. The home is marked before anything is written, and the mark is removed last. Until then nothing opens it. An
//       interrupted restore starts again.
//   X2. What was erased after the backup is erased again before the home can be opened.
//   X3. The outcome of every effect that the backup leaves open is unknown: it may have happened after the backup.
//   X4. The log records what was lost. From that entry on nothing is executed until an operator acknowledges it.

import { join } from 'node:path';
import { copyFileIfThere, copyFolder, removeAll } from '../../system/files/copy-folder.js';
import { folderNames } from '../../system/files/folder-names.js';
import { isFolderWithin } from '../../system/files/folder-within.js';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { CaseKeys } from '../../stores/keys/case-keys.js';
import {
  EMPTY_LIST,
  ERASURE_LIST,
  erasedKeys,
  extendsList,
  readErasureList,
  type ErasureList,
  type ListedErasure,
  resignErasures,
} from '../../stores/keys/erasure-list.js';
import { openSqliteStore } from '../../stores/sqlite/sqlite-ledger-store.js';
import { lockFolder } from '../../stores/sqlite/writer-lock.js';
import { LedgerError, usageError } from '../../core/errors.js';
import { openCheckpoint } from '../../core/ledger/proof/checkpoint.js';
import { NOTE_BYTES_MAX, type NoteVerifier } from '../../core/ledger/proof/signed-note.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import type { LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
import type { ErasureSeal, ExternalHead, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import { headFile } from '../../stores/ledger/head-file.js';
import type { Log } from '../../engine/ports/log.js';
import type { Registrations } from '../../core/contract/policy/catalogue.js';
import type { PolicySource } from '../../engine/ports/policy-sources.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { countReads } from '../../runtime/ledger/count-reads.js';
import { LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import { BACKUP_PREFIX, createCopyMarker, readCopyMarker, removeCopyMarker } from '../../home/copy-marker.js';
import { homePaths, keyFolder, type HomePaths } from '../../home/home-paths.js';
import { erasureSealOf, isVacant, makeFolder, openHead, sqliteFiles } from '../../home/home.js';
import { createErasureSeal, createHeadSeal, readLedgerSigner, readLedgerVerifier } from '../../home/ledger-key.js';
import { backupPaths, checkFiles, readManifest, type BackupManifest } from './backup-manifest.js';
import { recordRestore, type RecordedRestore } from './record-restore.js';

/** What to restore, and where. */
export interface RestoreOptions {
  readonly backup: string;
  /** A folder that is missing or empty, or an unfinished restore. */
  readonly home: string;
  /** The key folder of the lost ledger. Null: the keys of the backup. */
  readonly keys: string | null;
  /**
   * The newest list of erasures; `none` if nothing was erased since the backup. Null: the list of the key folder, which
   * must be named then.
   */
  readonly erasures: { readonly file: string } | 'none' | null;
  /** Files with heads of the lost ledger: its head file, or signed checkpoints. */
  readonly heads: readonly string[];
  /** @default true */
  readonly sandbox?: boolean;
  /** @default true */
  readonly replay?: boolean;
  /** The policy that the tree of the restore is opened under. */
  readonly policies: PolicySource;
  /** What services register. @default what the restored ledger has registered */
  readonly registrations?: Registrations;
  readonly actor: string;
  readonly log: Log;
  /** Receives how far the restore and its verification are. @default none */
  readonly progress?: ProgressReporter;
}

/** What was restored. */
export interface RestoreReport extends RecordedRestore {
  readonly home: string;
  /** The log of the backup. */
  readonly kept: Pick<LogHead, 'size' | 'root'>;
  /** The newest known head of the lost log; null if none is known. */
  readonly lost: Pick<LogHead, 'size' | 'root'> | null;
  /** The cases that were erased again. */
  readonly erased: readonly string[];
  readonly verdict: LedgerVerdict;
}

/**
 * Restores a backup.
 * @throws LedgerError LEDGER_UNAVAILABLE for an unfinished backup, LEDGER_TAMPERED for a changed one, another key, a
 * wrong list of erasures or a head of another ledger; UsageError if the home is not empty or something is not named
 */
export async function restoreHome(options: RestoreOptions): Promise<RestoreReport> {
  const { progress = NO_PROGRESS } = options;
  const from = backupPaths(options.backup);
  const copy = homePaths(from.data);
  const keys = options.keys === null ? keyFolder(copy.keys) : keyFolder(options.keys);
  const verifier = readLedgerVerifier(keys.ledgerKey) ?? readLedgerVerifier(copy.ledgerKey);
  if (verifier === null) throw usageError(`${keys.keys} has no ledger key: name the key folder with --keys`);
  const { manifest, sha256 } = readManifest(options.backup, verifier);
  await checkFiles(from, manifest, progress);
  const signer = readLedgerSigner(keys.ledgerKey);
  if (signer === null) {
    throw usageError('the backup has no keys: name the key folder of the ledger with --keys');
  }
  // A backup from before a rotation has notes of an older key.
  const seal = createErasureSeal(verifier, { acceptRetired: true });
  const keysIn = (caseKeys: string): CaseKeys => new CaseKeys(caseKeys, () => seal);
  const list = readLists(options, copy, seal);
  const lost = await newestHead(options.heads, verifier);
  const paths = homePaths(options.home);
  refuseWithin(paths.home, [options.backup, ...(options.keys === null ? [] : [options.keys])]);
  claimHome(paths.home, options.backup);
  const lock = lockFolder(paths.home);
  try {
    await removeAllBut(paths);
    const erased = pendingErasures(list, keysIn(keys.caseKeys), keysIn(copy.caseKeys));
    progress.begin({ label: 'copying files', unit: 'files', total: null });
    await copyBackup(options, { copy, keys: keys.keys, paths, erased });
    if (list.text !== null) replaceFile(join(paths.caseKeys, ERASURE_LIST), list.text, 0o600);
    // The named list may be of an older key, too.
    const resigned = createErasureSeal(signer, { acceptRetired: true });
    if (resigned !== null) resignErasures(paths.caseKeys, resigned);
    const recorded = await settleAndErase(options, paths, { manifest, sha256, lost, erased });
    const verdict = await verify(paths, options);
    const report = { home: paths.home, kept: keptOf(manifest), lost, erased: erased.map(({ case_id }) => case_id) };
    if (verdict.verdict !== 'refused') await removeCopyMarker(paths.home);
    return { ...report, ...recorded, verdict };
  } finally {
    lock.release();
    await removeAll(join(paths.home, 'state.lock'));
  }
}

const keptOf = ({ size, root }: BackupManifest): RestoreReport['kept'] => ({ size, root });

/** A home in a folder that it is copied from would change the only backup, and grow until the disk is full. */
function refuseWithin(home: string, folders: readonly string[]): void {
  const found = folders.find((folder) => isFolderWithin(home, folder));
  if (found !== undefined) throw usageError(`${home} lies in ${found}, which is restored: name a folder elsewhere`);
}

function claimHome(home: string, backup: string): void {
  const marker = readCopyMarker(home);
  const source = `${BACKUP_PREFIX}${backup}`;
  if (marker !== null) {
    if (marker.source === source) return;
    throw usageError(`${home} is an unfinished copy of ${marker.source}: finish that, or remove the folder`);
  }
  if (!isVacant(home)) throw usageError(`${home} is not empty: name a new folder`);
  makeFolder(home);
  createCopyMarker(home, source);
}

/** Removes what an interrupted restore has left. */
async function removeAllBut({ home, ...paths }: HomePaths): Promise<void> {
  const databases = ['', '-wal', '-shm', '.lock'].map((end) => `${paths.ledger}${end}`);
  const { artifacts, keys, sandbox, head, overlay, mcpRun, history, reserve } = paths;
  const files = [...databases, artifacts, keys, sandbox, head, overlay, mcpRun, history, reserve];
  for (const path of files) await removeAll(path);
  await fsyncDirectory(home);
}

type TextList = ErasureList & { readonly text: string | null };

/**
 * X2. The newest of the named list and that of the key folder.
 * @throws LedgerError LEDGER_TAMPERED unless it continues the others, and that of the backup; UsageError without a list
 */
function readLists({ erasures, keys }: RestoreOptions, copy: HomePaths, seal: ErasureSeal | null): TextList {
  if (seal === null) throw usageError('a ledger without a key has no list of erasures');
  const own = join(copy.caseKeys, ERASURE_LIST);
  const ofFolder = keys === null ? null : listIn(keys);
  const file = erasures === 'none' ? own : (erasures?.file ?? ofFolder);
  if (file === null) {
    throw usageError(
      'name the newest list of erasures with --erasures, which is kept outside of backups (keys/cases/erasures.list); ' +
        'if nothing was erased since the backup was made, say so with --no-erasures',
    );
  }
  const named = readTextList(file, seal);
  if (!extendsList(named, readErasureList(own, seal)))
    throw notContinuedError(file, 'the list of erasures in the backup');
  // An erasure that the key folder shows was made, whatever was named.
  const known = ofFolder === null ? named : readTextList(ofFolder, seal);
  if (extendsList(named, known)) return named;
  if (extendsList(known, named)) return known;
  throw notContinuedError(file, `the list of erasures in ${keys ?? ''}`);
}

function readTextList(file: string, seal: ErasureSeal): TextList {
  const list = readErasureList(file, seal);
  if (list.hashes.length === 0) return { ...EMPTY_LIST, text: null };
  return { ...list, text: Buffer.from(readSmallFile(file, { bytesMax: 2 ** 26 }) ?? []).toString() };
}

const notContinuedError = (file: string, what: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `${file} does not continue ${what}: use the newest copy of the list`,
  });

const listIn = (keys: string): string => join(keyFolder(keys).caseKeys, ERASURE_LIST);

/** The erasures that the backup does not contain: those of the list, and the notes of the key folder. */
function pendingErasures(list: ErasureList, folder: CaseKeys, backup: CaseKeys): readonly ListedErasure[] {
  const noted = folder.erasedCases().map(({ case_id, key_no }) => folder.erasureOf(case_id, key_no));
  const all = erasedKeys({ ...list, erasures: [...list.erasures, ...noted.filter((note) => note !== null)] });
  return [...all.values()].filter(({ case_id, key_no }) => backup.lastErased(case_id) < key_no);
}

/** The name of the ledger is written anew: a backup of an empty ledger continues with another first entry. */
const NOT_RESTORED = /\.lock$|\.new-[0-9a-f]+$|^ledger\.origin$|^heads$/;

interface CopyParts {
  readonly copy: HomePaths;
  readonly keys: string;
  readonly paths: HomePaths;
  readonly erased: readonly ListedErasure[];
}

async function copyBackup({ sandbox = true }: RestoreOptions, { copy, keys, paths, erased }: CopyParts): Promise<void> {
  for (const file of ['ledger', 'head', 'overlay', 'mcpRun'] as const) await copyFileIfThere(copy[file], paths[file]);
  await copyFolder(copy.artifacts, paths.artifacts);
  await copyFolder(keys, paths.keys, { skip: NOT_RESTORED });
  for (const folder of [paths.artifacts, paths.caseKeys, paths.sandbox]) makeFolder(folder);
  // X2: the sandbox has content of the case too.
  const isErased = new Set(erased.map(({ case_id }) => case_id));
  const cases = sandbox ? folderNames(copy.sandbox) : [];
  for (const name of cases.filter((one) => !isErased.has(one))) {
    await copyFolder(join(copy.sandbox, name), join(paths.sandbox, name));
  }
  await fsyncDirectory(paths.sandbox);
  await fsyncDirectory(paths.home);
}

interface SettleParts {
  readonly manifest: BackupManifest;
  readonly sha256: string;
  readonly lost: RestoreReport['lost'];
  readonly erased: readonly ListedErasure[];
}

async function settleAndErase(
  { policies, registrations, actor, log }: RestoreOptions,
  paths: HomePaths,
  { manifest, sha256, lost, erased }: SettleParts,
): Promise<RecordedRestore> {
  const erasureSeal = erasureSealOf(paths, { readOnly: false });
  const store = openSqliteStore({ ...sqliteFiles(paths), erasureSeal });
  const { externalHeadStore } = openHead(paths, { readOnly: false });
  try {
    await checkExternalHead(store, externalHeadStore);
    if (lost !== null && lost.size <= manifest.size)
      await checkExternalHead(store, { read: () => Promise.resolve(lost) });
    const recorded = await recordRestore(
      { store, externalHeadStore, policies, registrations, log, keys: paths },
      { kept: keptOf(manifest), lost, backup_sha256: sha256, actor, erased: erased.map(({ case_id }) => case_id) },
    );
    const keys = new CaseKeys(paths.caseKeys, erasureSeal);
    for (const { case_id, key_no, at, by } of erased) {
      const tree_ids = (await store.treesOf(case_id)).map(({ tree_id }) => tree_id);
      if (keys.lastErased(case_id) < key_no) await store.erase({ case_id, tree_ids, at, by });
      // Numbers that were made and erased after the backup, e.g. by a rotation, are not used again.
      while (keys.lastErased(case_id) < key_no) keys.destroy(case_id, 0, { at, by });
    }
    return recorded;
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

/** @throws LedgerError LEDGER_TAMPERED for a file without a head that the key has signed */
async function newestHead(files: readonly string[], key: NoteVerifier): Promise<RestoreReport['lost']> {
  let newest: ExternalHead | null = null;
  for (const file of files) {
    const note = readSmallFile(file, { bytesMax: NOTE_BYTES_MAX });
    if (note === null) throw usageError(`${file} does not exist`);
    const head = openCheckpoint(note, key) ?? (await headFile(file, createHeadSeal(key)).read());
    if (head !== null && head.size > (newest?.size ?? -1)) newest = head;
  }
  return newest === null ? null : { size: newest.size, root: newest.root };
}

async function verify(
  paths: HomePaths,
  { replay = true, progress = NO_PROGRESS }: RestoreOptions,
): Promise<LedgerVerdict> {
  const erasureSeal = erasureSealOf(paths, { readOnly: true });
  const store = openSqliteStore({ ...sqliteFiles(paths), readOnly: true, erasureSeal });
  const { externalHeadStore } = openHead(paths, { readOnly: true });
  try {
    const counted = countReads(store, progress, { label: 'verifying the restored ledger' });
    return await new LedgerReader(counted, externalHeadStore).verify({ replay });
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}
