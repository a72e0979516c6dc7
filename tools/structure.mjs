// Prints the size of each layer and feature, and what files import, directly and through others:
// `npm run structure`, or `npm run structure -- FILE...` for the files that a reader starts from.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STARTS = {
  'the kernel': ['src/kernel/tree.ts'],
  'an engine on SQLite': ['src/engine/embedded.ts', 'src/stores/sqlite/sqlite-ledger-store.ts'],
  'the public object': ['src/host/turnpike.ts'],
};

const files = ['machines', 'src'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
);
const texts = new Map(files.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
const linesOf = (path) => texts.get(path).split('\n').length - 1;
const sumOf = (paths) => [...paths].reduce((sum, path) => sum + linesOf(path), 0);

/** The files of ours that a file imports; types count. */
function importsOf(path) {
  const names = [...texts.get(path).matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, name]) => name);
  return names.flatMap((name) => {
    const target = normalize(join(dirname(path), name.replace(/\?.*$/, '')));
    return [target.replace(/\.js$/, '.ts'), target.replace(/\.js$/, '.tsx')].filter((each) => texts.has(each));
  });
}

/** The files that can be reached by imports from these. */
function closureOf(starts) {
  const seen = new Set();
  const open = [...starts];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    open.push(...importsOf(path));
  }
  return seen;
}

/** A folder of machines, src or features. */
function partOf(path) {
  const [top, second, third] = path.split('/');
  if (top !== 'src') return top;
  return second === 'features' ? `src/features/${third}` : `src/${second}`;
}

function printParts(paths) {
  const parts = Map.groupBy?.(paths, partOf) ?? groupBy(paths, partOf);
  for (const [part, own] of [...parts].sort(([, a], [, b]) => sumOf(b) - sumOf(a)))
    console.log(`${String(sumOf(own)).padStart(8)} lines ${String(own.length).padStart(5)} files  ${part}`);
}

// Node 20 has no Map.groupBy.
function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

const given = process.argv.slice(2);
const missing = given.filter((path) => !existsSync(join(ROOT, path)));
if (missing.length > 0) {
  console.error(`no such file: ${missing.join(', ')}; name files from the root of the repository`);
  process.exitCode = 1;
} else if (given.length > 0) {
  const closure = closureOf(given);
  console.log(`${closure.size} files, ${sumOf(closure)} lines`);
  printParts([...closure]);
} else {
  console.log(`all sources: ${files.length} files, ${sumOf(files)} lines`);
  printParts(files);
  for (const [name, starts] of Object.entries(STARTS)) {
    const closure = closureOf(starts);
    console.log(`\n${name} (${starts.join(', ')}) imports ${closure.size} files, ${sumOf(closure)} lines`);
  }
}
