// An archive file appears complete or not at all: it is written as a draft, made durable and read again. Only then it
// gets its own name, which must not exist yet.

import { existsSync, linkSync, rmSync, statSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError, usageError } from '../../core/errors.js';
import type { ArchiveDraft } from '../../engine/ports/ledger/archives.js';
import type { LineFile } from '../../engine/ports/ledger/line-file.js';
import { errorCode } from '../../system/error-code.js';
import { openLineFile } from '../../system/files/open-line-file.js';
import { hashFile } from '../../system/files/hash-file.js';
import { fsyncDirectorySync } from '../../system/files/fsync-directory.js';

/** Lines are buffered up to this length before they are written. */
const CHUNK_CHARS = 1_024 * 1_024;

/** Creates a draft for `path`, with mode 0600. @throws UsageError if `path` exists or the draft cannot be created */
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
      if (!(await isSameFile(file, draft)))
        throw usageError(`${draft} was replaced by another process: name another file`);
      // A link and not a rename: it fails if the target exists.
      try {
        linkSync(draft, path);
      } catch (error) {
        throw errorCode(error) === 'EEXIST' ? existsError(path) : error;
      }
      // Another process may have replaced the draft between check and link: then the name belongs to that process.
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
 * Creates a draft that no other process writes to, even if one archives another ledger under the same name now. An
 * unfinished draft is removed first, because it may lack its end.
 */
function createNewFile(draft: string): Promise<FileHandle> {
  rmSync(draft, { force: true });
  return open(draft, 'wx', 0o600);
}

/** Whether `path` is this open file. */
async function isSameFile(file: FileHandle, path: string): Promise<boolean> {
  const [{ dev, ino }, there] = [await file.stat(), statSync(path, { throwIfNoEntry: false })];
  return there?.dev === dev && there.ino === ino;
}

const existsError = (path: string): UsageError => usageError(`${path} is there already: name a new file`);
