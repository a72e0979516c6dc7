// Where the folders of a project have what clients read: anyone with write access to the project may have made them, so
// the search has limits, and says when it has not looked at everything.

import { existsSync, lstatSync, opendirSync, readdirSync, realpathSync, statSync, type Dirent } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { errorCode } from '../../../system/error-code.js';
import { isWithin } from './client-file.js';

export interface SearchLimits {
  readonly folders: number;
  readonly entries: number;
  /** The project has depth 0. */
  readonly depth: number;
  readonly places: number;
}
/** About a second of work at most. */
const LIMITS: SearchLimits = { folders: 20_000, entries: 200_000, depth: 32, places: 1_000 };

interface FoundPlaces {
  /** Relative to the project, sorted. The last parts of a place may not exist. */
  readonly places: readonly string[];
  /** Whether every folder was looked at but those of `SKIPPED`. */
  readonly isComplete: boolean;
}

/** Clients read nothing in them unless they are started there. */
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', '.git']);
/** How many folders are read at a time: the process has other work. */
const FOLDERS_AT_A_TIME = 64;

/** No repository is deeper. */
const FOLDERS_ABOVE_MAX = 64;

/**
 * The folders above a project up to that of its repository, as `../`, the nearest first; none without a
 * repository.
 */
export function foldersAbove(project: string): readonly string[] {
  const above: string[] = [];
  for (let prefix = ''; above.length < FOLDERS_ABOVE_MAX; prefix += '../') {
    const folder = join(project, prefix);
    if (prefix !== '') above.push(prefix);
    if (existsSync(join(folder, '.git'))) return above;
    if (folder === '/' || folder === './') break;
  }
  return [];
}

/** Searches all folders of a project for some relative paths. */
export async function findPlaces(root: string, paths: readonly string[], limits = LIMITS): Promise<FoundPlaces> {
  const search = new Search(root, paths, limits);
  while (search.lookAt(FOLDERS_AT_A_TIME)) await setImmediate();
  return search.found();
}

class Search {
  readonly #root: string;
  readonly #limits: SearchLimits;
  /** By their first parts in lower case: a file system may not tell cases apart. */
  readonly #paths = new Map<string, readonly string[]>();
  readonly #open: { readonly prefix: string; readonly depth: number }[] = [{ prefix: '', depth: 0 }];
  readonly #places: string[] = [];
  #at = 0;
  #entries = 0;
  #isComplete = true;

  constructor(root: string, paths: readonly string[], limits: SearchLimits) {
    [this.#root, this.#limits] = [root, limits];
    for (const path of paths) {
      const first = (path.split('/')[0] ?? '').toLowerCase();
      this.#paths.set(first, [...(this.#paths.get(first) ?? []), path]);
    }
  }

  /** @returns whether folders are left */
  lookAt(count: number): boolean {
    const end = this.#at + count;
    for (; this.#at < Math.min(end, this.#open.length); this.#at += 1) {
      if (this.#isFull()) return false;
      this.#readFolder(this.#open[this.#at] ?? { prefix: '', depth: 0 });
    }
    return this.#at < this.#open.length;
  }

  found(): FoundPlaces {
    return { places: this.#places.sort(), isComplete: this.#isComplete };
  }

  /** Whether a limit is reached; then what is left is not looked at. */
  #isFull(): boolean {
    const isFull = this.#places.length >= this.#limits.places || this.#entries >= this.#limits.entries;
    if (isFull) this.#isComplete = false;
    return isFull;
  }

  #readFolder({ prefix, depth }: { readonly prefix: string; readonly depth: number }): void {
    try {
      const folder = opendirSync(join(this.#root, prefix), { bufferSize: 256 });
      try {
        for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
          if (this.#isFull()) return;
          this.#entries += 1;
          this.#readEntry(entry, prefix, depth + 1);
        }
      } finally {
        folder.closeSync();
      }
    } catch (error) {
      // It was removed meanwhile, or there is no project.
      if (errorCode(error) !== 'ENOENT') this.#isComplete = false;
    }
  }

  #readEntry(entry: Dirent, prefix: string, depth: number): void {
    const { name } = entry;
    this.#places.push(...(this.#paths.get(name.toLowerCase()) ?? []).map((path) => `${prefix}${path}`));
    if (SKIPPED.has(name)) return;
    if (entry.isSymbolicLink()) {
      if (this.#leadsAway(`${prefix}${name}`)) this.#isComplete = false;
    } else if (entry.isDirectory()) {
      if (depth <= this.#limits.depth && this.#open.length < this.#limits.folders)
        this.#open.push({ prefix: `${prefix}${name}/`, depth });
      else this.#isComplete = false;
    }
  }

  /** Whether a link leads to a folder that is not looked at. Others are looked at under their own paths. */
  #leadsAway(path: string): boolean {
    try {
      const link = join(this.#root, path);
      if (!statSync(link).isDirectory()) return false;
      const [real, root] = [realpathSync(link), realpathSync(this.#root)];
      return (
        !isWithin(real, root) ||
        real
          .slice(root.length)
          .split('/')
          .some((part) => SKIPPED.has(part))
      );
    } catch {
      return false;
    }
  }
}

/** More are not looked at. */
export const PATHS_MAX = 2_000;

/**
 * The files at and below some paths of a folder, sorted. A link counts as a file and is not followed, and a folder that
 * cannot be read or is not looked at counts as one: anyone with write access to a project may have made them.
 */
export function filesBelow(root: string, paths: readonly string[]): readonly string[] {
  const found: string[] = [];
  const open = [...paths];
  let looked = 0;
  for (; looked < Math.min(open.length, PATHS_MAX); looked += 1) {
    const path = open[looked] ?? '';
    const children = childrenOf(join(root, path));
    if (children === null) found.push(path);
    else open.push(...children.slice(0, PATHS_MAX + 1 - open.length).map((name) => `${path}/${name}`));
  }
  found.push(...open.slice(looked));
  return found.sort();
}

/** @returns null for a file; an empty list for a path that does not exist */
function childrenOf(path: string): readonly string[] | null {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return found.isDirectory() ? readdirSync(path).sort() : null;
  } catch {
    return null;
  }
}
