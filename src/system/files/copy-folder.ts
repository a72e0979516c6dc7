// Copies folders durably: what was copied survives a crash once the call has resolved.

import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rm, symlink, utimes, chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../error-code.js';
import { fsyncDirectory } from './fsync-directory.js';
import { openRegular, readPieces } from './open-file.js';

/** Which names of a folder are not copied. */
export interface CopyFolderOptions {
  readonly skip?: RegExp;
  /** Whether files may be removed meanwhile: then they are left out. @default false */
  readonly acceptMissing?: boolean;
}

/**
 * Copies a folder with everything in it: permissions and times stay, and links are copied as links. Sockets, pipes and
 * devices are left out. Does nothing if `from` does not exist.
 * @returns the number of files @throws an error of the operating system, such as EEXIST for a file that is in `to`
 */
export async function copyFolder(from: string, to: string, options: CopyFolderOptions = {}): Promise<number> {
  const names = await readNames(from);
  if (names === null) return 0;
  const { mode, atime, mtime } = await lstat(from);
  await mkdir(to, { recursive: true, mode: 0o700 });
  let files = 0;
  for (const name of names.filter((one) => options.skip?.test(one) !== true)) {
    try {
      files += await copyEntry(join(from, name), join(to, name), options);
    } catch (error) {
      if (options.acceptMissing !== true || errorCode(error) !== 'ENOENT') throw error;
    }
  }
  await chmod(to, mode & 0o7777);
  await utimes(to, atime, mtime);
  await fsyncDirectory(to);
  return files;
}

async function copyEntry(from: string, to: string, options: CopyFolderOptions): Promise<number> {
  const stat = await lstat(from);
  if (stat.isDirectory()) return copyFolder(from, to, options);
  if (stat.isSymbolicLink()) {
    await symlink(await readlink(from), to);
    return 1;
  }
  if (!stat.isFile()) return 0;
  await copyRegularFile(from, to);
  return 1;
}

/**
 * Copies one regular file durably. Its name is durable when its folder is. A link is not followed: everything is read
 * from one descriptor, so that nothing can replace the file meanwhile.
 * @throws an error of the operating system, such as ELOOP for a link, or NotAFile
 */
export async function copyRegularFile(from: string, to: string): Promise<void> {
  const source = await openRegular(from, { flags: constants.O_NOFOLLOW });
  try {
    const { mode, atime, mtime } = await source.stat();
    const target = await open(to, 'wx', 0o600);
    try {
      for await (const piece of readPieces(source)) await target.writeFile(piece);
      await target.chmod(mode & 0o7777);
      await target.utimes(atime, mtime);
      await target.sync();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** Like `copyRegularFile`; does nothing if `from` does not exist. */
export async function copyFileIfThere(from: string, to: string): Promise<void> {
  try {
    await copyRegularFile(from, to);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

/** Removes a file or folder, if it is there. */
export const removeAll = (path: string): Promise<void> => rm(path, { recursive: true, force: true });

async function readNames(folder: string): Promise<readonly string[] | null> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}
