// Before the suites, once: the programs that they start many times become one file each, which Node loads in a fraction
// of the time.

import { build } from 'esbuild';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleHook } from '../../tools/build/bundle-hook.mjs';
import { makeTempFolders } from './temp.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A module of a package that asks for `require` has it. */
const REQUIRE = { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" };

export default async function bundlePrograms() {
  makeTempFolders();
  // As in main.ts. The processes of jest load SQLite with it.
  process.env.SQLITE_USE_URI = '1';
  const hook = await bundleHook();
  if (hook !== null) replaceChanged(join(ROOT, 'dist/hook.mjs'), hook);
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['test/fixtures/upstream-spy.mjs'],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    banner: REQUIRE,
    write: false,
  });
  replaceChanged(join(ROOT, 'build/programs/upstream-spy.js'), outputFiles[0].text);
}

/** Another run of tests may be reading it. */
function replaceChanged(path, text) {
  if (textOf(path) === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, text);
  renameSync(`${path}.${process.pid}`, path);
}

function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
