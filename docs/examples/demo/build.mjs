// Builds the package when there is no build yet, or when a source is newer than it.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const BUILT = join(ROOT, 'dist/src/index.js');
const COMPILER = join(ROOT, 'node_modules/typescript/bin/tsc');

/** @returns how long the build took in milliseconds, or null when there was nothing to build */
export function buildIfNeeded(say) {
  if (existsSync(BUILT) && newestOf(['machines', 'src']) < statSync(BUILT).mtimeMs) return null;
  say('building (once, and again when a source has changed) ...');
  const began = Date.now();
  if (!existsSync(COMPILER)) throw new Error('the TypeScript compiler is not installed: run `npm ci` first');
  const { status, stdout } = spawnSync(process.execPath, [COMPILER, '-p', 'tsconfig.build.json', '--noEmitOnError'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the build failed:\n${stdout}`);
  for (const step of ['tools/build/bundle.mjs', 'tools/build/help.mjs', 'tools/build/charts.mjs']) {
    const done = spawnSync(process.execPath, [step], { cwd: ROOT, encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`${step} failed:\n${done.stderr}`);
  }
  return Date.now() - began;
}

function newestOf(folders) {
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(ROOT, folder, name)),
  );
  return Math.max(...files.map((file) => statSync(file).mtimeMs));
}
