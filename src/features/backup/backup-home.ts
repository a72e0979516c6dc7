// Makes a backup of a ledger with its local state, sandbox and, if asked for, keys. Another process may be writing.
//
//   B1. The folder is marked before anything is written. The manifest is written last, when everything it names is
//       durable and the copy of the ledger was verified. A folder without a manifest is not a backup.
//   B2. The head file is read before the ledger is copied, and keys after it. So the head never covers more than the
//       copy contains, and every key that the copy needs is there.
//   B3. An interrupted backup starts again.

import { join } from 'node:path';
import { copyFileIfThere, copyFolder, removeAll } from '../../system/files/copy-folder.js';
import { folderNames } from '../../system/files/folder-names.js';
import { isFolderWithin } from '../../system/files/folder-within.js';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';
import { createFile } from '../../system/files/small-file.js';
import { headFile } from '../../stores/ledger/head-file.js';
import { ERASURE_LIST } from '../../stores/keys/erasure-list.js';
import { CaseKeys } from '../../stores/keys/case-keys.js';
import { backupSqliteFile, withoutWal } from '../../stores/sqlite/copy/sqlite-backup.js';
import { createSqliteCopyTarget } from '../../stores/sqlite/copy/sqlite-copy-target.js';
import { openSqliteStore } from '../../stores/sqlite/sqlite-ledger-store.js';
import { lockFolder } from '../../stores/sqlite/writer-lock.js';
import { LedgerError, usageError } from '../../core/errors.js';
import { checkExternalHead } from '../../core/ledger/verification/check-external-head.js';
import type { LedgerVerdict } from '../../core/ledger/verification/ledger-verdict.js';
import type { NoteSigner } from '../../core/ledger/proof/signed-note.js';
import type { ExternalHead, LedgerStore } from '../../engine/ports/ledger/ledger-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { Sequencer } from '../../engine/sequencer.js';
import { countReads } from '../../runtime/ledger/count-reads.js';
import { LedgerReader } from '../../runtime/ledger/ledger-reader.js';
import type { LedgerLocation, PostgresLocation } from '../../home/ledger-location.js';
import { refuseUnfinishedCopy } from '../../home/copy-marker.js';
import { homePaths, type HomePaths } from '../../home/home-paths.js';
import { erasureSealOf, makeFolder, openHead, sqliteFiles } from '../../home/home.js';
import { createHeadSeal, readLedgerSigner } from '../../home/ledger-key.js';
import { volumeFiles } from '../../home/store-home.js';
import {
  backupPaths,
  writeFileList,
  type BackupPaths,
  isFinishedBackup,
  writeManifest,
  type BackupManifest,
} from './backup-manifest.js';
import { copyLedger } from './copy/copy-ledger.js';

/** What to back up, and where. */
export interface BackupOptions {
  readonly from: LedgerLocation;
  /** A folder that is missing or empty, or has an unfinished backup. */
  readonly to: string;
  /** The contract folder; null for none. */
  readonly contract: string | null;
  /** Whether the backup contains the keys, which decrypt its content. @default false */
  readonly keys?: boolean;
  /** Whether it contains the files of the sandbox. @default true */
  readonly sandbox?: boolean;
  /** Whether the verification replays the state machines. @default true */
  readonly replay?: boolean;
  /** The version of this package, and the time. */
  readonly madeBy: string;
  readonly madeAt: string;
  /** Receives how far the backup and its verification are. @default none */
  readonly progress?: ProgressReporter;
}

/** A finished backup; null instead of its manifest if the copy did not verify. */
export interface BackupReport {
  readonly to: string;
  readonly manifest: BackupManifest | null;
  readonly manifest_sha256: string | null;
  readonly verdict: LedgerVerdict;
}

/** Locks of running processes, and drafts of files that are being written. */
const NOT_COPIED = /\.lock$|\.new-[0-9a-f]+$|\.new$|^control\.sock$|^ledger\.retired\.key$/;
/** What a key folder contains that is no secret. A replaced key in its note is encrypted with the next one. */
const PUBLIC_KEY_FILES = /^(?:ledger\.vkey|key-history\.list|overlay\.pub|overlay\.seen)$/;
const PUBLIC_CASE_FILES = /\.(?:erased|replaced)$/;

