// The build that examples run on: made when a source is newer, and by one worker at a time.

import { mkdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { sha256 } from '../../src/contract/hash.js';
import { ROOT } from '../sources.js';

const LOCK = join(tmpdir(), `turnpike-build-${sha256(ROOT).slice(0, 16)}`);
/** A build takes far less; whoever held the lock longer is dead. */
const LOCK_MS_MAX = 240_000;

/** Makes sure that `dist` is the build of the present sources. */
export async function built(): Promise<void> {
  const { buildIfNeeded } = await example<{ buildIfNeeded: (say: (line: string) => void) => unknown }>(
    'demo/build.mjs',
  );
  while (!isTaken()) await pause(200);
  try {
    buildIfNeeded(() => undefined);
  } finally {
    rmSync(LOCK, { recursive: true, force: true });
  }
}

/** A module of the examples, which are plain JavaScript. */
export const example = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(join(ROOT, 'docs/examples', name)).href)) as T;

function isTaken(): boolean {
  try {
    mkdirSync(LOCK);
    return true;
  } catch {
    const held = statSync(LOCK, { throwIfNoEntry: false });
    if (held !== undefined && Date.now() - held.mtimeMs > LOCK_MS_MAX) rmSync(LOCK, { recursive: true, force: true });
    return false;
  }
}
