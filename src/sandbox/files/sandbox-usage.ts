import { lstatSync } from 'node:fs';
import { readEntries, errnoOf, withHandle, type SandboxRoot, type PathHandle } from './sandbox-walk.js';

/** The usage of a sandbox: bytes of its files, and the number of files and directories. */
export interface Usage {
  readonly bytes: number;
  readonly files: number;
}

/**
 * No agent can name anything deeper, because a path has at most 1,024 bytes. The limit keeps a deep tree that another
 * program created from using up the descriptors.
 */
const DEPTH_MAX = 512;

/**
 * The usage that the quota of one case is checked against. The first request scans the sandbox; then the changes made
 * here update it. Changes by other programs are seen at the next scan.
 */
export class SandboxUsage {
  #known: Usage | null = null;

  /** @throws an errno error if the sandbox could not be scanned */
  measure(sandbox: SandboxRoot): Usage {
    this.#known ??= scan(sandbox, sandbox.root, 1);
    return this.#known;
  }

  /** Adds a change that has happened. */
  add(change: Usage): void {
    if (this.#known === null) return;
    const bytes = this.#known.bytes + change.bytes;
    const files = this.#known.files + change.files;
    // Below zero, another program has changed the sandbox too: the cached usage is invalid.
    this.#known = bytes < 0 || files < 0 ? null : { bytes, files };
  }

  /** After a change with an unknown outcome, or by a command: the next `measure` scans again. */
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
  // After the listing is closed, so that only one descriptor for each level is open.
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
    // It was removed in the meantime.
    if (errnoOf(error) === 'ENOENT') return nothing;
    throw error;
  }
}

function fileBytes(path: string): number {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true ? stats.size : 0;
}
