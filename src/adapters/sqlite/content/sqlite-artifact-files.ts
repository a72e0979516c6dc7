// Content that is too large for a row of the database lies in a file, named by its hash, under the folder of its case.
// A file is complete and durable before the transaction that refers to it commits; one that nobody refers to, because
// the process died in between, does no harm.

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
import { LedgerError } from '../../../errors.js';
import { isCaseId } from '../../ledger/check-batch.js';
import { errorCode } from '../../system/error-code.js';
import { openRegular, readRegularSync } from '../../files/open-file.js';
import { fsyncDirectorySync } from '../../files/fsync-directory.js';
import { tamperedError } from '../../ledger/store-errors.js';

/** The largest content that is stored in the database (S4-83). */
export const INLINE_BYTES_MAX = 256 * 1_024;

/** Which content, and in which folder all of them lie. */
export interface ArtifactPlace {
  readonly directory: string;
  readonly case_id: string | null;
  readonly sha256: string;
  /** The number of the key that it is encrypted with; 0 for none. */
  readonly sealed: number;
}

/** Where a content lies. @throws LedgerError LEDGER_TAMPERED for a case that is none */
export function artifactPathOf({ directory, case_id, sha256, sealed }: ArtifactPlace): string {
  const name = sealed === 0 ? sha256 : `${sha256}.${sealed}`;
  return join(folderOf({ directory, case_id }), sha256.slice(0, 2), name);
}

function folderOf({ directory, case_id }: Pick<ArtifactPlace, 'directory' | 'case_id'>): string {
  // It may come from a database that somebody changed.
  if (case_id !== null && !isCaseId(case_id)) {
    throw tamperedError(`not a case id: ${JSON.stringify(case_id)}`);
  }
  return join(directory, case_id ?? '_system');
}

/** Writes a content, durably: file, its name, and the names of the folders that had to be made. */
export function writeArtifactFile(place: ArtifactPlace, bytes: Uint8Array): void {
  const path = artifactPathOf(place);
  const folder = dirname(path);
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
  // One writer at a time, so one name for what is not whole yet is enough; what a crash left there is overwritten.
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

/** Syncs the folders above `folder`, up to and with `top`. */
function syncUpTo(top: string, folder: string): void {
  const names = relative(top, folder).split(sep);
  for (let depth = names.length - 1; depth >= 0; depth -= 1) fsyncDirectorySync(join(top, ...names.slice(0, depth)));
}

/** Writes beside a content that lies there in the clear the same, sealed. One that is gone stays so. */
export function sealArtifactFile(place: ArtifactPlace, seal: (content: Uint8Array) => Uint8Array): void {
  const plain = artifactPathOf({ ...place, sealed: 0 });
  if (existsSync(plain)) writeArtifactFile(place, seal(readRegularSync(plain, Number.MAX_SAFE_INTEGER)));
}

const PLAIN = /^[0-9a-f]{64}(?:\.part)?$/;

/** Takes away what lies in the clear in the folder of a case: also what a crash has left, of which no row speaks. */
export function removePlainFiles(directory: string, case_id: string): void {
  const folder = folderOf({ directory, case_id });
  if (!existsSync(folder)) return;
  for (const { name, parentPath } of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!PLAIN.test(name)) continue;
    rmSync(join(parentPath, name), { force: true });
    fsyncDirectorySync(parentPath);
  }
}

/** Takes away all contents of a case, when nobody can open them any more. */
export function removeArtifactFolder(directory: string, case_id: string): void {
  rmSync(folderOf({ directory, case_id }), { recursive: true, force: true });
}

/**
 * Reads a content of `byte_size` bytes, as they lie there. Whether it is the right one, its hash must tell.
 * @throws LedgerError LEDGER_TAMPERED if it is not there or has another size
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
    const missing = ['ENOENT', 'ENOTDIR'].includes(errorCode(cause));
    const message = missing ? `the artifact ${path} is missing` : `the artifact ${path} cannot be read`;
    throw new LedgerError({ code: missing ? 'LEDGER_TAMPERED' : 'LEDGER_UNAVAILABLE', message, cause });
  }
  throw tamperedError(`the artifact ${path} has not ${byte_size} bytes`);
}
