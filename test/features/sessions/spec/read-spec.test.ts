// Specs as untrusted bytes: each is parsed, or rejected with a line and a rule, in bounded time.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { SPEC_BYTES_MAX } from '../../../../src/features/sessions/contract/session-spec.js';
import { toYaml } from '../../../../src/core/policy/files/strict-yaml.js';
import { findPointerLines } from '../../../../src/features/sessions/spec/json-pointer-lines.js';
import { parseSpec, readSpec } from '../../../../src/features/sessions/spec/read-spec.js';
import { sized } from '../../../fixtures/campaign.js';
import { largeSpec, make, phase, spec, verify } from '../../../fixtures/spec.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
/** `line rule` of the first problem, or the parsed spec. */
const read = (text: string | Uint8Array): unknown => {
  const { value, problems } = parseSpec(typeof text === 'string' ? bytes(text) : text);
  const [first] = problems;
  return first === undefined ? plain(value) : `${first.line} ${first.rule}`;
};

describe('the two formats of a spec', () => {
  const one = spec(phase('a', [make('a1', [], { instruction: 'Two\nlines: "quoted".\n' }), verify('a2', ['a1'])]));

  test('give equal results', () => {
    expect(read(JSON.stringify(one))).toEqual(one);
    expect(read(` \r\n\t${JSON.stringify(one, null, 2)}\n`)).toEqual(one);
    expect(read(toYaml(one))).toEqual(one);
  });

  test('give objects without a prototype', () => {
    for (const text of ['{"a": {}}', 'a: {}\n']) {
      const { value } = parseSpec(bytes(text));
      expect(Object.getPrototypeOf(value)).toBeNull();
      expect(Object.getPrototypeOf((value as Record<string, unknown>)['a'])).toBeNull();
    }
  });

  test('are distinguished by the first character: text that begins with { is never read as YAML', () => {
    expect(read('{a: 1}')).toBe('1 json.syntax');
    expect(read('{"a": 1,}')).toBe('1 json.syntax');
    expect(read('---\n{a: 1}\n')).toEqual({ a: 1 });
  });
});

