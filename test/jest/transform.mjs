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

/** The registry of features. The modules that await what it imports are evaluated at the same time. */
const REGISTRY = /[\\/]src[\\/]features[\\/]declare-features\.ts$/;

/** Imports one module after the other: jest fails to link two graphs at once that share a module. */
const inOrder = (source) =>
  `${source.replaceAll(/\bimport\(('[^']+')\)/g, '_inOrder(() => import($1))')}
let _last = Promise.resolve();
const _inOrder = (load) => (_last = _last.then(load, load));`;

export default {
  // jest reads the map where an error's stack is shown. In the code, V8 and jest would read it for every suite.
  process: (source, path) =>
    transformSync(REGISTRY.test(path) ? inOrder(source) : source, { ...OPTIONS, sourcefile: path }),
  getCacheKey: (source, path) =>
    createHash('sha256').update([version, OWN_TEXT, path, source].join('\0')).digest('hex'),
};
