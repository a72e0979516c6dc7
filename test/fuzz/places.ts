// Paths that work from the sources and from the compiled campaign.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project: the nearest parent that is a package. */
export const ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

function rootAbove(folder: string): string {
  if (existsSync(join(folder, 'package.json'))) return folder;
  if (dirname(folder) === folder) throw new Error('the campaign does not lie in the project');
  return rootAbove(dirname(folder));
}

const SUITES = process.env['TURNPIKE_SUITES'] ?? join(ROOT, '../shared/suites');

/** The folder of one external suite, or null if it is not installed. */
export function suiteFolder(name: string): string | null {
  const folder = join(SUITES, name);
  return existsSync(folder) ? folder : null;
}

export const FAILURES = join(ROOT, 'test/fuzz/failures');

export interface Fixture {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * Every payload that has ever shown a violation, or is known to break other parsers. They run before generated ones.
 */
export const fixtures = (kind: 'payloads' | 'policies'): readonly Fixture[] =>
  readdirSync(join(FAILURES, kind))
    .sort()
    .map((name) => ({ name, bytes: new Uint8Array(readFileSync(join(FAILURES, kind, name))) }));