/**
 * Backs up a ledger that may be in use.
 * @throws UsageError if the folder is not empty or the ledger has no key; LedgerError
 */
export async function backupHome(options: BackupOptions): Promise<BackupReport> {
  const { from, to } = options;
  refuseUnfinishedCopy(from.paths.home);
  const signer = readLedgerSigner(from.paths.ledgerKey);
  if (signer === null) {
    throw usageError(
      `${from.paths.keys} has no ledger key: open the ledger once for writing, so that its heads are signed`,
    );
  }
  refuseCopied(options);
  const paths = claimFolder(to);
  const lock = lockFolder(to);
  try {
    for (const part of [paths.data, paths.contract, paths.list]) await removeAll(part);
    const copy = homePaths(paths.data);
    await copyParts(options, paths, copy);
    if (readLedgerSigner(from.paths.ledgerKey)?.vkey !== signer.vkey) throw rotatedError(from.paths.keys);
    const { verdict, head } = await verify(options, copy, signer);
    if (verdict.verdict === 'refused' || head === null) return { to, manifest: null, manifest_sha256: null, verdict };
    const manifest = await finish(options, paths, head, signer);
    return { to, ...manifest, verdict };
  } finally {
    lock.release();
  }
}

/** A folder that is copied into itself grows until the disk is full. */
function refuseCopied({ from, to, contract }: BackupOptions): void {
  const { keys, artifacts, sandbox } = from.paths;
  const copied = [keys, artifacts, sandbox, ...(contract === null ? [] : [contract])];
  const found = copied.find((folder) => isFolderWithin(to, folder));
  if (found !== undefined) throw usageError(`${to} lies in ${found}, which is backed up: name a folder elsewhere`);
}

/** The copy may have parts of both keys. The folder is unfinished, so the next backup starts again. */
const rotatedError = (keys: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNAVAILABLE',
    message: `the key in ${keys} was rotated meanwhile: run the backup again`,
  });

/** B1. */
function claimFolder(to: string): BackupPaths {
  const paths = backupPaths(to);
  if (isFinishedBackup(to)) throw usageError(`${to} is a finished backup: name a new folder`);
  makeFolder(to);
  const names = folderNames(to).filter((name) => !/^unfinished-backup\.new-[0-9a-f]+$/.test(name));
  if (!names.includes('unfinished-backup')) {
    if (names.length > 0) throw usageError(`${to} is not empty: name a new folder for the backup`);
    createFile(paths.mark, 'This backup is not finished. Run `turnpike backup` with this folder again.\n', 0o600);
  }
  return paths;
}

async function copyParts(options: BackupOptions, { contract, data }: BackupPaths, copy: HomePaths): Promise<void> {
  const { from, keys = false, sandbox = true, progress = NO_PROGRESS } = options;
  const { paths } = from;
  for (const folder of [data, copy.artifacts, copy.keys, copy.caseKeys]) makeFolder(folder);
  const { externalHeadStore } = openHead(paths, { readOnly: true });
  const before = await externalHeadStore.read();
  await externalHeadStore.close();
  await backUpLedger(from, copy, before, progress);
  progress.begin({ label: 'copying files', unit: 'files', total: null });
  // B2: an erasure meanwhile has left its note, which this copies too.
  if (keys) await copyFolder(paths.keys, copy.keys, { skip: NOT_COPIED, acceptMissing: true });
  else await copyPublicKeys(paths, copy);
  for (const file of ['overlay', 'mcpRun'] as const) await copyFileIfThere(paths[file], copy[file]);
  if (sandbox) {
    await copyFolder(paths.sandbox, copy.sandbox, { acceptMissing: true });
    for (const file of volumeFiles(copy.sandbox)) await removeAll(file);
  }
  if (options.contract !== null) await copyFolder(options.contract, contract, { skip: /^\.git$/, acceptMissing: true });
  for (const folder of [copy.caseKeys, copy.keys, copy.artifacts, data]) await fsyncDirectory(folder);
}

