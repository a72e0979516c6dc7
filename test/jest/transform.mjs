// Turns one TypeScript file into JavaScript for jest: types are removed, nothing is checked (`npm run typecheck` does).
// esbuild takes a tenth of the time that TypeScript's own compiler takes, and the compiler need not be loaded by each
// of jest's processes.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync, version } from 'esbuild';

const OPTIONS = {
  loader: 'ts',
  format: 'esm',
  target: 'node20',
  sourcemap: 'external',
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
};
const OWN_TEXT = readFileSync(fileURLToPath(import.meta.url), 'utf8');

export default {
  // jest reads the map where an error's stack is shown. In the code, V8 and jest would read it for every suite.
  process: (source, path) => transformSync(source, { ...OPTIONS, sourcefile: path }),
  getCacheKey: (source, path) =>
    createHash('sha256').update([version, OWN_TEXT, path, source].join('\0')).digest('hex'),
};
