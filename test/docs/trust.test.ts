// docs/trust.md: every line of the threat model names an existing test, and every right of a token has its lines.

import { expect, test } from '@jest/globals';
import { RIGHTS } from '../../src/core/contract/token.js';
import { filesIn, textOf } from '../sources.js';

/** The sections of the threat model, which ends where the list of components begins. */
const [MODEL = ''] = textOf('docs/trust.md').split('\n## Who is trusted with what');
const SECTIONS = MODEL.split('\n## ').slice(1);

const linesOf = (section: string): readonly string[] =>
  section.split('\n').filter((line) => line.startsWith('|') && !/^\|\s*(\||-)/.test(line));

const TESTS = filesIn('test', /\.test\.ts$/);
const isUnproven = (line: string): boolean => {
  const tests = [...line.matchAll(/\]\(\.\.\/(test\/[^)]*)\)/g)].map(([, path = '']) => path);
  return tests.length === 0 || tests.some((path) => !TESTS.includes(path));
};

test('every right of a token has lines of what it can and cannot do', () => {
  const lines = linesOf(SECTIONS.find((section) => section.startsWith('A caller with a token\n')) ?? '');
  for (const right of RIGHTS) {
    expect(lines.filter((line) => line.startsWith(`| \`${right}\` can `))).not.toEqual([]);
    expect(lines.filter((line) => line.startsWith(`| \`${right}\` cannot `))).not.toEqual([]);
  }
});

test('every line of the threat model names existing tests', () => {
  expect(SECTIONS.flatMap(linesOf).filter(isUnproven)).toEqual([]);
});

test('every table of the database names the existing tests that show what its writer can do', () => {
  const [, tables = ''] = textOf('docs/trust.md').split('\n### The tables of the database');
  const [section = ''] = tables.split('\n### ');
  const [, ...lines] = linesOf(section);
  expect(lines.length).toBeGreaterThan(8);
  expect(lines.filter(isUnproven)).toEqual([]);
});

/** The lines of one part of the list of components. */
const partOf = (title: string): readonly string[] => {
  const [, rest = ''] = textOf('docs/trust.md').split(`\n### ${title}\n`);
  const [part = ''] = rest.split('\n### ');
  return linesOf(part).slice(1);
};

test.each(['The entrances', 'The files of a home'])('every line of "%s" names existing tests', (title) => {
  expect(partOf(title).length).toBeGreaterThan(8);
  expect(partOf(title).filter(isUnproven)).toEqual([]);
});

const namesIn = (lines: readonly string[]): ReadonlySet<string> =>
  new Set(lines.flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)));

test('every table of each store has a line', () => {
  const tables = filesIn('src/stores', /\.ts$/).flatMap((path) =>
    [...textOf(path).matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(\w+)/g)].map(([, name = '']) => name),
  );
  const named = namesIn(partOf('The tables of the database'));
  expect([...new Set(tables)].filter((name) => !named.has(name)).sort()).toEqual([]);
});

test('every file of a home has a line', () => {
  const files = [...textOf('src/home/home-paths.ts').matchAll(/join\(folder, '([^']+)'\)/g)];
  const named = namesIn([...partOf('The files of a home'), ...partOf('The tables of the database')]);
  expect(files.map(([, name = '']) => name).filter((name) => !named.has(name))).toEqual([]);
});