describe('rejects', () => {
  test.each<readonly [string, string | Uint8Array, string]>([
    ['an empty text', '', '1 yaml.not_a_mapping'],
    ['a list', '[]', '1 yaml.not_a_mapping'],
    ['bytes that are not UTF-8', Uint8Array.of(0x61, 0x3a, 0xff), '1 yaml.encoding'],
    ['JSON that is not UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x7d), '1 json.encoding'],
    ['a byte order mark', '\ufeffa: 1\n', '1 yaml.bom'],
    ['a byte order mark before JSON', '\ufeff{}', '1 json.byte_order_mark'],
    ['UTF-16', new Uint8Array(Buffer.from('\ufeff{"a": 1}', 'utf16le')), '1 yaml.encoding'],
    ['a NUL byte', 'a: 1\nb: \0\n', '2 yaml.control_character'],
    ['a key twice', 'a: 1\nb: 2\na: 3\n', '3 yaml.duplicate_key'],
    ['a key twice in JSON', '{\n"a": 1,\n"a": 2}', '3 json.duplicate_key'],
    ['a key twice in JSON, once escaped', '{"a": 1,\n"\\u0061": 2}', '2 json.duplicate_key'],
    ['the prototype in JSON', '{"a": 1,\n"__proto__": {"b": 1}}', '2 json.reserved_key'],
    ['an anchor', 'a: &x 1\n', '1 yaml.anchor'],
    ['an alias', 'a: 1\nb: *x\n', '2 yaml.alias'],
    ['a merge key', 'a:\n  <<: {b: 1}\n', '2 yaml.merge_key'],
    ['a custom tag', 'a: !!js/function "x"\n', '1 yaml.tag'],
    ['a tag', 'a: !!binary aGk=\n', '1 yaml.tag'],
    ['a directive', '%YAML 1.1\n---\na: 1\n', '1 yaml.directive'],
    ['two documents', 'a: 1\n---\nb: 1\n', '2 yaml.multiple_documents'],
    ['two JSON documents', '{}\n{}', '2 json.text_after_value'],
    ['a comment in JSON', '{\n// no\n}', '2 json.syntax'],
    ['a line feed in a JSON string', '{"a": "\n"}', '1 json.control_character'],
    ['a lone surrogate in JSON', '{"a": "\\ud800"}', '1 json.lone_surrogate'],
    ['an endless number', '{"a": 1e999}', '1 json.number_not_finite'],
    ['deep nesting', `a: ${'['.repeat(17)}${']'.repeat(17)}\n`, '1 yaml.too_complex'],
    ['deep nesting in JSON', `{"a": ${'['.repeat(16)}${']'.repeat(16)}}`, '1 json.too_deep'],
    ['truncated JSON', '{"a": {\n"b": [1,\n', '3 json.syntax'],
    ['a billion laughs', 'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n', '1 yaml.anchor'],
  ])('%s', (_what, text, expected) => {
    expect(read(text)).toBe(expected);
  });

  test(`more than ${SPEC_BYTES_MAX} bytes, before any of them is read`, () => {
    const filled = (text: string, size: number): Uint8Array => {
      const all = new Uint8Array(size).fill(0x20);
      all.set(bytes(text));
      return all;
    };
    for (const [text, rule] of [
      ['{}', '1 json.too_large'],
      ['a: 1\n#', '1 yaml.too_large'],
    ] as const) {
      expect(read(filled(text, SPEC_BYTES_MAX + 1))).toBe(rule);
      expect(read(filled(text, 17_000_000))).toBe(rule);
      expect(typeof read(filled(text, SPEC_BYTES_MAX))).toBe('object');
    }
  });

  test('too many parts, however small they are', () => {
    const parts = (count: number): string => `{"a": [${'0,'.repeat(count - 3)}0]}`;
    expect(read(parts(1_000_001))).toBe('1 json.too_complex');
    expect(typeof read(parts(1_000_000))).toBe('object');
    expect(typeof read(`{"a": "${'{[,:\\"'.repeat(600_000)}"}`)).toBe('object');
    expect(read(`a:\n${'- b\n'.repeat(500_000)}`)).toMatch(/^\d+ yaml\.too_complex$/);
    expect(read(`a: |\n${' b\n'.repeat(500_000)}`)).toMatch(/^\d+ yaml\.too_complex$/);
    expect(typeof read(`a: |\n${' b\n'.repeat(499_900)}`)).toBe('object');
  });

  test('a key named like the prototype, which is an extra key in YAML', () => {
    const { findings } = readSpec(bytes(`${toYaml(spec(phase('a', [verify('v')])))}__proto__: {polluted: 1}\n`), null);
    expect(findings.map(({ line, rule }) => `${line} ${rule}`)).toEqual(['14 schema.unknown_key']);
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  test('a lone surrogate, in YAML too', () => {
    const text = toYaml(spec(phase('a', [make('a1'), verify('v')]))).replace('Write /sandbox/a1.md.', '"\\ud800"');
    expect(readSpec(bytes(text), null)).toMatchObject({ spec: null, findings: [{ rule: 'text.malformed', line: 10 }] });
  });
});

describe('findings have the line of their subject', () => {
  const text = `spec_version: 1
id: demo
title: Demo
phases:
  - id: a
    title: A
    tasks:
      - id: a1
        title: A1
        instruction: Make it.
        depends_on:
          - nowhere
  - id: b
    title: B
    tasks:
      - {id: b1, title: B1, type: verify, command: [node], cwd: /etc}
`;
  const expected = [
    [12, 'task.unknown_dependency', '/phases/0/tasks/0/depends_on/0'],
    [16, 'folder.outside_sandbox', '/phases/1/tasks/0/cwd'],
    [5, 'phase.unchecked', '/phases/0'],
  ];
  const foundIn = (written: string): unknown =>
    readSpec(bytes(written), null).findings.map(({ line, rule, path }) => [line, rule, path]);

  test('in YAML: errors by line, then warnings', () => {
    expect(foundIn(text)).toEqual(expected);
  });

  test('in JSON', () => {
    const json = JSON.stringify(parseSpec(bytes(text)).value, null, 2);
    const lineOf = (part: string): number => json.slice(0, json.indexOf(part)).split('\n').length;
    expect(foundIn(json)).toEqual([
      [lineOf('"nowhere"'), 'task.unknown_dependency', '/phases/0/tasks/0/depends_on/0'],
      [lineOf('"cwd"'), 'folder.outside_sandbox', '/phases/1/tasks/0/cwd'],
      [lineOf('"id": "a"') - 1, 'phase.unchecked', '/phases/0'],
    ]);
    const inOneLine = expected.map(([, rule, path]) => [1, rule, path]);
    expect(foundIn(JSON.stringify(JSON.parse(json)))).toEqual([inOneLine[1], inOneLine[0], inOneLine[2]]);
  });

  test('in any JSON, the line of a member or item is that of its key or beginning', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom('', ' ', '\t\t'), (value, indent) => {
        const document = { top: value, 'a"\\,{[\n/~': value };
        const json = JSON.stringify(document, null, indent === '' ? undefined : indent);
        const pointers = [...placesIn(document, '')];
        const lines = findPointerLines(json, pointers);
        // With an indent, every value has a line of its own, in this order.
        const all = json.split('\n');
        const own = all.flatMap((line, index) => (/^\s*[\]}],?$/.test(line) ? [] : [index + 1]));
        expect(lines).toEqual(indent === '' ? pointers.map(() => 1) : own);
      }),
    );
  });

  test('for any YAML key', () => {
    expect(foundIn(`${text}"a/b~c": {}\n`)).toEqual([[17, 'schema.unknown_key', '/a~1b~0c']]);
  });

  test('for a missing value, that of the value around it', () => {
    expect(findPointerLines('{"a":\n[1,\n{"b": 1}]}', ['/a/1/c', '/a/7', '/x', '', '/a/1/b/d'])).toEqual([
      3, 1, 1, 1, 3,
    ]);
  });
});

