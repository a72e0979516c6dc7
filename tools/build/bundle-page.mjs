// The inspector's page, built into dist/inspector: files that a service gives as they are, and a template of one single
// file, into which a ledger is written so that it opens with no service.

import { build } from 'vite';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const HERE = fileURLToPath(new URL('../..', import.meta.url));
const ROOT = join(HERE, 'src/interfaces/inspector/page');
const OUT = resolve(HERE, process.argv[2] ?? 'dist/inspector');
/** What a first visit of one page may cost: every file that it loads, compressed. */
const GZIP_BYTES_MAX = 66_500;

// Else what is built tells the file and line of every element, in a tree that its reader has not.
process.env.NODE_ENV = 'production';

const settings = {
  mode: 'production',
  configFile: false,
  root: ROOT,
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact', development: false } },
};
const output = {
  outDir: OUT,
  emptyOutDir: true,
  target: 'es2023',
  assetsInlineLimit: 0,
  cssCodeSplit: false,
  modulePreload: { polyfill: false },
  reportCompressedSize: false,
};

const PAGES = ['index.html', 'approvals.html'];
await build({
  ...settings,
  worker: { format: 'es' },
  build: { ...output, rollupOptions: { input: PAGES.map((name) => join(ROOT, name)) } },
});
await oneFile();
tellSize();

/** The same page in one file. Its policy lets in exactly this script and this style, and no address at all. */
async function oneFile() {
  const folder = join(OUT, 'one');
  const entry = { entry: join(ROOT, 'one-file.tsx'), formats: ['iife'], name: 'inspector', fileName: () => 'page.js' };
  await build({
    ...settings,
    publicDir: false,
    define: { 'process.env.NODE_ENV': '"production"' },
    build: { ...output, outDir: folder, lib: entry },
  });
  const script = readFileSync(join(folder, 'page.js'), 'utf8').trim().replaceAll('</script', '<\\/script');
  const assets = join(OUT, 'assets');
  const style = readFileSync(
    join(
      assets,
      readdirSync(assets).find((name) => name.endsWith('.css')),
    ),
    'utf8',
  ).trim();
  rmSync(folder, { recursive: true });
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join('; ');
  const lines = [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<title>Turnpike · State inspector</title>',
    `<style>${style}</style>`,
    '</head>',
    '<body>',
    '<div id="page"></div>',
    '<script type="application/json" id="turnpike-data"></script>',
    `<script>${script}</script>`,
    '</body>',
    '</html>',
    '',
  ];
  writeFileSync(join(OUT, 'one-file.html'), lines.join('\n'));
}

function tellSize() {
  const assets = readdirSync(join(OUT, 'assets'));
  for (const page of PAGES) {
    const files = [page, ...loadedBy(readFileSync(join(OUT, page), 'utf8'), assets)];
    const sizes = files.map((name) => gzipSync(readFileSync(join(OUT, name)), { level: 9 }).length);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    console.log(`${page}: ${files.map((name, at) => `${name} ${sizes[at]}`).join(', ')}; ${bytes} bytes compressed`);
    if (bytes > GZIP_BYTES_MAX) throw new Error(`${page} has ${bytes} bytes, ${GZIP_BYTES_MAX} are allowed`);
  }
}

/** The assets that a page names, and those that they name. */
function loadedBy(text, assets, found = new Set()) {
  for (const name of assets) {
    if (!text.includes(name) || found.has(`assets/${name}`)) continue;
    found.add(`assets/${name}`);
    loadedBy(readFileSync(join(OUT, 'assets', name), 'utf8'), assets, found);
  }
  return found;
}
