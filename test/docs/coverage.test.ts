// docs/contract has every rule of its sources, and a test cites each of them.

import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, parse, textOf } from '../sources.js';
import { citedIn, idsIn, rulesOf } from './coverage.js';

/** The number of rules of each source. */
const SOURCES = { S0: 76, S1: 20, S2: 25, S3: 41, S4: 86, U: 10 } as const;

const PAGES = filesIn('docs/contract', /\.md$/).filter((path) => !path.endsWith('README.md'));
const TESTS = filesIn('test', /\.ts$/).filter((path) => path !== 'test/docs/coverage.test.ts');

const cited = new Set(TESTS.flatMap((path) => [...citedIn(parse(path))]));

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

  test('a test cites every rule', () => {
    const rules = PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id));
    expect(rules.filter((id) => !cited.has(id))).toEqual([]);
  });

  test('no test cites an unknown rule', () => {
    const rules = new Set(PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id)));
    expect([...cited].filter((id) => !rules.has(id))).toEqual([]);
  });
});

describe('what counts as a citation', () => {
  const idsCitedIn = (text: string): readonly string[] => [
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
    expect(idsCitedIn(text)).toEqual(ids);
  });
});