/** The pointers of a document, in the order of its text. */
function* placesIn(value: unknown, at: string): Generator<string> {
  yield at;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    yield* placesIn(member, `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

describe('time', () => {
  const TASKS = sized(300, 10_000);

  /** Limit of processor time: several times the usual duration, so that only quadratic loops fail. */
  const cpuMs = (work: () => unknown): number => {
    const start = process.cpuUsage();
    work();
    return process.cpuUsage(start).user / 1_000;
  };

  test(`a JSON spec of ${TASKS} tasks is parsed and validated in well below a second`, () => {
    const large = bytes(JSON.stringify(largeSpec(TASKS)));
    expect(readSpec(large, null)).toMatchObject({ findings: [] });
    expect(Math.min(...[1, 2, 3].map(() => cpuMs(() => readSpec(large, null))))).toBeLessThan(800);
  });

  test(`a YAML spec of ${TASKS} tasks is parsed in time, too`, () => {
    const large = largeSpec(TASKS);
    const yaml = bytes(toYaml(large));
    let result: unknown;
    expect(cpuMs(() => (result = readSpec(yaml, null)))).toBeLessThan(10_000);
    expect(plain(result)).toEqual({ findings: [], spec: large });
  });

  /** The full size only in a campaign. */
  const fill = (unit: string, size = SPEC_BYTES_MAX - 100): string =>
    unit.repeat(Math.floor(sized(size / 64, size) / unit.length));
  const members = (count: number): string => Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',');
  test.each<readonly [string, () => string]>([
    ['brackets', () => fill('[')],
    ['dashes', () => fill('- ')],
    ['double quotes', () => fill('"', 1_000_000)],
    ['lines of double quotes', () => fill('""\n', 1_000_000)],
    ['lines with inconsistent indents', () => fill('  a: b\n c: d\n', 600_000)],
    ['bad escapes', () => `a: "${fill('\\q', 900_000)}"`],
    ['lines of one text', () => `a: ${fill('x\n  ')}`],
    ['lines of a quoted text', () => `a: '${fill('\n x')}'`],
    ['one long line', () => `a: ${fill('x')}`],
    ['many keys', () => Array.from({ length: sized(3_000, 120_000) }, (_, index) => `k${index}: 1\n`).join('')],
    [
      'a ladder of keys',
      () => Array.from({ length: sized(4_000, 200_000) }, (_, depth) => `${' '.repeat(depth % 64)}a:\n`).join(''),
    ],
    ['JSON objects', () => `{"a":[${fill('{},')}{}]}`],
    ['JSON nesting', () => fill('{"a":')],
    ['a JSON string of backslashes and quotes', () => `{"a":"${fill('\\\\\\"')}"}`],
    ['JSON keys', () => `{${members(sized(8_000, 490_000))}}`],
    ['JSON phases', () => `{"phases":[${fill('{},', 2_400_000)}{}]}`],
    ['JSON tasks', () => `{"phases":[{"tasks":[${fill('{},', 2_400_000)}{}]}]}`],
    ['JSON dependencies', () => `{"phases":[{"tasks":[{"depends_on":[${fill('"a",', 3_000_000)}""]}]}]}`],
  ])('%s: rejected quickly', (_what, text) => {
    const hostile = bytes(text());
    expect(hostile.byteLength).toBeLessThanOrEqual(SPEC_BYTES_MAX);
    let result: unknown;
    expect(cpuMs(() => (result = readSpec(hostile, null)))).toBeLessThan(20_000);
    expect(result).toMatchObject({ spec: null });
  });
});

describe('arbitrary bytes', () => {
  const good = JSON.stringify(spec(phase('a', [make('a1'), verify('a2')], { reviewer: 'manual' })));
  const damaged = fc
    .record({ yaml: fc.boolean(), from: fc.nat(), length: fc.nat(60), instead: fc.uint8Array({ maxLength: 8 }) })
    .map(({ yaml, from, length, instead }) => {
      const whole = bytes(yaml ? toYaml(JSON.parse(good)) : good);
      const start = from % whole.length;
      return new Uint8Array(Buffer.concat([whole.slice(0, start), instead, whole.slice(start + length)]));
    });

  test('are parsed, or rejected in one line of printable ASCII', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), damaged), (input) => {
        const { findings, spec: sound } = readSpec(input, null);
        expect(sound === null).toBe(findings.some(({ severity }) => severity === 'error'));
        for (const { line, message } of findings) {
          expect(line).toBeGreaterThanOrEqual(1);
          expect(message).toMatch(/^[ -~]+$/);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
