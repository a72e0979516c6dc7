// The private folder of one command, removed with it: an empty home, an empty temporary folder, and a named pipe. Both
// output streams share the pipe, so that their order is kept. It is a real pipe, so that a script can open /dev/stderr:
// what Node calls a pipe is a socket.

import { execFile } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../engine/ports/log.js';
import { errorCode } from '../../system/error-code.js';

const PREFIX = 'turnpike-command-';
const MAKE_MS_MAX = 10_000;
const PRIVATE = 0o700;

export interface CommandScratch {
  readonly home: string;
  readonly temp: string;
  /** Opens all three descriptors, or none; the caller closes them. */
  open(): ScratchStreams;
  /** @throws when something cannot be removed */
  remove(): Promise<void>;
}

/** Open descriptors. */
export interface ScratchStreams {
  readonly input: number;
  /** The command's end of the pipe. */
  readonly write: number;
  /** Our end; non-blocking. */
  readonly read: number;
}

/** Creates a scratch folder below `parent`. @throws an error with the code of the operating system */
export async function makeScratch(parent: string, path: string, input: Uint8Array | null): Promise<CommandScratch> {
  const base = await mkdtemp(join(parent, PREFIX));
  const at = (name: string) => join(base, name);
  try {
    for (const name of ['home', 'temp']) await mkdir(at(name), { mode: PRIVATE });
    if (input !== null) await writeFile(at('input'), input, { mode: 0o600 });
    await makePipe(at('output'), path);
  } catch (error) {
    await rm(base, { recursive: true, force: true });
    throw error;
  }
  return {
    home: at('home'),
    temp: at('temp'),
    open: () => {
      const opened: number[] = [];
      const open = (path: string, flags: number): number => {
        const fd = openSync(path, flags);
        opened.push(fd);
        return fd;
      };
      try {
        return {
          input: open(input === null ? '/dev/null' : at('input'), constants.O_RDONLY),
          read: open(at('output'), constants.O_RDONLY | constants.O_NONBLOCK),
          // With O_NONBLOCK, the command would lose output while the pipe is full. The pipe has a reader by now.
          write: open(at('output'), constants.O_WRONLY),
        };
      } catch (error) {
        for (const fd of opened) closeSync(fd);
        throw error;
      }
    },
    remove: () => removeTree(base),
  };
}

/**
 * Creates `parent`, and removes the scratch folders that killed processes left in it. Only for the one process that
 * creates such folders there.
 */
export async function clearScratch(parent: string, log: Log): Promise<void> {
  await mkdir(parent, { recursive: true, mode: PRIVATE });
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    await removeTree(join(parent, name)).catch((error: unknown) =>
      log.warn('the folder of a former command is left over', { name, error }),
    );
  }
}

/** Runs `mkfifo`, because Node cannot create a named pipe. */
const makePipe = (file: string, path: string): Promise<void> =>
  new Promise((settle, fail) => {
    execFile('mkfifo', ['-m', '600', file], { env: { PATH: path }, timeout: MAKE_MS_MAX }, (cause) => {
      if (cause === null) settle();
      else fail(Object.assign(new Error('mkfifo made no pipe', { cause }), { code: 'EIO' }));
    });
  });

/** Also removes folders whose permissions a command has removed, as package caches do. Follows no link. */
async function removeTree(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 2 } as const;
  try {
    await rm(path, options);
  } catch (error) {
    if (!['EACCES', 'EPERM', 'ENOTEMPTY'].includes(errorCode(error))) throw error;
    await openTree(path);
    await rm(path, options);
  }
}

async function openTree(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return;
  await chmod(path, PRIVATE);
  for (const name of await readdir(path)) await openTree(join(path, name));
}
