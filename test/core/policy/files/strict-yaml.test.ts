// The exact limits, lines and messages of the YAML reader. Its rules are also tested with whole policies, in
// check-policy.test.ts.

import { describe, expect, test } from '@jest/globals';
import { readStrictYaml, toYaml } from '../../../../src/core/policy/files/strict-yaml.js';

const LIMITS = { bytes_max: 100_000, parts_max: 15_000 };
const COMPLEX = 'is nested too deeply, or has too many parts';

const read = (text: string, limits: Partial<typeof LIMITS> = {}) =>
  readStrictYaml(Buffer.from(text), { ...LIMITS, ...limits });
const dataOf = (...args: Parameters<typeof read>): unknown => {
  const { document, problems } = read(...args);
  expect(problems).toEqual([]);
  return JSON.parse(JSON.stringify(document?.data));
};
const problemsOf = (...args: Parameters<typeof read>): readonly string[] => {
  const { document, problems } = read(...args);
  expect(document).toBeNull();
  return problems.map(({ line, rule, message }) => `${line} ${rule}: ${message}`);
};

describe('a text that is not plain YAML has one problem with its reason', () => {
  test.each([
    ['\ufeffa: 1', '1 yaml.bom: starts with a byte order mark; save it as UTF-8 without one'],
    ['a: 1\nb: \u0007', '2 yaml.control_character: holds the control character "\\u0007"'],
    ["@'\na: 1\n'@", "1 yaml.powershell_wrapping: is wrapped in a PowerShell here-string (@' ... '@)"],
    ["\n @'\na: 1\n'@", "1 yaml.powershell_wrapping: is wrapped in a PowerShell here-string (@' ... '@)"],
    ['a: &b 1', '1 yaml.anchor: has an anchor (&); write the value out'],
    ['a: 1\nb: *b', '2 yaml.alias: has an alias (*); write the value out'],
    ['a: !b 1', '1 yaml.tag: has a tag (!); plain values only'],
    ['%YAML 1.1\n---\na: 1', '1 yaml.directive: has a directive (%); YAML 1.2 without directives only'],
    ['a: 1\nb: ]', '2 yaml.syntax: is not YAML: a bracket is never opened, or not closed'],
    ['a: 1\n---\nb: 1', '2 yaml.multiple_documents: holds more than one document'],
    ['- a', '1 yaml.not_a_mapping: is not a mapping of keys to values'],
    ['', '1 yaml.not_a_mapping: is not a mapping of keys to values'],
    ['1: a', '1 yaml.key: has a key that is not a string'],
    ['a:\n  <<: { b: 1 }', '2 yaml.merge_key: has a merge key (<<); write the members out'],
    ['a: 1\n"a": 2', '2 yaml.duplicate_key: has the key "a" twice in one mapping'],
    ['a: 010', '1 yaml.number: has the number "010"; write it in decimal, without a zero'],
    ['[a', '1 yaml.syntax: is not YAML: Flow sequence must end with a ]'],
    [
      'a: |#b\n  c',
      '1 yaml.syntax: is not YAML: Comments must be separated from other tokens by white space characters',
    ],
  ])('%j', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  test('bytes that are not UTF-8', () => {
    const { problems } = readStrictYaml(Buffer.from([0x61, 0x3a, 0x20, 0xff]), LIMITS);
    const message = 'is not UTF-8; save it as UTF-8 without a byte order mark';
    expect(problems).toEqual([{ line: 1, rule: 'yaml.encoding', message }]);
  });

  test.each([
    ["a: 1 @'", { a: "1 @'" }],
    ['a: |\n  &b\n  *b\n  !b\n  %b', { a: '&b\n*b\n!b\n%b\n' }],
    ['a: "*b"', { a: '*b' }],
  ])('but not %j, where the characters are text', (text, data) => {
    expect(dataOf(text)).toEqual(data);
  });

  test('the text of a scalar is not a token, whatever it begins with', () => {
    for (const text of ['--- >\n%b c\n', '--- |\n!b c\n', '--- |\n&b c\n', '--- |\n*b c\n']) {
      expect(problemsOf(text)).toEqual(['1 yaml.not_a_mapping: is not a mapping of keys to values']);
    }
  });
});

describe('each limit holds, and nothing below it is rejected', () => {
  test('the size in bytes', () => {
    expect(dataOf('a: 1'.padEnd(10, '\n'), { bytes_max: 10 })).toEqual({ a: 1 });
    expect(problemsOf('a: 1'.padEnd(11, '\n'), { bytes_max: 10 })).toEqual([
      '1 yaml.too_large: is larger than 10 bytes',
    ]);
  });

  test.each([
    ['tokens', 'a: b\n', 8],
    ['escapes', 'a: "b\\tc"\n', 8],
    ['the characters of a text without escapes, as one', `a: "${'b'.repeat(50)}"\n`, 7],
    ['backslashes outside of quotes, as none', `a: ${'\\'.repeat(50)}\n`, 8],
    ['the lines of a text', 'a: |\n  b\n  c\n', 11],
  ])('the number of parts, which counts %s', (_, text, parts) => {
    expect(read(text, { parts_max: parts }).problems).toEqual([]);
    expect(problemsOf(text, { parts_max: parts - 1 })[0]).toMatch(/^[123] yaml.too_complex: /);
  });

  test('an invalid escape counts as 500 parts, because the parser creates an error for it', () => {
    for (const escape of ['\\q', '\\xg0', '\\u00g0', '\\U0000000g']) {
      const text = `a: "b${escape}c"\n`;
      expect(problemsOf(text, { parts_max: 507 })[0]).toMatch(/^1 yaml.syntax: /);
      expect(problemsOf(text, { parts_max: 506 })).toEqual([`1 yaml.too_complex: ${COMPLEX}`]);
    }
  });

  test('the nesting of brackets', () => {
    const nested = (depth: number): string => `a: ${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(read(nested(16)).problems).toEqual([]);
    expect(problemsOf(nested(17))).toEqual([`1 yaml.too_complex: ${COMPLEX}`]);
    expect(dataOf(`a: [${'[],'.repeat(40)}]`)).toEqual({ a: Array.from({ length: 40 }, () => []) });
    expect(dataOf(`a: [${'{},'.repeat(40)}]`)).toEqual({ a: Array.from({ length: 40 }, () => ({})) });
  });

  test.each([
    ['-', 'yaml.not_a_mapping'],
    ['?', 'yaml.key'],
    [':', 'yaml.syntax'],
  ])('eight indicators %s in a line', (indicator, below) => {
    expect(read(`${`${indicator} `.repeat(8)}a`).problems[0]?.rule).toBe(below);
    expect(problemsOf(`${`${indicator} `.repeat(9)}a`)).toEqual([`1 yaml.too_complex: ${COMPLEX}`]);
  });

  test('eight indicators in each line', () => {
    const lines = Array.from({ length: 9 }, (_, n) => `a${n}: b\n`).join('');
    expect(Object.keys(dataOf(lines) as object)).toHaveLength(9);
    expect(problemsOf(`a: 1\nb:\n  ${'- '.repeat(9)}`)).toEqual([`3 yaml.too_complex: ${COMPLEX}`]);
  });

  test('in brackets a colon does not count, and other indicators do', () => {
    expect(dataOf('a: { b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1 }')).toEqual({
      a: { b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1 },
    });
    expect(problemsOf('a: [?,?,?,?,?,?,?,?]')).toEqual([`1 yaml.too_complex: ${COMPLEX}`]);
  });

  test('the indentation of a line', () => {
    expect(dataOf(`a:\n${' '.repeat(64)}b: 1`)).toEqual({ a: { b: 1 } });
    expect(problemsOf(`a:\n${' '.repeat(65)}b: 1`)).toEqual([`2 yaml.too_complex: ${COMPLEX}`]);
    expect(dataOf(`a: 1${' '.repeat(65)}# b`)).toEqual({ a: 1 });
  });

  test.each([
    ['of the parser', Array.from({ length: 12 }, () => 'a: @b\n').join('')],
    ['of the reader', Array.from({ length: 12 }, (_, n) => `${n}: b\n`).join('')],
  ])('ten mistakes %s are reported', (_, text) => {
    const problems = problemsOf(text);
    expect(problems.map((problem) => problem.split(' ')[0])).toEqual(
      Array.from({ length: 10 }, (__, n) => String(n + 1)),
    );
  });
});

describe('C89 numbers', () => {
  test.each(['010', '-01', '0o7', '0x1F', '+00'])('%s is rejected', (number) => {
    expect(problemsOf(`a: ${number}`)).toEqual([
      `1 yaml.number: has the number "${number}"; write it in decimal, without a zero`,
    ]);
  });

  test.each([
    ['0', 0],
    ['0.5', 0.5],
    ['-0.5', -0.5],
    ['10', 10],
    ['"010"', '010'],
    ["'0x1F'", '0x1F'],
    ['1_0', '1_0'],
    ['.inf', null],
  ])('%s is accepted', (text, value) => {
    expect(dataOf(`a: ${text}`)).toEqual({ a: value });
  });
});

describe('a document', () => {
  test('is plain data', () => {
    expect(dataOf('a: 1\nb: ~\nc:\nd: true\ne: { f: [x, no] }')).toEqual({
      a: 1,
      b: null,
      c: null,
      d: true,
      e: { f: ['x', 'no'] },
    });
    expect(Object.getPrototypeOf(read('a: 1').document?.data)).toBeNull();
  });

  test.each([
    ['', 1],
    ['/a', 2],
    ['/a/b~1c', 3],
    ['/a/d~0e', 4],
    ['/a/d~0e/0', 5],
    ['/a/d~0e/1', 6],
    ['/a/d~0e/1/z', 7],
    ['/a/d~0e/7', 4],
    ['/a/d~0e/1/missing/z', 6],
    ['/missing', 1],
    ['/q', 8],
    ['/q/z', 8],
  ])('has the line of %j: %d', (pointer, line) => {
    const { document } = read('# a comment\na:\n  b/c: 1\n  d~e:\n    - x\n    - y: 1\n      z: 2\nq: 1\n');
    expect(document?.lineOf(pointer)).toBe(line);
  });

  test('the stack traces of later errors are not cut', () => {
    const { stackTraceLimit } = Error;
    read('a: [');
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(stackTraceLimit).toBeGreaterThan(0);
  });
});

test('generated YAML has no folded lines and no aliases', () => {
  const same = { k: 'x '.repeat(100).trim() };
  expect(toYaml({ b: same, a: same, c: '010' })).toBe(`b:\n  k: ${same.k}\na:\n  k: ${same.k}\nc: "010"\n`);
});
