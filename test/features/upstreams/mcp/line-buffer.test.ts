// Splits bytes into lines, wherever the pieces end, with a limit for a line without an end.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { LineBuffer } from '../../../../src/features/upstreams/mcp/child-lines.js';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');

test('lines do not depend on how the bytes are split', () => {
  const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '😀', '\n', '\r') }), { maxLength: 6 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 7 }), (pieces, size) => {
      const whole = bytes(pieces.join(''));
      const buffer = new LineBuffer(1_000);
      const lines: string[] = [];
      for (let at = 0; at < whole.length; at += size) lines.push(...buffer.push(whole.subarray(at, at + size)));
      expect([...lines, buffer.takeRest()]).toEqual(pieces.join('').split('\n'));
    }),
  );
});

describe('a line', () => {
  test('of the maximum length is accepted, and one byte more is not', () => {
    const line = 'x'.repeat(100_000);
    expect(new LineBuffer(100_000).push(bytes(`${line}\n`))).toEqual([line]);
    const buffer = new LineBuffer(100_000);
    buffer.push(bytes(line));
    expect(() => buffer.push(bytes('x'))).toThrow('more than 100000 bytes');
    expect(() => new LineBuffer(100_000).push(bytes(`${line}x\n`))).toThrow('more than 100000 bytes');
  });

  test('that is not UTF-8 is an error', () => {
    expect(() => new LineBuffer(10).push(Buffer.from([0x61, 0xff, 0x0a]))).toThrow('not valid');
  });

  test('may begin with a byte order mark, which is kept', () => {
    expect(new LineBuffer(10).push(bytes('\ufeffa\n'))).toEqual(['\ufeffa']);
  });
});
