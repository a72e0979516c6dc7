// The command in one file, as the last step of the build: to find and load a thousand takes a process three times as
// long as all that most commands then do. The library stays as it was compiled.

import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const COMMAND = 'dist/src/cli/main.js';

/** CommonJS in a file of ES modules finds by this what it requires. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

await build({
  absWorkingDir: fileURLToPath(new URL('.', import.meta.url)),
  entryPoints: [COMMAND],
  outfile: COMMAND,
  allowOverwrite: true,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Errors are known by the names of their classes.
  keepNames: true,
  // Native, or not installed with the package.
  external: ['better-sqlite3', 'pg', 'ai'],
  banner: { js: REQUIRE },
  logLevel: 'warning',
});
