// The files of a backup, and the list that names them with their hashes.

import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { folderNames } from '../../system/files/folder-names.js';
import { hashFile } from '../../system/files/hash-file.js';
import { replaceFile, readSmallFile } from '../../system/files/small-file.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';
import { changedError, type BackupManifest } from './backup-manifest.js';

/** The parts of a backup folder. */
export const backupPaths = (folder: string) => ({
  folder,
  /** A home without scratch files; without keys unless they were asked for. */
  data: join(folder, 'data'),
  contract: join(folder, 'contract'),
  list: join(folder, 'backup.files'),
  mark: join(folder, 'unfinished-backup'),
});
export type BackupPaths = ReturnType<typeof backupPaths>;

const LISTED = ['data', 'contract'] as const;
const LIST_BYTES_MAX = 512 * 1_024 * 1_024;
const MODE = 0o600;

/** Writes the list of all files durably. */
export async function writeFileList(
  paths: BackupPaths,
  progress: ProgressReporter = NO_PROGRESS,
): Promise<Pick<BackupManifest, 'files' | 'files_sha256'>> {
  progress.begin({ label: 'hashing the files of the backup', unit: 'files', total: null });
  const lines = await listFiles(paths.folder, progress);
  const text = lines.map((line) => `${line}\n`).join('');
  replaceFile(paths.list, text, MODE);
  return { files: lines.length, files_sha256: sha256(text) };
}

/** Compares every file with the list, and the list with the manifest. @throws LedgerError LEDGER_TAMPERED */
export async function checkFiles(
  paths: BackupPaths,
  manifest: BackupManifest,
  progress: ProgressReporter = NO_PROGRESS,
): Promise<void> {
  const bytes = readSmallFile(paths.list, { bytesMax: LIST_BYTES_MAX });
  if (bytes === null || sha256(bytes) !== manifest.files_sha256) throw changedError(`${paths.list} is another list`);
  const listed = new Set(Buffer.from(bytes).toString('utf8').trimEnd().split('\n'));
  progress.begin({ label: 'checking the files of the backup', unit: 'files', total: listed.size });
  const found = await listFiles(paths.folder, progress);
  for (const line of found) {
    if (!listed.delete(line)) throw changedError(`${nameIn(line)} was added, or has another content`);
  }
  const [missing] = listed;
  if (missing !== undefined) throw changedError(`${nameIn(missing)} is missing`);
}

/** One line for each file or link: its path, and its hash or target. */
async function listFiles(folder: string, progress: ProgressReporter): Promise<readonly string[]> {
  const lines: string[] = [];
  const visit = async (name: string): Promise<void> => {
    const path = join(folder, name);
    const stat = await lstat(path);
    if (stat.isDirectory()) {
      for (const child of folderNames(path)) await visit(`${name}/${child}`);
      return;
    }
    if (stat.isSymbolicLink()) {
      lines.push(JSON.stringify([name, 'link', await readlink(path)]));
    } else {
      lines.push(JSON.stringify([name, stat.size, stat.isFile() ? await hashFile(path) : 'special']));
    }
    progress.advance();
  };
  for (const part of LISTED) if (await exists(join(folder, part))) await visit(part);
  return lines;
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const nameIn = (line: string): string => String((parseOwnJson(line) as readonly unknown[])[0]);
