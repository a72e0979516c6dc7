// Bundles suites and the sources that they import into one file, which `SuiteHost` evaluates. Packages stay outside.

import { build } from 'esbuild';
import { readFile } from 'node:fs/promises';
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

/** Bundles `suites`, paths relative to `root`, into `outfile`. */
export async function bundleSuites(root, suites, outfile) {
  const entries = suites.map((path) => `${JSON.stringify(path)}: () => import(${JSON.stringify(`./${path}`)}),`);
  await build({
    stdin: { contents: `export const suites = {\n${entries.join('\n')}\n};`, resolveDir: root, loader: 'ts' },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    packages: 'external',
    sourcemap: false,
    logLevel: 'error',
    plugins: [ownUrls],
  });
}
