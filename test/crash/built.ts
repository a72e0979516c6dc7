// The victims for the tests: processes that are killed are plain Node programs. Each is put into one file with all that
// it imports, because an enumeration starts one process per moment, and to load 900 files took most of each life. What
// the campaign runs (`npm run crash`) is compiled file by file, as the package is.

import { build } from 'esbuild';
import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../sources.js';

/** CommonJS in a file of ES modules: it finds what it requires by this. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/** Puts the victims of the present sources into `folder`. @returns the path of the first of them in it */
export async function builtVictim(folder: string): Promise<string> {
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['victim', 'effects-victim'].map((name) => `test/crash/${name}.ts`),
    outdir: join(folder, 'build/test/crash'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Native, or not installed with the package.
    external: ['better-sqlite3', 'pg', 'ai'],
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  for (const part of ['policies', 'package.json']) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'build/test/crash/victim.js');
}
