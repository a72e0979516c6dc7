// Lets Node run the sources: its hooks find the TypeScript file of an import, remove the types, and report each file
// that is loaded to the port of `register`. Nothing is checked (`npm run typecheck` does).

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';

/** As in tsconfig.json: an import without `type` loads its module, also where only a type of it is used. */
const OPTIONS = {
  loader: 'ts',
  format: 'esm',
  target: 'node20',
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
};
let port;

export function initialize(data) {
  port = data.port;
}

export const resolve = (specifier, context, next) =>
  /^\.{1,2}\//.test(specifier) && context.parentURL?.endsWith('.ts')
    ? next(specifier.replace(/\.js$/, '.ts'), context)
    : next(specifier, context);

export function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  port.postMessage(url);
  const { code } = transformSync(readFileSync(fileURLToPath(url), 'utf8'), OPTIONS);
  return { format: 'module', source: code, shortCircuit: true };
}
