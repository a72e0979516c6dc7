// The place that a copy fills: a folder with a mark, and an empty store.

import { basename, join } from 'node:path';
import { copyFileIfThere, copyFolder, removeAll } from '../../../system/files/copy-folder.js';
import { fsyncDirectory } from '../../../system/files/fsync-directory.js';
import { CaseKeys } from '../../../stores/keys/case-keys.js';
import { copyDraftOf, createSqliteCopyTarget } from '../../../stores/sqlite/copy/sqlite-copy-target.js';
import { openSqliteStore } from '../../../stores/sqlite/sqlite-ledger-store.js';
import { lockFolder, lockWriter, type WriterLock } from '../../../stores/sqlite/writer-lock.js';
import { LedgerError, usageError, type UsageError } from '../../../core/errors.js';
import type { LedgerCopyTarget } from '../../../engine/ports/ledger/ledger-copy.js';
import type { LedgerStore } from '../../../engine/ports/ledger/ledger-store.js';
import { erasureSealOf, isVacant, makeFolder, sqliteFiles } from '../../../home/home.js';
import { withoutPassword } from '../../../home/hide-passwords.js';
import { readLedgerSigner } from '../../../home/ledger-key.js';
import { drawId, openVolume, sharedExports, storeFile, volumeFiles, writeStoreHome } from '../../../home/store-home.js';
import { ignoreInGit } from '../../../home/tracked-keys.js';
import type { LedgerLocation } from '../../../home/ledger-location.js';
import { createCopyMarker, readCopyMarker } from '../../../home/copy-marker.js';

/** Locks of running processes, and drafts of files that a crash has left. */
const NOT_COPIED = /\.lock$|\.new-[0-9a-f]+$/;

/** The folder of exported bags. */
const exportsOf = ({ paths, postgres }: LedgerLocation): string =>
  postgres === null ? join(paths.state, 'exports') : sharedExports(paths.sandbox);

/**
 * Marks the folder of the target as an unfinished copy, and locks it.
 * @throws UsageError if it is not empty, or an unfinished copy of another source
 * @throws LedgerError LEDGER_LOCKED while another process copies into it
 */
export function claimTarget({ paths, postgres }: LedgerLocation, source: string): WriterLock {
  const marker = readCopyMarker(paths.home);
  if (marker === null) {
    if (!isVacant(paths.home)) throw usageError(`${paths.home} is not empty: name a new folder for the copy`);
    makeFolder(paths.home);
    ignoreInGit(paths.home);
    createCopyMarker(paths.home, source);
  } else if (marker.source !== source) {
    throw usageError(
      `${paths.home} is an unfinished copy of ${marker.source}: copy that ledger again, or remove the folder`,
    );
  }
  return postgres === null ? lockWriter(paths.ledger) : lockFolder(paths.state);
}

/** Removes what an interrupted copy has left in the folder of the target. */
export async function clearTarget(to: LedgerLocation): Promise<void> {
  const { home, ledger, artifacts, keys, sandbox, head, overlay, mcpRun, history } = to.paths;
  const databases = [ledger, copyDraftOf(ledger)].flatMap((file) => ['', '-wal', '-shm'].map((end) => `${file}${end}`));
  const files = [storeFile(home), artifacts, keys, sandbox, head, overlay, mcpRun, history, exportsOf(to)];
  for (const path of [...databases, ...files]) await removeAll(path);
}

/** Copies the key folder, the local state that belongs to the ledger, exports and, if requested, the sandbox. */
export async function copyFiles(source: LedgerLocation, target: LedgerLocation, withSandbox: boolean): Promise<void> {
  const [from, to] = [source.paths, target.paths];
  await copyFolder(from.keys, to.keys, { skip: NOT_COPIED });
  if (from.overlay !== to.overlay) await removeAll(join(to.keys, basename(from.overlay)));
  if (withSandbox) await copyFolder(from.sandbox, to.sandbox);
  for (const file of volumeFiles(to.sandbox)) await removeAll(file);
  for (const folder of [to.keys, to.sandbox]) makeFolder(folder);
  for (const file of ['head', 'overlay', 'mcpRun'] as const) await copyFileIfThere(from[file], to[file]);
  await copyFolder(exportsOf(source), exportsOf(target));
  await fsyncDirectory(to.home);
}

