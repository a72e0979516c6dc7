import { describe, expect, test } from '@jest/globals';
import { OUTSIDE_DEPTH_MAX, readJson } from '../../../../src/core/contract/json.js';

describe('readJson', () => {
  test.each([
    ['{"decision":false,"decision":true}'],
    ['{"decision":false,"\\u0064ecision":true}'],
    ['{"a":{"b":1,"b":2}}'],
    ['[{"a":1,"a":1}]'],
    ['{"__proto__":{}}'],
    ['{"a":1} {}'],
    ['\uFEFF{}'],
    [''],
    ['{"a":1e999}'],
    ['"\\ud800"'],
  ])('refuses %j', (text) => {
    expect(readJson(text)).toBeUndefined();
    expect(readJson(Buffer.from(text))).toBeUndefined();
  });

  test('refuses bytes that are not UTF-8, and a text that is nested too deeply', () => {
    expect(readJson(Uint8Array.of(0x22, 0xff, 0x22))).toBeUndefined();
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(readJson(nested(OUTSIDE_DEPTH_MAX))).toBeDefined();
    expect(readJson(nested(OUTSIDE_DEPTH_MAX + 1))).toBeUndefined();
  });

  test('returns the value of a strict text', () => {
    expect(readJson(Buffer.from('{"a":[1,null,"\u00e9"]}'))).toEqual({ a: [1, null, '\u00e9'] });
    expect(readJson('null')).toBeNull();
  });
});
