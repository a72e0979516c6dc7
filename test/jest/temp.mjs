// Each run of the tests has temporary folders of its own, so that runs do not disturb each other, and what a run leaves
// behind can be seen: on the disk, and in memory where the machine has room there.

import { accessSync, chmodSync, constants, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 1_073_741_824;

/** Caches of Node and of packages, which are no test's. */
const CACHES = /^(?:node-compile-cache|v8-compile-cache-\d+|node-jiti|esbuild-\w+)$/;

let folders = [];

/** Processes that are started from now on have these folders. Short names: a socket's path has at most 107 bytes. */
export function makeTempFolders() {
  if (folders.length > 0) return;
  const disk = mkdtempSync(join(tmpdir(), 'tests-'));
  const memory = hasMemory() ? mkdtempSync(join(MEMORY, 'tests-')) : null;
  folders = memory === null ? [disk] : [disk, memory];
  // A PostgreSQL server that root starts runs as another user, who has to reach its own folder in here.
  for (const folder of folders) chmodSync(folder, 0o711);
  // A run that is ended in between comes to no teardown.
  process.once('exit', removeTempFolders);
  process.env.TMPDIR = disk;
  process.env.TURNPIKE_TEST_MEMORY = memory ?? '';
}

/** Removes them. @returns what was left in them, by name */
export function removeTempFolders() {
  const left = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  return left.filter((path) => !CACHES.test(path.slice(path.lastIndexOf('/') + 1)));
}

function hasMemory() {
  try {
    accessSync(MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_BYTES_MIN;
  } catch {
    return false;
  }
}