async function backUpLedger(
  from: LedgerLocation,
  copy: HomePaths,
  head: ExternalHead | null,
  progress: ProgressReporter,
): Promise<void> {
  const { paths, postgres } = from;
  if (postgres === null) {
    await backupSqliteFile(paths.ledger, copy.ledger, progress);
    await copyFolder(paths.artifacts, copy.artifacts, { skip: /\.part$/, acceptMissing: true });
  } else await backupPostgres({ ...from, postgres }, copy, progress);
  if (head === null) return;
  const store = openSqliteStore({ ...sqliteFiles(copy), caseKeysDir: paths.caseKeys, readOnly: true });
  try {
    await checkExternalHead(store, { read: () => Promise.resolve(head) });
  } finally {
    await store.close();
  }
}

/** Copies a ledger in PostgreSQL to an SQLite ledger, as of one moment. Workers may be writing. @throws LedgerError */
async function backupPostgres(
  { paths, postgres }: LedgerLocation & { readonly postgres: PostgresLocation },
  copy: HomePaths,
  progress: ProgressReporter,
): Promise<void> {
  const { openPostgresBackupSource } = await import('../../stores/postgres/copy/postgres-copy-source.js');
  const keys = new CaseKeys(paths.caseKeys, erasureSealOf(paths, { readOnly: true }));
  const ledger = openPostgresBackupSource({ url: postgres.url, schema: postgres.schema, keys });
  try {
    const sequencer = new Sequencer(ledger.log, () => undefined);
    // Once before, so that little is pending while commits wait.
    await sequencer.run();
    const source = await ledger.snapshot(() => sequencer.run());
    const { file, artifactsDir } = sqliteFiles(copy);
    const target = createSqliteCopyTarget({ file, artifactsDir });
    try {
      await copyLedger(source, null, target, { progress });
    } finally {
      await target.close();
      await source.close();
    }
    withoutWal(file);
  } finally {
    await ledger.close();
  }
}

async function copyPublicKeys({ keys, caseKeys }: HomePaths, copy: HomePaths): Promise<void> {
  for (const name of folderNames(keys)) {
    if (PUBLIC_KEY_FILES.test(name)) await copyFileIfThere(join(keys, name), join(copy.keys, name));
  }
  for (const name of folderNames(caseKeys)) {
    const isPublic = PUBLIC_CASE_FILES.test(name) || name === ERASURE_LIST;
    if (isPublic) await copyFileIfThere(join(caseKeys, name), join(copy.caseKeys, name));
  }
}

/** Verifies the copy against a head of exactly its size, with the keys of the ledger. */
async function verify(
  { from, replay = true, progress = NO_PROGRESS }: BackupOptions,
  copy: HomePaths,
  signer: NoteSigner,
): Promise<{ readonly verdict: LedgerVerdict; readonly head: ExternalHead | null }> {
  const erasureSeal = erasureSealOf(from.paths, { readOnly: true });
  const store: LedgerStore = openSqliteStore({
    ...sqliteFiles(copy),
    caseKeysDir: from.paths.caseKeys,
    readOnly: true,
    erasureSeal,
  });
  const externalHeadStore = headFile(copy.head, createHeadSeal(signer));
  try {
    const { size, root } = await store.head();
    await externalHeadStore.write({ size, root });
    const counted = countReads(store, progress, { label: 'verifying the backup' });
    const verdict = await new LedgerReader(counted, externalHeadStore).verify({ replay });
    return { verdict, head: verdict.verdict === 'refused' ? null : { size, root } };
  } finally {
    await externalHeadStore.close();
    await store.close();
  }
}

async function finish(
  options: BackupOptions,
  paths: BackupPaths,
  { size, root }: ExternalHead,
  signer: NoteSigner,
): Promise<Required<Pick<BackupReport, 'manifest' | 'manifest_sha256'>>> {
  const { from, keys = false, sandbox = true, contract, madeAt, madeBy, progress = NO_PROGRESS } = options;
  await fsyncDirectory(paths.data);
  const list = await writeFileList(paths, progress);
  const manifest: BackupManifest = {
    version: 1,
    made_at: madeAt,
    made_by: madeBy,
    source: from.postgres === null ? 'sqlite' : 'postgresql',
    size,
    root,
    has_keys: keys,
    has_sandbox: sandbox,
    has_contract: contract !== null,
    ...list,
  };
  const manifest_sha256 = writeManifest(paths.folder, manifest, signer);
  await removeAll(paths.mark);
  await fsyncDirectory(paths.folder);
  return { manifest, manifest_sha256 };
}
