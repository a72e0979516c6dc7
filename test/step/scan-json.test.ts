import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { scanJson, type JsonProblem } from '../../src/step/scan-json.js';
import { sized } from '../fixtures/campaign.js';
import { character } from '../fixtures/characters.js';

const scan = (text: string) => scanJson(text, 32);
const refusedAs = (why: JsonProblem) => ({ ok: false, problem: why });

describe('what RFC 8259 allows and a proposal must not contain', () => {
  test.each<readonly [string, string, JsonProblem]>([
    ['a key twice', '{"a":1,"a":1}', 'duplicate_key'],
    ['a key twice, once escaped', String.raw`{"action":"READ_FILE","\u0061ction":"DELETE_FILE"}`, 'duplicate_key'],
    ['a key twice, deep inside', '[[{"x":{"a":1,"b":2,"a":3}}]]', 'duplicate_key'],
    ['an empty key twice', '{"":1,"":2}', 'duplicate_key'],
    ['a numeric key twice', '{"0":1,"0":2}', 'duplicate_key'],
    ['a key twice, first with null', '{"a":null,"a":1}', 'duplicate_key'],
    ['the key __proto__', '{"__proto__":{"admin":true}}', 'reserved_key'],
    ['the key __proto__, escaped', String.raw`{"a":{"\u005f_proto__":1}}`, 'reserved_key'],
    ['a high surrogate alone, escaped', String.raw`["\ud800"]`, 'lone_surrogate'],
    ['a low surrogate alone, escaped', String.raw`["\udc00"]`, 'lone_surrogate'],
    ['surrogates in the wrong order, escaped', String.raw`["\udc00\ud800"]`, 'lone_surrogate'],
    ['a high surrogate before another', String.raw`["\ud800\ud800"]`, 'lone_surrogate'],
    ['a low surrogate before another', String.raw`["\udc00\udc00"]`, 'lone_surrogate'],
    ['a high surrogate before a non-surrogate', String.raw`["\ud800\ue000"]`, 'lone_surrogate'],
    ['a high surrogate before a letter', String.raw`["\ud800a"]`, 'lone_surrogate'],
    ['a high surrogate before another escape', String.raw`["\ud800\n"]`, 'lone_surrogate'],
    ['a lone surrogate in a key', String.raw`{"\ud800":1}`, 'lone_surrogate'],
    ['a raw high surrogate', '["\ud800"]', 'lone_surrogate'],
    ['a raw low surrogate', '["\udc00"]', 'lone_surrogate'],
    ['an escaped high surrogate before a raw low one', '["\\ud83d\ude00"]', 'lone_surrogate'],
    ['a raw high surrogate before an escaped low one', '["\ud83d\\ude00"]', 'lone_surrogate'],
    ['a raw surrogate after an escape', '["\\n\ud800"]', 'lone_surrogate'],
    ['a number that is not finite', '[1e999]', 'number_not_finite'],
    ['a negative number that is not finite', '[-1e999]', 'number_not_finite'],
    ['a number of 400 digits', `[${'9'.repeat(400)}]`, 'number_not_finite'],
    ['a byte order mark', '\ufeff{}', 'byte_order_mark'],
    ['a second value', '{} {}', 'text_after_value'],
    ['a raw control character in a string', '["\u0001"]', 'control_character'],
    ['a raw control character after an escape', '["\\n\u001f"]', 'control_character'],
    ['an exponent without digits', '[1e]', 'syntax'],
    ['a fraction without digits', '[1.]', 'syntax'],
    ['nothing at all', '', 'syntax'],
  ])('S0-22 S1-01: %s is rejected', (_what, text, why) => {
    expect(scan(text)).toEqual(refusedAs(why));
  });

  test('S1-01: the same key in two objects is no duplicate', () => {
    expect(scan('[{"a":1},{"a":{"a":2}}]')).toEqual({ ok: true, value: [{ a: 1 }, { a: { a: 2 } }] });
  });

  test('keys that other objects inherit are ordinary keys, because objects have no prototype', () => {
    const scanned = scan('{"constructor":1,"toString":2,"hasOwnProperty":3,"inner":{}}');
    expect(scanned).toMatchObject({ ok: true });
    const value = (scanned as unknown as { value: Record<string, object> }).value;
    expect(Object.getPrototypeOf(value)).toBeNull();
    expect(Object.getPrototypeOf(value['inner'])).toBeNull();
    expect(Object.keys(value)).toEqual(['constructor', 'toString', 'hasOwnProperty', 'inner']);
  });
});

