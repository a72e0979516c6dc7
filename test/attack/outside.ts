// The protected objects: a folder next to the sandbox, and another case in it. This is also the detector: an escape is
// one of its bytes, names or inodes in any answer, or any change of it.

import { lstatSync, mkdirSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../src/core/contract/hash.js';

/** Occurs in every content outside, and in a name in every folder there. */
const MARK = 'from-beyond';
export const BEYOND = `${MARK}: not yours\n`;
/** The key of the settled effects: outside there is a temporary file of that effect, too. */
export const SETTLE_KEY = 'attacked-settlement';
export const NEIGHBOUR = 'neighbour';

/** Long ago, so that any change shows, however coarse the clock of the file system is. */
const LONG_AGO = new Date('2001-01-01T00:00:00Z');
/** No sandbox of a campaign has that size. */
const GIANT_BYTES = 2 ** 31;

const FOLDERS = ['outside', 'outside/e', `root/${NEIGHBOUR}`, `root/${NEIGHBOUR}/e`];
const TEMP = `outside/e/.turnpike-tmp-${sha256(SETTLE_KEY)}`;
const LINKED = 'outside/linked.txt';
const GIANT = 'outside/e/giant.bin';
const FILES = [
  ...FOLDERS.flatMap((folder) => [`${folder}/a.txt`, `${folder}/${MARK}.txt`]),
  TEMP,
  LINKED,
  GIANT,
] as const;

/** Every path below a folder. Follows no link, as Node's own recursive listing does. */
export function namesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name];
    return [entry.name, ...namesBelow(join(folder, entry.name)).map((name) => join(entry.name, name))];
  });
}

/** The names that operations can use, and the folders. */
const NAMED = [...FOLDERS, LINKED, ...FOLDERS.map((folder) => `${folder}/a.txt`)];

export class Outside {
  readonly #base: string;
  /** The state of each path before the attack. */
  #looks = new Map<string, string>();
  #inodes = new Set<string>();

  constructor(base: string) {
    this.#base = base;
    this.restore();
  }

  /** The file outside that the attacker links into the sandbox. */
  get linked(): string {
    return join(this.#base, LINKED);
  }

  /** What an answer of the sandbox, or a response to an agent, reveals of the outside; null if nothing. */
  seenIn(answer: unknown): string | null {
    const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
    if (text.includes(MARK)) return 'bytes or names from outside';
    for (const [, inode = ''] of text.matchAll(/"inode":"(\d+)"/g)) {
      if (this.#inodes.has(inode)) return 'facts about a file outside';
    }
    const usage = /"usage":\{"bytes":(\d+)/.exec(text);
    return Number(usage?.[1] ?? 0) >= GIANT_BYTES ? 'the size of a file outside' : null;
  }

  /**
   * The changes since the start. It is cheap enough to run after every operation: a created or removed name shows in
   * its folder, and operations can write only to the names that they use.
   */
  changed(): readonly string[] {
    return this.#changedOf(NAMED);
  }

  #changedOf(paths: readonly string[]): readonly string[] {
    return paths.filter((path) => this.#look(path) !== this.#looks.get(path));
  }

  /** Checks that everything is present and nothing else, whatever the timestamps say. */
  changedAtAll(): readonly string[] {
    const there = ['outside', `root/${NEIGHBOUR}`].flatMap((folder) => [
      folder,
      ...namesBelow(join(this.#base, folder)).map((name) => join(folder, name)),
    ]);
    const strange = there.filter((path) => !this.#looks.has(path));
    return [...this.#changedOf([...this.#looks.keys()]), ...strange];
  }

  /** Names of the linked file that are neither outside nor in the sandbox. */
  strayLinks(): number {
    const { ino, nlink } = lstatSync(this.linked);
    const root = join(this.#base, 'root');
    const inside = namesBelow(root)
      .map((name) => lstatSync(join(root, name)))
      .filter((stats) => stats.ino === ino);
    return nlink - 1 - inside.length;
  }

  /** Restores everything: the control is expected to change it. */
  restore(): void {
    for (const folder of ['outside', `root/${NEIGHBOUR}`]) {
      rmSync(join(this.#base, folder), { recursive: true, force: true });
    }
    for (const folder of FOLDERS) mkdirSync(join(this.#base, folder), { recursive: true });
    for (const file of FILES) writeFileSync(join(this.#base, file), BEYOND);
    truncateSync(join(this.#base, GIANT), GIANT_BYTES);
    const paths = [...FILES, ...FOLDERS];
    for (const path of paths) utimesSync(join(this.#base, path), LONG_AGO, LONG_AGO);
    this.#looks = new Map(paths.map((path) => [path, this.#look(path)]));
    this.#inodes = new Set(paths.map((path) => String(lstatSync(join(this.#base, path), { bigint: true }).ino)));
  }

  #look(path: string): string {
    const stats = lstatSync(join(this.#base, path), { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) return 'gone';
    // The attacker links to this one arbitrarily.
    const nlink = path === LINKED ? '' : stats.nlink;
    return [stats.ino, stats.mode, stats.size, stats.mtimeNs, nlink].join(' ');
  }
}
