// The build for the examples: made if a source is newer, and by one worker at a time.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { oneAtATime } from '../fixtures/one-at-a-time.js';
import { ROOT } from '../sources.js';

/** Makes sure that `dist` is the build of the current sources. */
export async function built(): Promise<void> {
  const { buildIfNeeded } = await example<{ buildIfNeeded: (say: (line: string) => void) => unknown }>(
    'demo/build.mjs',
  );
  await oneAtATime('build', () => buildIfNeeded(() => undefined));
}

/** A module of the examples, which are plain JavaScript. */
export const example = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(join(ROOT, 'docs/examples', name)).href)) as T;
