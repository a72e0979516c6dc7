// test/where-tested.json names for each source file the suites that test it: its namesake, or the nearest suites that
// import it. With TURNPIKE_WRITE_WHERE_TESTED=1 the table is written anew.

import { expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesIn, ROOT, targetOf, textOf } from './sources.js';

const TABLE = 'test/where-tested.json';
/** How many suites the table names for a file without a namesake. */
const SUITES_MAX = 3;
const SUITE = /(?:\.test|\.contract|\.conformance)\.ts$/;

/** Files that no suite imports, since a test starts them as programs or loads them into a browser. */
const STARTED: Readonly<Record<string, string>> = {
  'src/features/hooks/commands/program/': 'test/features/hooks/gate/hook-program.test.ts',
  'src/interfaces/cli/': 'test/e2e/cli.campaign.test.ts',
  'src/features/hooks/page/': 'test/interfaces/inspector/page/chromium/coding-agent.campaign.test.ts',
  'src/features/sessions/page/': 'test/interfaces/inspector/page/chromium/views.campaign.test.ts',
  'src/features/feature-panels.ts': 'test/interfaces/inspector/page/chromium/views.campaign.test.ts',
  'src/interfaces/inspector/page/': 'test/interfaces/inspector/page/chromium/views.campaign.test.ts',
  'src/interfaces/inspector/xstate/': 'test/interfaces/inspector/layout-worker.campaign.test.ts',
};

const SOURCES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
const TESTS = filesIn('test', /\.ts$/);
const SUITES = TESTS.filter((path) => SUITE.test(path));
const FILES = new Set([...SOURCES, ...TESTS]);

const IMPORTS = new Map(
  [...FILES].map((path) => {
    // Of so many files only what they import is wanted: nothing is parsed for it.
    const targets = ts
      .preProcessFile(textOf(path), true, false)
      .importedFiles.map((one) => targetOf(path, one.fileName));
    return [path, targets.filter((target): target is string => target !== null && FILES.has(target))] as const;
  }),
);

/** The files that import a file. */
const IMPORTERS = new Map<string, string[]>();
for (const [from, targets] of IMPORTS) {
  for (const to of new Set(targets)) IMPORTERS.set(to, [...(IMPORTERS.get(to) ?? []), from]);
}

/** The suites that stand in `test` where the file stands in `src`. */
function namesakesOf(path: string): readonly string[] {
  const name = join('test', path.replace(/^src\//, '').replace(/\.tsx?$/, ''));
  return SUITES.filter(
    (suite) => suite.replace(/(?:\.campaign)?(?:\.test|\.contract|\.conformance)\.ts$/, '') === name,
  );
}

/** The suites with the fewest imports between them and the file. */
function nearestSuites(path: string): readonly string[] {
  const seen = new Set([path]);
  let files: readonly string[] = [path];
  while (files.length > 0) {
    files = [...new Set(files.flatMap((file) => IMPORTERS.get(file) ?? []))].filter((file) => !seen.has(file));
    for (const file of files) seen.add(file);
    const suites = files.filter((file) => SUITE.test(file)).sort();
    if (suites.length > 0) return suites.slice(0, SUITES_MAX);
  }
  const prefix = Object.keys(STARTED).find((folder) => path.startsWith(folder));
  return prefix === undefined ? [] : [STARTED[prefix] ?? ''];
}

/** Whether a suite imports a file, directly or through others. */
function reaches(suite: string, path: string): boolean {
  const seen = new Set([suite]);
  for (const file of seen) for (const target of IMPORTS.get(file) ?? []) seen.add(target);
  return seen.has(path);
}

if (process.env['TURNPIKE_WRITE_WHERE_TESTED'] === '1') {
  const rows = SOURCES.map((path) => {
    const namesakes = namesakesOf(path);
    return [path, namesakes.length > 0 ? namesakes : nearestSuites(path)] as const;
  });
  const lines = rows.map(([path, suites]) => `  ${JSON.stringify(path)}: [${suites.map(quote).join(', ')}]`);
  writeFileSync(join(ROOT, TABLE), `{\n${lines.join(',\n')}\n}\n`);
}

const table = JSON.parse(textOf(TABLE)) as Record<string, readonly string[]>;

test('the table names at least one suite for each source file, and no other file', () => {
  expect(Object.keys(table)).toEqual(SOURCES);
  expect(SOURCES.filter((path) => table[path]?.length === 0)).toEqual([]);
});

test('a file with a namesake is tested there; every other suite imports the file or starts it', () => {
  const wrong = SOURCES.filter((path) => {
    const suites = table[path] ?? [];
    const namesakes = namesakesOf(path);
    if (namesakes.length > 0) return !namesakes.every((suite) => suites.includes(suite));
    const started = Object.entries(STARTED).filter(([folder]) => path.startsWith(folder));
    return !suites.every((suite) => started.some(([, own]) => own === suite) || reaches(suite, path));
  });
  expect(wrong).toEqual([]);
});

function quote(path: string): string {
  return JSON.stringify(path);
}