describe('depth', () => {
  const nested = (depth: number, [open, close]: readonly [string, string]) =>
    open.repeat(depth) + '1' + close.repeat(depth);

  test.each([
    ['arrays', ['[', ']']],
    ['objects', ['{"a":', '}']],
  ] as const)('accepts %s 32 deep and rejects 33 deep', (_what, brackets) => {
    expect(scanJson(nested(32, brackets), 32)).toMatchObject({ ok: true });
    expect(scanJson(nested(33, brackets), 32)).toEqual(refusedAs('too_deep'));
  });

  test('does not add up over siblings', () => {
    expect(scanJson('[[1],[2],{"a":[3]}]', 3)).toMatchObject({ ok: true });
  });

  test.each([5_000, 30_000, 1_000_000])('%d brackets are rejected without reading them', (depth) => {
    const text = '['.repeat(depth);
    const started = process.cpuUsage();
    for (let round = 0; round < 100; round++) expect(scanJson(text, 32).ok).toBe(false);
    // 100 rounds, in processor time, so that a busy machine changes little; reading a million brackets takes longer.
    expect(process.cpuUsage(started).user / 1_000).toBeLessThan(300);
  });
});

describe('comparison with JSON.parse', () => {
  const holdsProto = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    (Object.hasOwn(value, '__proto__') || Object.values(value).some(holdsProto));

  test('S0-22: valid JSON without duplicate keys has the same value, with any white space', () => {
    const texts = fc.tuple(
      fc.jsonValue({ maxDepth: 6, stringUnit: character }),
      fc.constantFrom('', ' ', '\t', '\n  '),
    );
    fc.assert(
      fc.property(texts, ([value, indent]) => {
        const text = JSON.stringify(value, null, indent);
        const parsed = JSON.parse(text) as unknown;
        expect(scanJson(text, 64)).toEqual(
          holdsProto(parsed) ? refusedAs('reserved_key') : { ok: true, value: parsed },
        );
      }),
      { numRuns: sized(200, 2_000) },
    );
  });

  test('S0-22: strings have the same value when every unit is escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: character }), (text) => {
        const escaped = Array.from({ length: text.length }, (_, at) =>
          text.charCodeAt(at).toString(16).padStart(4, '0'),
        );
        expect(scan(`"${escaped.map((unit) => `\\u${unit}`).join('')}"`)).toEqual({ ok: true, value: text });
      }),
    );
  });

  const STRICTER: readonly JsonProblem[] = ['duplicate_key', 'reserved_key', 'lone_surrogate', 'number_not_finite'];

  test('S0-22: damaged JSON is accepted only if JSON.parse accepts it, with the same value', () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.nat(3),
      fc.constantFrom(...'{}[]",:\\u0eE+-.1/\' \n\0truefalsn\ud800'.split('')),
    );
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), damage, (value, [place, removed, inserted]) => {
        const whole = JSON.stringify(value);
        const at = place % (whole.length + 1);
        const text = whole.slice(0, at) + inserted + whole.slice(at + removed);
        const scanned = scan(text);
        if (scanned.ok) expect(scanned.value).toEqual(JSON.parse(text));
        else if (!STRICTER.includes(scanned.problem)) expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
      }),
      { numRuns: sized(800, 5_000) },
    );
  });
});
