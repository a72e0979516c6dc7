// Before the suites, once: what keeps jest from reading, linking and running every file of a package anew for every
// suite, which took a third of a second for typebox alone. Packages that are modules of many hundred files are put into
// a few. Others are loaded outside of the suites, once by each of jest's processes.

import { build } from 'esbuild';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleHook } from '../../tools/build/bundle-hook.mjs';
import { makeTempFolders } from './temp.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'build/packages');

/** A module of a package that asks for `require` has it. */
const REQUIRE = { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" };

/** Packages that are loaded outside of the suites: their objects are those of Node, and no suite may change them. */
const SHARED = ['kysely', 'libphonenumber-js', 'pg', 'typescript', 'winston', 'yaml'];

/** jest finds the names that a file exports in the text of the file. */
function sharedText(name) {
  const names = Object.keys(createRequire(import.meta.url)(name));
  return [
    `const shared = requireOutside('${name}');`,
    ...names.map((key) => `exports.${key} = shared.${key};`),
    '',
  ].join('\n');
}

/** The configuration's `moduleNameMapper` leads to what is made here. */
export default async function bundlePackages() {
  makeTempFolders();
  // As in main.ts. The processes of jest load SQLite with it.
  process.env.SQLITE_USE_URI = '1';
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'node_modules/typebox/package.json'), 'utf8'));
  const places = Object.keys(exports).map((path) => join('typebox', path));
  await bundle({ format: 'esm', splitting: true, entryPoints: named(places) });
  for (const name of SHARED) replaceChanged(join(OUT, 'shared', `${name}.cjs`), sharedText(name));
  const hook = await bundleHook();
  // Tests start it fifty times.
  if (hook !== null) replaceChanged(join(ROOT, 'dist/hook.mjs'), hook);
  await bundle({ format: 'esm', entryPoints: { 'upstream-spy': 'test/fixtures/upstream-spy.mjs' }, banner: REQUIRE });
}

const named = (places) =>
  Object.fromEntries(places.map((place) => [place === 'typebox' ? 'typebox/index' : place, place]));

async function bundle(options) {
  const { outputFiles } = await build({
    ...options,
    absWorkingDir: ROOT,
    bundle: true,
    outdir: OUT,
    platform: 'node',
    target: 'node20',
    write: false,
    logLevel: 'warning',
  });
  for (const { path, text } of outputFiles) replaceChanged(path, text);
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
