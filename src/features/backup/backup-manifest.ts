// The manifest of a backup, a signed note that is written last, and the list of its files with their hashes. Without a
// valid manifest a backup is unfinished.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { readJson, canonicalJson, parseOwnJson } from '../../core/contract/json.js';
import { formatHeader, refuseOtherFormat, type FileFormat } from '../../core/contract/file-format.js';
import { sha256 } from '../../core/contract/hash.js';
import { closed, Sha256, Timestamp } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { LedgerError } from '../../core/errors.js';
import { keysOf } from '../../core/ledger/proof/key-history.js';
import {
  NOTE_BYTES_MAX,
  openNote,
  signNote,
  type NoteSigner,
  type NoteVerifier,
} from '../../core/ledger/proof/signed-note.js';
import { lstat, readlink } from 'node:fs/promises';
import { folderNames } from '../../system/files/folder-names.js';
import { hashFile } from '../../system/files/hash-file.js';
import { NO_PROGRESS, type ProgressReporter } from '../../engine/ports/progress.js';

/** What a backup contains. */
export const BackupManifest = Type.Object(
  {
    version: Type.Literal(1),
    made_at: Timestamp,
    /** The version of Turnpike that made it. */
    made_by: Type.String({ minLength: 1, maxLength: 80 }),
    source: Type.Union([Type.Literal('sqlite'), Type.Literal('postgresql')]),
    /** The size and the root of the log. */
    size: Type.Integer({ minimum: 0 }),
    root: Sha256,
    has_keys: Type.Boolean(),
    has_sandbox: Type.Boolean(),
    has_contract: Type.Boolean(),
    /** The list of files, and how many it names. */
    files: Type.Integer({ minimum: 1 }),
    files_sha256: Sha256,
  },
  closed,
);
export type BackupManifest = Static<typeof BackupManifest>;

const MANIFEST = 'backup.manifest';
const FORMAT: FileFormat = { prefix: 'turnpike-backup ', newest: 1, old: /^turnpike backup / };
const HEADER = `${formatHeader(FORMAT)}\n`;
const MODE = 0o600;

const pathIn = (folder: string): string => join(folder, MANIFEST);

/** Whether a backup was finished here, intact or not. */
export const isFinishedBackup = (folder: string): boolean => existsSync(pathIn(folder));

/** Finishes a backup: everything else in it is durable. @returns the SHA-256 of the manifest */
export function writeManifest(folder: string, manifest: BackupManifest, signer: NoteSigner): string {
  const note = signNote(`${HEADER}${canonicalJson(manifest)}\n`, signer);
  replaceFile(pathIn(folder), note, MODE);
  return sha256(note);
}

/**
 * @throws LedgerError LEDGER_UNAVAILABLE for an unfinished backup, LEDGER_TAMPERED for one of another ledger,
 * LEDGER_UNSUPPORTED for one whose format this version does not know
 */
export function readManifest(
  folder: string,
  key: NoteVerifier,
): { readonly manifest: BackupManifest; readonly sha256: string } {
  const note = readSmallFile(pathIn(folder), { bytesMax: NOTE_BYTES_MAX });
  if (note === null) {
    const message = `${folder} is not a finished backup: run \`turnpike backup\` with this folder again, or use another`;
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message });
  }
  refuseOtherFormat(Buffer.from(note).toString('latin1'), FORMAT, `the backup ${folder}`);
  const opened = openNote(note, keysOf(key));
  const manifest = manifestIn(opened?.text ?? '');
  const retired = key.retired?.find((one) => opened?.verifiers.includes(one.key) === true);
  if (manifest !== null && manifest.size <= (retired?.size ?? Infinity)) return { manifest, sha256: sha256(note) };
  throw changedError(`${folder}: the key ${key.name} has not signed its manifest`);
}

function manifestIn(text: string): BackupManifest | null {
  if (!text.startsWith(HEADER)) return null;
  const value = readJson(text.slice(HEADER.length));
  return isConforming(BackupManifest, value) ? (value as BackupManifest) : null;
}

const changedError = (what: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_TAMPERED', message: `the backup was changed: ${what}. Use another backup` });

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