/** Creates the empty store of the target, whose keys have been copied. @throws like its store */
export async function createCopyTarget(to: LedgerLocation, source: string): Promise<LedgerCopyTarget> {
  const { paths, postgres } = to;
  if (postgres === null) {
    makeFolder(paths.artifacts);
    const { file, artifactsDir } = sqliteFiles(paths);
    return createSqliteCopyTarget({ file, artifactsDir });
  }
  const { createPostgresCopyTarget } = await import('../../../stores/postgres/copy/postgres-copy-target.js');
  const keys = new CaseKeys(paths.caseKeys, erasureSealOf(paths, { readOnly: true }));
  return createPostgresCopyTarget({ ...postgres, keys, source });
}

/** Opens the copy for its verification, before it is published. */
export async function openCopy({ paths, postgres }: LedgerLocation): Promise<LedgerStore> {
  const erasureSeal = erasureSealOf(paths, { readOnly: true });
  if (postgres === null) return openSqliteStore({ ...sqliteFiles(paths), readOnly: true, erasureSeal });
  const { openCopiedPostgresStore } = await import('../../../stores/postgres/postgres-ledger-store.js');
  return openCopiedPostgresStore({ ...postgres, caseKeysDir: paths.caseKeys, erasureSeal });
}

/** Whether the store of the target has lost its mark of an unfinished copy. An SQLite store never has one. */
export async function isPublished({ paths, postgres }: LedgerLocation): Promise<boolean> {
  if (postgres === null) return false;
  const { openPostgresStore } = await import('../../../stores/postgres/postgres-ledger-store.js');
  try {
    const store = await openPostgresStore({ ...postgres, caseKeysDir: paths.caseKeys, readOnly: true });
    await store.close();
    return true;
  } catch (error) {
    if (error instanceof LedgerError && error.code === 'LEDGER_UNAVAILABLE') return false;
    throw error;
  }
}

// A copy into PostgreSQL is a home of a shared ledger: the keys and the volume are recorded in the database, and the
// folder names the database. So commands and workers open the copy like any shared ledger.

/**
 * Records the installation of a copy. Does nothing for an SQLite home.
 * @throws UsageError if the key folder has no ledger key; LedgerError LEDGER_UNAVAILABLE
 */
export async function installCopy({ paths, postgres }: LedgerLocation): Promise<void> {
  if (postgres === null) return;
  const { keys, ledgerKey, sandbox, home } = paths;
  const vkey = readLedgerSigner(ledgerKey)?.vkey;
  if (vkey === undefined) throw missingKeyError(keys);
  const { openPostgresCluster } = await import('../../../stores/postgres/cluster/postgres-cluster.js');
  const cluster = openPostgresCluster(postgres);
  try {
    const volume_id = openVolume(sandbox).id;
    const { ledger_id } = await cluster.install({ ledger_id: drawId('led_'), vkey, volume_id });
    const [url, { schema }] = [withoutPassword(postgres.url), postgres];
    writeStoreHome(home, { version: 1, url, schema, ledger_id, volume_id, keys, sandbox });
  } finally {
    await cluster.close();
  }
}

/** A shared ledger is identified by its key. @throws UsageError if a copy into PostgreSQL would have none */
export function requireKey(from: LedgerLocation, to: LedgerLocation): void {
  if (to.postgres !== null && readLedgerSigner(from.paths.ledgerKey) === null) throw missingKeyError(from.paths.keys);
}

const missingKeyError = (keys: string): UsageError =>
  usageError(`${keys} has no ledger key: open the source once, so that its heads are signed, and copy again`);
