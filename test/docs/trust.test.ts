// docs/trust.md: every line of the threat model names an existing test, and every right of a token has its lines.

import { expect, test } from '@jest/globals';
import { RIGHTS } from '../../src/contract/token.js';
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

test('the threat model has a section for each actor', () => {
  expect(SECTIONS.map((section) => section.split('\n')[0])).toEqual([
    'An agent',
    'A caller with a token',
    'An upstream server',
    'An operator without the keys',
    'An operator with the keys',
    'The host',
  ]);
});

test('every actor has lines of what it can and cannot do', () => {
  for (const section of SECTIONS) {
    const verbs = linesOf(section).map((line) => (/^\|[^|]*\bcannot\b|^\| no right can/.test(line) ? 'cannot' : 'can'));
    expect(new Set(verbs)).toEqual(new Set(['can', 'cannot']));
  }
});

test('every right of a token has lines of what it can and cannot do', () => {
  const lines = linesOf(SECTIONS[1] ?? '');
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
