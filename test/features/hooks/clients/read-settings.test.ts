// Settings of clients as JSON objects: TOML, and JSON with comments.

import { expect, test } from '@jest/globals';
import { readCommentedObject, readToml } from '../../../../src/features/hooks/clients/read-settings.js';

test('tables, arrays of tables, dotted keys and dates become JSON', () => {
  const text = `
model = "m"
a.b = [1, 2.5, true]
at = 2026-01-02T03:04:05Z
far = inf
[[hooks.PreToolUse]]
matcher = 'x'
[projects."/home/me/it is"]
trust_level = "trusted"
`;
  expect(JSON.parse(JSON.stringify(readToml(text)))).toEqual({
    model: 'm',
    a: { b: [1, 2.5, true] },
    at: '2026-01-02T03:04:05.000Z',
    far: 'Infinity',
    hooks: { PreToolUse: [{ matcher: 'x' }] },
    projects: { '/home/me/it is': { trust_level: 'trusted' } },
  });
});

test('no key reaches a prototype', () => {
  const found = readToml('[__proto__]\nhooks = false\n[constructor.prototype]\nhooks = false');
  expect(Object.getPrototypeOf(found)).toBe(null);
  expect(Object.keys(found ?? {})).toEqual(['__proto__', 'constructor']);
  expect(({} as { hooks?: boolean }).hooks).toBe(undefined);
});

test.each([
  ['a key twice', 'a = 1\na = 2'],
  ['an open text', 'a = "x'],
  ['a number that JavaScript cannot hold', 'a = 9007199254740993'],
  ['arrays in one another', `a = ${'['.repeat(40)}${']'.repeat(40)}`],
  ['no TOML', '{ "a": 1 }'],
])('%s makes the file unreadable', (_name, text) => {
  expect(readToml(text)).toBe(null);
});

test.each([
  ['comments', '{ // one\n "a": /* two\n */ 1 }', { a: 1 }],
  ['an open comment at the end', '{"a":1} /* x', { a: 1 }],
  ['commas before brackets', '{"a":[1, 2,\n],}', { a: [1, 2] }],
  ['texts that look like comments', '{"a":"// x","b":"/* y"}', { a: '// x', b: '/* y' }],
  ['texts with brackets behind a comma', '{"a":["x", "{y,z}"],"b]":1}', { a: ['x', '{y,z}'], 'b]': 1 }],
  ['an escaped quote', String.raw`{"a":"\"// x"}`, { a: '"// x' }],
])('%s are read as the client reads them', (_name, text, found) => {
  expect(readCommentedObject(text)).toEqual(found);
});

test.each(['{"a":1,,}', '{"a":1', '[1]', '{"a":"x'])('%s is no object', (text) => {
  expect(readCommentedObject(text)).toBe(null);
});
