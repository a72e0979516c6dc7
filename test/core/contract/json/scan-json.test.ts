import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findErrorPosition, scanJson, type JsonProblem } from '../../../../src/core/contract/json.js';
import { sized } from '../../../fixtures/campaign.js';
import { character } from '../../../fixtures/characters.js';

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
    ['a word that is no value', 'x', 'syntax'],
    ['a word that ends too early', '[tru]', 'syntax'],
    ['a word that ends otherwise', '[trux]', 'syntax'],
    ['a semicolon between members', '{"a":1;"b":2}', 'syntax'],
    ['a semicolon between items', '[1;2]', 'syntax'],
    ['a minus without digits', '[-]', 'syntax'],
    ['a key without a colon', '{"a" 1}', 'syntax'],
    ['a key without quotes', '{a:1}', 'syntax'],
    ['a member without a comma', '{"a":1 "b":2}', 'syntax'],
    ['an item without a comma', '[1 2]', 'syntax'],
    ['a string without an end', '["a', 'syntax'],
    ['a string that ends in an escape', String.raw`["\n`, 'syntax'],
    ['an unknown escape', String.raw`["\q"]`, 'syntax'],
    ['an escape without four digits', String.raw`["\u12"]`, 'syntax'],
    ['an escape with other characters', String.raw`["\uzzzz"]`, 'syntax'],
    ['an escape with a colon, the character after 9', String.raw`["\u00:0"]`, 'syntax'],
    ['an escape with a slash, the character before 0', String.raw`["\u00/0"]`, 'syntax'],
    ['an escape with the character before A', String.raw`["\u00@0"]`, 'syntax'],
    ['an escape with the character before a', '["\\u00`0"]', 'syntax'],
    ['an escape with the character after f', String.raw`["\u00g0"]`, 'syntax'],
    ['an escape with the character after F', String.raw`["\u00G0"]`, 'syntax'],
    ['the last low surrogate alone, escaped', String.raw`["\udfff"]`, 'lone_surrogate'],
    ['the last low surrogate alone, raw', '["\udfff"]', 'lone_surrogate'],
    ['a high surrogate before digits without backslash', String.raw`["\ud83dxude00"]`, 'lone_surrogate'],
    ['a high surrogate before digits after another escape', String.raw`["\ud83d\nde00"]`, 'lone_surrogate'],
    ['a high surrogate before digits alone', String.raw`["\ud83dxxde00"]`, 'lone_surrogate'],
    ['an error before a lone surrogate', '["\ud83d\ude00", x "\ud800"]', 'syntax'],
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

test('S0-22: the characters around the surrogates are ordinary ones', () => {
  expect(scan(String.raw`["\ud7ff\ue000"]`)).toEqual({ ok: true, value: ['\ud7ff\ue000'] });
  expect(scan('["\ud7ff\ue000\uffff"]')).toEqual({ ok: true, value: ['\ud7ff\ue000\uffff'] });
  expect(scan(String.raw`["\ud800\udc00\udbff\udfff"]`)).toEqual({ ok: true, value: ['\u{10000}\u{10ffff}'] });
});

describe('exact numbers', () => {
  const exact = (text: string) => scanJson(text, 32, 'exact');

  test('C89: a number is judged by its own digits, wherever it stands', () => {
    const value = [9_007_199_254_740_992, 1e300, -9_007_199_254_740_994];
    expect(exact('[9007199254740992, 1e300, -9007199254740994]')).toEqual({ ok: true, value });
    expect(exact('[9007199254740992, 9007199254740993]')).toEqual(refusedAs('number_not_exact'));
  });

  test('C89: a number that a double changes is rounded unless it must be exact', () => {
    expect(scan('[9007199254740993]')).toEqual({ ok: true, value: [9_007_199_254_740_992] });
    expect(scanJson('[9007199254740993]', 32, 'rounded')).toEqual({ ok: true, value: [9_007_199_254_740_992] });
  });
});

describe('the position of an error', () => {
  test.each([
    ['a word that is no value', '[1, x]', 4],
    ['an item after white space', '[1,   x]', 6],
    ['text after the value', '{}  x', 4],
    ['an end that is too early', '[1', 2],
    ['white space after an unknown escape', String.raw`"\q   "`, 3],
    ['a word after a number that a double changes', '[9007199254740993,x]', 18],
    ['nothing at all', '', 0],
  ])('is the index of %s', (_what, text, position) => {
    expect(findErrorPosition(text, 32)).toBe(position);
  });

  test('is the bracket that is too deep', () => {
    expect(findErrorPosition('[[[1]]]', 2)).toBe(2);
    expect(findErrorPosition('[[[x]]]', 3)).toBe(3);
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
