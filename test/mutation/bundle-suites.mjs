// Bundles suites and the sources that they import into one file, which `SuiteHost` evaluates. Packages stay outside.

import { build, transform } from 'esbuild';
import { readFile, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';

/** In the bundle a module's own URL has to be that of its source: fixtures look for files beside them. */
const ownUrls = {
  name: 'own-urls',
  setup(builder) {
    builder.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const url = JSON.stringify(pathToFileURL(path).href);
      return { contents: source.replaceAll('import.meta.url', url), loader: 'ts' };
    });
  },
};

/**
 * Bundles `suites`, paths relative to `root`, into `outfile`, a CommonJS module. Only the other format may have modules
 * that await at their top level; each of these becomes an async function of the bundle, so the result awaits nowhere.
 */
export async function bundleSuites(root, suites, outfile) {
  const entries = suites.map((path) => `${JSON.stringify(path)}: () => import(${JSON.stringify(`./${path}`)}),`);
  const { outputFiles } = await build({
    stdin: { contents: `export const suites = {\n${entries.join('\n')}\n};`, resolveDir: root, loader: 'ts' },
    write: false,
    bundle: true,
    // Some fixtures are imported for what they do, which `sideEffects` of package.json denies.
    ignoreAnnotations: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: false,
    logLevel: 'error',
    plugins: [ownUrls],
  });
  const { code } = await transform(outputFiles[0].text, { format: 'cjs', target: 'node20', logLevel: 'error' });
  await writeFile(outfile, code);
}
