// Before the suites, once: the packages that consist of many hundred files, each put into one or a few. jest reads,
// links and runs every file anew for every suite, which took a third of a second for typebox alone.

import { build } from 'esbuild';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeTempFolders } from './jest.temp.mjs';

const ROOT = dirname(fileURLToPath(import.meta.url));
const OUT = join(ROOT, 'build/packages');

/** A module of a package that asks for `require` has it. */
const REQUIRE = { js: "import { createRequire } from 'node:module';const require = createRequire(import.meta.url);" };

/** The configuration's `moduleNameMapper` leads to what is made here. */
export default async function bundlePackages() {
  makeTempFolders();
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'node_modules/typebox/package.json'), 'utf8'));
  const places = Object.keys(exports).map((path) => join('typebox', path));
  await bundle({ format: 'esm', splitting: true, entryPoints: named(places) });
  // Sources require it.
  const required = named(['kysely', 'libphonenumber-js']);
  await bundle({ format: 'cjs', entryPoints: required, outExtension: { '.js': '.cjs' } });
  // Tests start it fifty times.
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
  for (const { path, text } of outputFiles) if (textOf(path) !== text) replace(path, text);
}

/** Another run of tests may be reading it. */
function replace(path, text) {
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
