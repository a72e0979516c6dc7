// Content that is too large for a database row is a file, named by its hash, in the folder of its case. The file is
// complete and durable before the transaction that refers to it commits. If the process dies in between, the file has
// no row and does no harm.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { LedgerError } from '../../../core/errors.js';
import { isCaseId } from '../../ledger/check-batch.js';
import { errorCode } from '../../../system/error-code.js';
import { openRegular, readRegularSync } from '../../../system/files/open-file.js';
import { fsyncDirectorySync } from '../../../system/files/fsync-directory.js';
import { tamperedError } from '../../ledger/store-errors.js';

/** The largest content that is stored in the database, in bytes (S4-83). */
export const INLINE_BYTES_MAX = 256 * 1_024;

/** Identifies a content, and the directory of all contents. */
export interface ArtifactPlace {
  readonly directory: string;
  readonly case_id: string | null;
  readonly sha256: string;
  /** The number of the key that encrypts it; 0 for none. */
  readonly sealed: number;
}

/** The path of a content file. @throws LedgerError LEDGER_TAMPERED for an invalid case id */
export function artifactPathOf({ directory, case_id, sha256, sealed }: ArtifactPlace): string {
  const name = sealed === 0 ? sha256 : `${sha256}.${sealed}`;
  return join(folderOf({ directory, case_id }), sha256.slice(0, 2), name);
}

function folderOf({ directory, case_id }: Pick<ArtifactPlace, 'directory' | 'case_id'>): string {
  // The case id may come from a tampered database.
  if (case_id !== null && !isCaseId(case_id)) {
    throw tamperedError(`not a case id: ${JSON.stringify(case_id)}`);
  }
  return join(directory, case_id ?? '_system');
}

/** Writes a content file and makes it durable, with its name and the names of newly created folders. */
export function writeArtifactFile(place: ArtifactPlace, bytes: Uint8Array): void {
  const path = artifactPathOf(place);
  const folder = dirname(path);
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
  // There is one writer at a time, so one draft name is enough; a draft left by a crash is overwritten.
  const draft = `${path}.part`;
  const file = openSync(draft, 'w', 0o600);
  try {
    let written = 0;
    while (written < bytes.byteLength) written += writeSync(file, bytes, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
  fsyncDirectorySync(folder);
  if (made !== undefined) syncUpTo(dirname(made), folder);
}

/** Syncs the folders above `folder`, up to and including `top`. */
function syncUpTo(top: string, folder: string): void {
  const names = relative(top, folder).split(sep);
  for (let depth = names.length - 1; depth >= 0; depth -= 1) fsyncDirectorySync(join(top, ...names.slice(0, depth)));
}

const SEALED = /^[0-9a-f]{64}\.([1-9]\d*)(\.part)?$/;

/** Removes the files of a case under keys before `no`, and drafts that a crash left. */
export function removeReplacedFiles(directory: string, case_id: string, no: number): void {
  const folder = folderOf({ directory, case_id });
  if (!existsSync(folder)) return;
  for (const { name, parentPath } of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const [, sealed, draft] = SEALED.exec(name) ?? [];
    if (sealed === undefined || (Number(sealed) >= no && draft === undefined)) continue;
    rmSync(join(parentPath, name), { force: true });
    fsyncDirectorySync(parentPath);
  }
}

/** Removes all content files of a case whose key was destroyed. */
export function removeArtifactFolder(directory: string, case_id: string): void {
  rmSync(folderOf({ directory, case_id }), { recursive: true, force: true });
}

/** Like `readArtifactFile`, at once. @throws like `readArtifactFile` */
export function readArtifactFileSync(place: ArtifactPlace, byte_size: number): Uint8Array {
  const path = artifactPathOf(place);
  let bytes: Uint8Array;
  try {
    bytes = readRegularSync(path, byte_size + 1);
  } catch (cause) {
    throw unreadError(path, cause);
  }
  if (bytes.byteLength === byte_size) return bytes;
  throw tamperedError(`the artifact ${path} has not ${byte_size} bytes`);
}

/**
 * Reads a stored content file of `byte_size` bytes. The caller must verify its hash.
 * @throws LedgerError LEDGER_TAMPERED if it is missing or has another size; LEDGER_UNAVAILABLE if it cannot be read
 */
export async function readArtifactFile(place: ArtifactPlace, byte_size: number): Promise<Uint8Array> {
  const path = artifactPathOf(place);
  try {
    const file = await openRegular(path);
    try {
      const { size } = await file.stat();
      if (size === byte_size) return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw unreadError(path, cause);
  }
  throw tamperedError(`the artifact ${path} has not ${byte_size} bytes`);
}

function unreadError(path: string, cause: unknown): LedgerError {
  const missing = ['ENOENT', 'ENOTDIR'].includes(errorCode(cause));
  const message = missing ? `the artifact ${path} is missing` : `the artifact ${path} cannot be read`;
  return new LedgerError({ code: missing ? 'LEDGER_TAMPERED' : 'LEDGER_UNAVAILABLE', message, cause });
}
