import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { runGit } from './git-command.js';

/** Of the list of tracked files. One file is enough to report, so the rest of a longer list is not read. */
const BYTES_MAX = 65_536;
/** A command waits at most this long for Git, in milliseconds. */
const MS_MAX = 5_000;

/**
 * Finds a file in `folder` that is in the index of the Git repository around it. The folder need not exist: the index
 * may contain files of it that were deleted.
 * @param isPublic whether a file, named by its path in the folder, does not count
 * @param msMax in milliseconds
 * @returns the path of the file in the folder. Null if no file is tracked; also without a repository, without Git, and
 * if Git gives no answer in `msMax`
 */
export async function findTrackedFile(
  folder: string,
  isPublic: (name: string) => boolean,
  msMax = MS_MAX,
): Promise<string | null> {
  const { root, rest } = splitExisting(folder);
  // Git is started only where it could find a repository.
  if (!isInRepository(root)) return null;
  const args = ['ls-files', '--cached', '-z', '--', rest === '' ? '.' : rest];
  const { stdout } = await runGit(root, args, { bytesMax: BYTES_MAX, msMax });
  // The last part is empty, or was cut off.
  const names = stdout.toString('utf8').split('\0').slice(0, -1);
  const inFolder = names.map((name) => (rest === '' ? name : name.slice(rest.length + 1)));
  return inFolder.find((name) => !isPublic(name)) ?? null;
}

/** The existing part of a path, without symbolic links, and the part of it that does not exist. */
function splitExisting(path: string): { readonly root: string; readonly rest: string } {
  if (existsSync(path)) return { root: realpathSync(path), rest: '' };
  const parent = splitExisting(dirname(path));
  return { root: parent.root, rest: join(parent.rest, basename(path)) };
}

function isInRepository(folder: string): boolean {
  if (existsSync(join(folder, '.git'))) return true;
  return dirname(folder) !== folder && isInRepository(dirname(folder));
}
