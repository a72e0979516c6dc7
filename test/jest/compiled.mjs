// JavaScript of a TypeScript file: types are removed, nothing is checked (`npm run typecheck` does). What a text was
// compiled to is kept in `build/suites`, under the hash of the text.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transformSync, version } from 'esbuild';

const FOLDER = fileURLToPath(new URL('../../build/suites', import.meta.url));
const OPTIONS = {
  format: 'esm',
  target: 'node20',
  sourcemap: 'external',
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, jsx: 'react-jsx' } },
};

export function compiledText(path) {
  const source = readFileSync(path, 'utf8');
  const place = placeOf(path, source);
  if (!existsSync(place)) {
    const { code, map } = transformSync(source, {
      ...OPTIONS,
      loader: path.endsWith('x') ? 'tsx' : 'ts',
      sourcefile: path,
    });
    mkdirSync(FOLDER, { recursive: true });
    replace(`${place}.map`, map);
    replace(place, code);
  }
  return readFileSync(place, 'utf8');
}

/** The file with the source map of one. @returns undefined for what was not compiled */
export function mapOf(url) {
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  if (!/\.tsx?$/.test(path) || !existsSync(path)) return undefined;
  const map = `${placeOf(path, readFileSync(path, 'utf8'))}.map`;
  return existsSync(map) ? map : undefined;
}

const placeOf = (path, source) =>
  join(
    FOLDER,
    createHash('sha256')
      .update([version, JSON.stringify(OPTIONS), path, source].join('\0'))
      .digest('hex'),
  );

/** Another process may be reading it. */
function replace(path, text) {
  writeFileSync(`${path}.${process.pid}`, text);
  renameSync(`${path}.${process.pid}`, path);
}
