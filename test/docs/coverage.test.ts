// docs/contract compared with the tests. TURNPIKE_WRITE_COVERAGE=1 regenerates the last column of the pages.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesIn, parse, ROOT, textOf } from '../sources.js';
import { citedIn, idsIn, rulesOf, withProofs } from './coverage.js';

/** The number of rules of each source. */
const SOURCES = { S0: 76, S1: 20, S2: 25, S3: 41, S4: 86, U: 10 } as const;

/** Rules without a test, with the reason. An id that a test cites must be removed. */
const WAITING: Readonly<Record<string, string>> = {};

const PAGES = filesIn('docs/contract', /\.md$/).filter((path) => !path.endsWith('README.md'));
const TESTS = filesIn('test', /\.ts$/).filter((path) => path !== 'test/docs/coverage.test.ts');

const waiting = new Map(Object.entries(WAITING).flatMap(([ids, area]) => idsIn(ids).map((id) => [id, area] as const)));
const provedBy = new Map<string, readonly string[]>();
for (const path of TESTS) {
  for (const id of citedIn(parse(path))) provedBy.set(id, [...(provedBy.get(id) ?? []), path.replace(/^test\//, '')]);
}

const proofOf = (id: string): string =>
  provedBy.get(id)?.join(', ') ?? `not covered yet: ${waiting.get(id) ?? 'nothing cites it'}`;

beforeAll(() => {
  if (process.env['TURNPIKE_WRITE_COVERAGE'] !== '1') return;
  for (const path of PAGES) writeFileSync(join(ROOT, path), withProofs(textOf(path), proofOf));
});

describe('the contract pages', () => {
  test('S4-01 contain every rule of every source once, in order', () => {
    const expected = Object.entries(SOURCES).flatMap(([source, count]) =>
      idsIn(`${source}-01..${source}-${String(count).padStart(2, '0')}`),
    );
    expect(PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id)).sort()).toEqual(expected.sort());
    for (const path of PAGES) {
      const ids = rulesOf(textOf(path)).map(({ id }) => id);
      expect(ids).toEqual([...ids].sort());
    }
  });

  test.each(PAGES)('%s lists the tests of each rule', (path) => {
    const present = textOf(path).split('\n');
    const anew = withProofs(textOf(path), proofOf).split('\n');
    // If this fails: TURNPIKE_WRITE_COVERAGE=1 regenerates the column.
    expect(present.filter((line, index) => line !== anew[index])).toEqual([]);
  });

  test('every rule without a test is listed as waiting', () => {
    const rules = PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id));
    expect(rules.filter((id) => !provedBy.has(id) && !waiting.has(id))).toEqual([]);
  });

  test('no rule that is listed as waiting has a test', () => {
    expect([...waiting.keys()].filter((id) => provedBy.has(id))).toEqual([]);
  });

  test('no test cites an unknown rule', () => {
    const rules = new Set(PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id)));
    expect([...provedBy.keys()].filter((id) => !rules.has(id))).toEqual([]);
  });
});

describe('what counts as a citation', () => {
  const cited = (text: string): readonly string[] => [
    ...citedIn(ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true)),
  ];

  test.each([
    ["test('S0-01 one', f)", ['S0-01']],
    ["it('one S0-01, and U-07', f)", ['S0-01', 'U-07']],
    ["describe('S4-21 S4-22 edges', f)", ['S4-21', 'S4-22']],
    ["test.each(rows)('S1-02 %s', f)", ['S1-02']],
    ["describe.each(rows)(`S1-02 ${'x'}`, f)", ['S1-02']],
    ["test.only('S2-03', f)", ['S2-03']],
    ["test('S0-25..S0-27 three', f)", ['S0-25', 'S0-26', 'S0-27']],
    ["test('S0-25..27 three', f)", ['S0-25', 'S0-26', 'S0-27']],
    ["const rows = [['S0-42', 'a row that becomes a title']]", ['S0-42']],
    ["const text = 'this follows S0-42'", []],
    ['// S0-42 in a comment', []],
    ["test('C19 D4, no id', f)", []],
    ["expect(x).toBe('a.S0-42')", []],
  ])('%s', (text, ids) => {
    expect(cited(text)).toEqual(ids);
  });
});
