// A file that is there whole or not at all: it is written under another name, and gets its own, which nothing has yet,
// when it is durable and was read again.

import { createHash } from 'node:crypto';
import { createReadStream, existsSync, linkSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { UsageError } from '../errors.js';
import type { ArchiveDraft } from '../ports/archive-file.js';
import type { LineFile } from '../ports/line-file.js';
import { errorCode } from './error-code.js';
import { openLineFile } from './line-file.js';
import { syncDirectory } from './sqlite-database.js';

/** Lines are gathered up to so much before they are written. */
const CHUNK_CHARS = 1_024 * 1_024;

/** Begins a file at `path`, for its owner alone. @throws UsageError where something is there, or it cannot be made */
export async function draftArchive(path: string): Promise<ArchiveDraft> {
  if (existsSync(path)) throw taken(path);
  const draft = `${path}.part`;
  // Of what was cut short nothing is kept: it may lack its end.
  const file = await open(draft, 'w', 0o600).catch((error: unknown) => {
    throw usage(`${path} cannot be written: ${errorCode(error)}`);
  });
  let waiting: string[] = [];
  let chars = 0;
  let lines: LineFile | null = null;
  const flush = async (): Promise<void> => {
    await file.appendFile(waiting.join(''));
    [waiting, chars] = [[], 0];
  };
  return {
    write: async (line) => {
      waiting.push(line);
      chars += line.length;
      if (chars >= CHUNK_CHARS) await flush();
    },
    read: async () => {
      await flush();
      await file.sync();
      lines = await openLineFile(draft);
      return { file: lines, sha256: await sha256OfFile(draft) };
    },
    settle: async () => {
      // A link and not a rename: it fails where a file is.
      try {
        linkSync(draft, path);
      } catch (error) {
        throw errorCode(error) === 'EEXIST' ? taken(path) : error;
      }
      rmSync(draft);
      syncDirectory(dirname(path));
      return Promise.resolve();
    },
    close: async () => {
      await lines?.close();
      await file.close();
      rmSync(draft, { force: true });
    },
  };
}

/** The hash of a whole file, in lower-case hex. */
export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest('hex');
}

const taken = (path: string): UsageError => usage(`${path} is there already: name a new file`);

const usage = (message: string): UsageError => new UsageError({ code: 'USAGE', message });
