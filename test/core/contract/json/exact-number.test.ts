// C89: a number is accepted exactly as written, or rejected.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isExactNumber, scanJson } from '../../../../src/core/contract/json.js';

const exactly = (text: string) => scanJson(text, 8, 'exact');
const refused = { ok: false, problem: 'number_not_exact' };

describe('C89 numbers', () => {
  test.each(['9007199254740991', '-9007199254740991', '9007199254740992', '9007199254740994', '1e21', '1E+23', '-0'])(
    '%s is accepted unchanged',
    (text) => {
      expect(exactly(text)).toEqual({ ok: true, value: Number(text) });
    },
  );

  test.each([
    '9007199254740993',
    '-9007199254740993',
    '9007199254740993.0',
    '9007199254740993e0',
    '900719925474099300e-2',
    '9007199254740993.5',
    '123456789012345678',
    '18446744073709551615',
    '100000000000000000000001',
    '1.000000000000000000001e21',
  ])('%s is rejected: a double would change it', (text) => {
    expect(exactly(text)).toEqual(refused);
    expect(exactly(`{"amount":[${text}]}`)).toEqual(refused);
    expect(scanJson(text, 8)).toEqual({ ok: true, value: Number(text) });
  });

  test.each(['0.1', '0.10000000000000001', '3.141592653589793238', '1e-400', '123.456e7'])(
    '%s is a fraction, or small, and is parsed as in JSON',
    (text) => {
      expect(exactly(text)).toEqual({ ok: true, value: Number(text) });
    },
  );

  test.each([
    '9007199254740994.0',
    '9007199254740994.00',
    '90071992547409940e-1',
    '900719925474099400E-2',
    '9.007199254740994e15',
    '9.007199254740994E+15',
    '0.9007199254740994e16',
    '0.009007199254740994e18',
    '-0.009007199254740994e18',
    '100e19',
    '1000000000000000000000',
    '-1000000000000000000000.000',
    '0.001e24',
  ])('%s is another spelling of a number that a double holds, and is accepted', (text) => {
    expect(isExactNumber(text, Number(text))).toBe(true);
    expect(exactly(text)).toEqual({ ok: true, value: Number(text) });
  });

  test('the limit is 2^53: below it a double may round, and from there on it may not', () => {
    const [below, limit] = ['9007199254740991.4', '9007199254740992'];
    expect(isExactNumber(below, Number(below))).toBe(true);
    expect(isExactNumber(limit, Number(limit))).toBe(true);
    expect(isExactNumber(`${limit}.4`, Number(limit))).toBe(false);
    expect(isExactNumber(`-${limit}.4`, -Number(limit))).toBe(false);
  });

  test.each([
    ['9007199254740994', -9007199254740994],
    ['-9007199254740994', 9007199254740994],
    ['9007199254740994', 90071992547409940],
    ['0.09007199254740994e16', 9007199254740994],
    ['9007199254740994e1', 9007199254740994],
  ])('%s does not mean %d: sign and size count', (text, value) => {
    expect(isExactNumber(text, value)).toBe(false);
  });

  test.each(['x9007199254740994', '9007199254740994x', '9007199254740994 '])(
    '%j is no decimal, so it is not exact',
    (text) => {
      expect(isExactNumber(text, 9007199254740994)).toBe(false);
    },
  );

  test('a whole number of any size is accepted exactly if a double can represent it', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }), fc.nat(6), (whole, zeros) => {
        fc.pre(whole !== 0n);
        const written = [`${whole}`, `${whole}.${'0'.repeat(zeros + 1)}`, `${whole}${'0'.repeat(zeros)}e-${zeros}`];
        const isExact = plainly(Number(whole)) === whole;
        for (const text of written) expect(exactly(text).ok).toBe(isExact);
      }),
      { numRuns: 2_000, seed: 8 },
    );
  });
});

/** The whole number that the shortest decimal of a double means. */
function plainly(value: number): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e\+(\d+))?$/.exec(String(value)) ?? [];
  return BigInt(`${sign}${whole}${fraction.padEnd(Number(exponent), '0')}`);
}
