import { closeSync, constants, openSync } from 'node:fs';
import { OPEN_PATH_FLAGS } from './sandbox-walk.js';

/** Maximum number of directories of one case that stay open between steps. */
const PARENTS_MAX = 4;

/**
 * Directories of one case that stay open between its steps, by their path below its root. The caller verifies each time
 * where the directory is, and drops it if it is elsewhere.
 */
export class OpenParents {
  /** In the order of opening. */
  readonly #descriptors = new Map<string, number>();

  /** @param rootPath the path of the open root @returns the open directory @throws an errno error */
  open(rootPath: string, parent: string): number {
    const known = this.#descriptors.get(parent);
    if (known !== undefined) return known;
    const [oldest] = this.#descriptors.keys();
    if (this.#descriptors.size >= PARENTS_MAX && oldest !== undefined) this.drop(oldest);
    const fd = openSync(`${rootPath}/${parent}`, OPEN_PATH_FLAGS | constants.O_DIRECTORY);
    this.#descriptors.set(parent, fd);
    return fd;
  }

  drop(parent: string): void {
    const fd = this.#descriptors.get(parent);
    if (fd === undefined) return;
    this.#descriptors.delete(parent);
    closeSync(fd);
  }

  close(): void {
    for (const parent of [...this.#descriptors.keys()]) this.drop(parent);
  }
}
