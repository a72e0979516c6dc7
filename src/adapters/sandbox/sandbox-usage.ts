import { lstatSync } from 'node:fs';
import { readEntries, errnoOf, withHandle, type SandboxRoot, type PathHandle } from './sandbox-walk.js';

/** How much a sandbox holds: bytes of its files, and how many files and directories there are. */
export interface Usage {
  readonly bytes: number;
  readonly files: number;
}

/**
 * Nobody can name anything deeper: a path has 1,024 bytes at most. The bound keeps a tree that was put there from
 * outside from using up the descriptors.
 */
const DEPTH_MAX = 512;

/**
 * What the quota of one case is measured by. Counted by one scan when it is first asked for, then kept up to date
 * by the changes made here. Changes made from outside are seen at the next scan.
 */
export class SandboxUsage {
  #known: Usage | null = null;

  /** @throws an errno error if the sandbox could not be scanned */
  measure(sandbox: SandboxRoot): Usage {
    this.#known ??= scan(sandbox, sandbox.root, 1);
    return this.#known;
  }

  /** Takes note of a change that has happened. */
  add(change: Usage): void {
    if (this.#known === null) return;
    const bytes = this.#known.bytes + change.bytes;
    const files = this.#known.files + change.files;
    // Below zero, somebody else changed the sandbox too: what was known is void.
    this.#known = bytes < 0 || files < 0 ? null : { bytes, files };
  }

  /** After a change of unknown outcome, or by a command: the next measure scans again. */
  forget(): void {
    this.#known = null;
  }
}

function scan(sandbox: SandboxRoot, directory: PathHandle, depth: number): Usage {
  const directories: string[] = [];
  let bytes = 0;
  let files = 0;
  for (const entry of readEntries(directory)) {
    const path = `${directory.path}/${entry.name}`;
    files += 1;
    if (entry.isDirectory()) directories.push(path);
    else bytes += fileBytes(path);
  }
  // After the listing is closed, so that one descriptor a level is held.
  for (const path of directories) {
    const inside = scanBelow(sandbox, path, depth);
    bytes += inside.bytes;
    files += inside.files;
  }
  return { bytes, files };
}

function scanBelow(sandbox: SandboxRoot, path: string, depth: number): Usage {
  const nothing = { bytes: 0, files: 0 };
  if (depth >= DEPTH_MAX) return nothing;
  try {
    return withHandle(sandbox, path, (handle, fact) =>
      fact.status === 'directory' ? scan(sandbox, handle, depth + 1) : nothing,
    );
  } catch (error) {
    // It went away meanwhile.
    if (errnoOf(error) === 'ENOENT') return nothing;
    throw error;
  }
}

function fileBytes(path: string): number {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}
