// A file that is there whole or not at all: it is written under another name, and gets its own, which nothing has yet,
// when it is durable and was read again.

import { createHash } from 'node:crypto';
import { existsSync, linkSync, rmSync, statSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../../errors.js';
import type { ArchiveDraft } from '../../ports/ledger/archives.js';
import type { LineFile } from '../../ports/ledger/line-file.js';
import { errorCode } from '../system/error-code.js';
import { openLineFile } from '../files/line-file.js';
import { openRegular, readPieces } from '../files/open-file.js';
import { fsyncDirectorySync } from '../files/fsync-directory.js';
import { usageError } from '../system/usage-error.js';

/** Lines are gathered up to so much before they are written. */
const CHUNK_CHARS = 1_024 * 1_024;

/** Begins a file at `path`, for its owner alone. @throws UsageError where something is there, or it cannot be made */
export async function createArchiveDraft(path: string): Promise<ArchiveDraft> {
  if (existsSync(path)) throw existsError(path);
  const draft = `${path}.part`;
  const file = await createNewFile(draft).catch((error: unknown) => {
    throw usageError(`${path} cannot be written: ${errorCode(error)}`);
  });
  let pendingLines: string[] = [];
  let chars = 0;
  let lines: LineFile | null = null;
  const flush = async (): Promise<void> => {
    await file.appendFile(pendingLines.join(''));
    [pendingLines, chars] = [[], 0];
  };
  return {
    write: async (line) => {
      pendingLines.push(line);
      chars += line.length;
      if (chars >= CHUNK_CHARS) await flush();
    },
    read: async () => {
      await flush();
      await file.sync();
      lines = await openLineFile(draft);
      return { file: lines, sha256: await hashFile(draft) };
    },
    publish: async () => {
      if (!(await isSameFile(file, draft))) throw usageError(`${draft} is somebody else's by now: name another file`);
      // A link and not a rename: it fails where a file is.
      try {
        linkSync(draft, path);
      } catch (error) {
        throw errorCode(error) === 'EEXIST' ? existsError(path) : error;
      }
      // Between the look and the link it may have become somebody else's: then that one has the name.
      if (!(await isSameFile(file, path))) throw existsError(path);
      rmSync(draft);
      fsyncDirectorySync(dirname(path));
    },
    close: async () => {
      await lines?.close();
      if (await isSameFile(file, draft)) rmSync(draft, { force: true });
      await file.close();
    },
  };
}

/**
 * A file that nobody else writes to, not even who archives another ledger under the same name just now. Of what was cut
 * short nothing is kept: it may lack its end.
 */
function createNewFile(draft: string): Promise<FileHandle> {
  rmSync(draft, { force: true });
  return open(draft, 'wx', 0o600);
}

/** Whether it is this very file that lies there. */
async function isSameFile(file: FileHandle, path: string): Promise<boolean> {
  const [{ dev, ino }, there] = [await file.stat(), statSync(path, { throwIfNoEntry: false })];
  return there?.dev === dev && there.ino === ino;
}

/** The hash of a whole file, in lower-case hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await openRegular(path);
  try {
    for await (const piece of readPieces(file)) hash.update(piece);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}

const existsError = (path: string): UsageError => usageError(`${path} is there already: name a new file`);
