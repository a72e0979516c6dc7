// docs/contract against the tests. With TURNPIKE_WRITE_COVERAGE=1 the last column of the pages is written anew.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { filesIn, parse, ROOT, textOf } from '../sources.js';
import { citedIn, idsIn, rulesOf, withProofs } from './coverage.js';

/** How many rules each source has. */
const SOURCES = { S0: 76, S1: 20, S2: 25, S3: 41, S4: 86, U: 7 } as const;

/** Rules that no test proves yet, by what they wait for. An id that is proved after all must be taken off. */
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

describe('the pages of the contract', () => {
  test('S4-01 have every rule of every source once, in order', () => {
    const expected = Object.entries(SOURCES).flatMap(([source, count]) =>
      idsIn(`${source}-01..${source}-${String(count).padStart(2, '0')}`),
    );
    expect(PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id)).sort()).toEqual(expected.sort());
    for (const path of PAGES) {
      const ids = rulesOf(textOf(path)).map(({ id }) => id);
      expect(ids).toEqual([...ids].sort());
    }
  });

  test.each(PAGES)('%s says of each rule which tests prove it', (path) => {
    const present = textOf(path).split('\n');
    const anew = withProofs(textOf(path), proofOf).split('\n');
    // Where this fails: TURNPIKE_WRITE_COVERAGE=1 writes the column anew.
    expect(present.filter((line, index) => line !== anew[index])).toEqual([]);
  });

  test('a rule without a test is one that waits for something', () => {
    const rules = PAGES.flatMap((path) => rulesOf(textOf(path)).map(({ id }) => id));
    expect(rules.filter((id) => !provedBy.has(id) && !waiting.has(id))).toEqual([]);
  });

  test('a rule that waits has no test', () => {
    expect([...waiting.keys()].filter((id) => provedBy.has(id))).toEqual([]);
  });

  test('no test cites a rule that there is not', () => {
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
