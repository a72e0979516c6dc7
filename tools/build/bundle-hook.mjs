// The hook program as one file without imports, so that it can be copied out of the package. The suites make it too.

import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Each build of the same sources has the same bytes: their hash is compared when a session begins. */
export async function bundleHook() {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/interfaces/cli/hook/hook-program.ts'],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    lineLimit: 160,
    write: false,
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}
