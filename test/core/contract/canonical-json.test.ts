import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../src/core/contract/json.js';
import { character } from '../../fixtures/characters.js';
import { suite } from '../../fixtures/suites.js';

const jcs = suite('jcs');

describe('RFC 8785', () => {
  test('gives the six files of the reference implementation, byte for byte', () => {
    if (jcs === null) return;
    const names = readdirSync(`${jcs}/testdata/input`);
    expect(names).toHaveLength(6);
    for (const name of names) {
      const value: unknown = JSON.parse(readFileSync(`${jcs}/testdata/input/${name}`, 'utf8'));
      const bytes = Buffer.from(canonicalJson(value));
      expect(bytes.equals(readFileSync(`${jcs}/testdata/output/${name}`))).toBe(true);
      const listed = readFileSync(`${jcs}/testdata/outhex/${name.replace('.json', '.txt')}`, 'latin1');
      expect(bytes.toString('hex')).toBe(listed.replaceAll(/\s/g, ''));
    }
  });

  // Appendix B: the bits of a double, and its one text.
  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])('the double %s is %s', (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text);
  });

  test.each(['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])('the double %s has no text', (bits) => {
    expect(() => canonicalJson([Buffer.from(bits, 'hex').readDoubleBE()])).toThrow(
      expect.objectContaining({ code: 'INVARIANT' }),
    );
  });
});

describe('canonical JSON', () => {
  test('has the same value, and is its own canonical form', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: character }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('keys are in the order of their UTF-16 code units, at every depth', () => {
    expect(canonicalJson({ b: 1, a: { '\ufb33': 1, '\ud83d\ude00': 2, '10': 3, '9': 4, '': 5 } })).toBe(
      '{"a":{"":5,"10":3,"9":4,"\ud83d\ude00":2,"\ufb33":1},"b":1}',
    );
  });

  test('an own key __proto__ is a key like any other', () => {
    expect(canonicalJson(JSON.parse('{"__proto__":{"a":1},"A":2}'))).toBe('{"A":2,"__proto__":{"a":1}}');
  });

  test.each([
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in a key', { '\udc00': 1 }],
    ['a hole in an array', [1, , 2]],
    ['undefined in an array', [undefined]],
    ['a function', { f: () => 1 }],
    ['a symbol', [Symbol('s')]],
    ['a bigint', { n: 1n }],
  ])('%s is rejected', (_what, value) => {
    expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });

  test('writes 129 levels, and rejects 130 levels and more than any stack holds', () => {
    const nested = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
    expect(canonicalJson(nested(129))).toHaveLength(258);
    expect(() => canonicalJson(nested(130))).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    expect(() => canonicalJson(nested(100_000))).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });

  test('an undefined member is omitted', () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
  });
});
