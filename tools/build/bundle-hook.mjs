// The hook program as one file without imports, so that it can be copied out of the package. The suites make it too.

import { build } from 'esbuild';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const PROGRAM = 'src/features/hooks/commands/program/hook-program.ts';

/**
 * Each build of the same sources has the same bytes: their hash is compared when a session begins. Null without the
 * feature.
 */
export async function bundleHook() {
  if (!existsSync(join(ROOT, PROGRAM))) return null;
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [PROGRAM],
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
