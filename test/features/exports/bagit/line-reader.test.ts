// The text files of a bag: parsed as written, in pieces of any size.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  parseBagInfo,
  parseOxum,
  infoValuesOf,
  writeBagInfo,
  writeOxum,
} from '../../../../src/features/exports/bagit/bag-info.js';
import {
  parseFetchLine,
  parseManifestLine,
  parseManifestName,
  manifestName,
  writeManifestLine,
  decodePath,
  encodePath,
  findPathProblem,
} from '../../../../src/features/exports/bagit/manifest.js';
import { LineReader, type TagEncoding } from '../../../../src/features/exports/bagit/line-reader.js';

const V1 = { major: 1, minor: 0 };
const V097 = { major: 0, minor: 97 };

describe('paths', () => {
  test('any text round-trips', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.oneof(fc.constantFrom('%', '0', 'A', 'D', 'd', '2', '5', '\r', '\n'), fc.string({ maxLength: 2 })),
        }),
        (path) => {
          const encoded = encodePath(path);
          expect(encoded).not.toMatch(/[\r\n]/);
          expect(decodePath(encoded, V1)).toEqual({ path, loose: false });
        },
      ),
    );
  });

  test.each([
    ['data/a%0Ab%0dc', V1, 'data/a\nb\rc', false],
    ['data/%250A', V1, 'data/%0A', false],
    ['data/%7Ea', V1, 'data/%7Ea', true],
    ['data/%7Ea%0A', V097, 'data/%7Ea\n', false],
    ['data/%25', V097, 'data/%25', false],
  ])('%s is decoded according to its version', (text, version, path, loose) => {
    expect(decodePath(text, version)).toEqual({ path, loose });
  });

  test.each([
    '',
    '/a',
    '~a',
    'C:\\a',
    'C:/a',
    'a\\b',
    'a/../b',
    '..',
    './a',
    'a//b',
    'a/',
    'a\0',
    'a\tb',
    'a\x7f',
    'a\x85',
    'a\ufffd',
    '\udc00',
    'x'.repeat(5_000),
    'a/'.repeat(64) + 'a',
  ])('is invalid: %j', (path) => {
    expect(findPathProblem(path)).not.toBeNull();
  });
  test.each(['data/~a', 'data/.a', 'data/...', 'data/a b', 'data/a\nb', 'data/😀', 'data/%', 'a:b'])(
    'is valid: %j',
    (path) => {
      expect(findPathProblem(path)).toBeNull();
    },
  );
});

describe('lines', () => {
  const read = (encoding: TagEncoding, pieces: readonly Uint8Array[], max = 100): unknown => {
    const reader = new LineReader(encoding, max);
    const lines: string[] = [];
    for (const piece of [...pieces, null]) {
      const found = piece === null ? reader.end() : reader.push(piece);
      if (typeof found === 'string') return found;
      lines.push(...found);
    }
    return lines;
  };
  const swapped = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16();
  const ENCODERS: readonly (readonly [TagEncoding, (text: string) => Buffer])[] = [
    ['UTF-8', (text) => Buffer.from(text)],
    ['UTF-8', (text) => Buffer.from(`\ufeff${text}`)],
    ['UTF-16', (text) => swapped(text)],
    ['UTF-16', (text) => swapped(`\ufeff${text}`)],
    ['UTF-16', (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['UTF-16BE', swapped],
    ['UTF-16LE', (text) => Buffer.from(text, 'utf16le')],
    ['ISO-8859-1', (text) => Buffer.from(text, 'latin1')],
    ['US-ASCII', (text) => Buffer.from(text, 'latin1')],
  ];

  test.each(ENCODERS)('%s gives the same lines in pieces of any size', (encoding, encode) => {
    const unit = fc.constantFrom(
      'a',
      '\r',
      '\n',
      '\r\n',
      ' ',
      ...(encoding === 'US-ASCII' ? [] : ['é']),
      ...(encoding.startsWith('UTF') ? ['😀'] : []),
    );
    fc.assert(
      fc.property(fc.array(unit), fc.array(fc.nat(60)), (units, cuts) => {
        const text = units.join('');
        const bytes = encode(text);
        const ends = [...new Set(cuts.filter((cut) => cut < bytes.length)), bytes.length].sort(
          (one, other) => one - other,
        );
        const pieces = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
        const lines = text.split(/\r\n|\r|\n/);
        if (lines.at(-1) === '') lines.pop();
        expect(read(encoding, pieces)).toEqual(lines);
      }),
    );
  });

  test('reports bytes that do not match the encoding', () => {
    expect(read('UTF-8', [Buffer.from([0x61, 0xc3])])).toBe('encoding');
    expect(read('UTF-8', [Buffer.from([0x61, 0xc0, 0x80])])).toBe('encoding');
    expect(read('UTF-16', [Buffer.from([0, 0x61, 0])])).toBe('encoding');
    expect(read('UTF-16BE', [Buffer.from([0xd8, 0, 0, 0x61])])).toBe('encoding');
    expect(read('US-ASCII', [Buffer.from([0x61, 0x80])])).toBe('encoding');
  });

  test('reports a line that is too long, in pieces of any size', () => {
    expect(read('UTF-8', [Buffer.from('a'.repeat(101))])).toBe('line');
    expect(read('UTF-8', [Buffer.from('a'.repeat(60)), Buffer.from('a'.repeat(60))])).toBe('line');
    expect(read('UTF-8', [Buffer.from(`${'a'.repeat(101)}\n`)])).toBe('line');
    expect(read('UTF-8', [Buffer.from(`${'a'.repeat(100)}\n`)])).toEqual(['a'.repeat(100)]);
  });
});

describe('bag-info.txt', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', ':', 'é', '😀', '-'), minLength: 1, maxLength: 50 });
  const value = fc.array(fc.tuple(word, fc.constantFrom(' ', '  ')), { maxLength: 12 }).map((parts) =>
    parts
      .map(([text, space]) => text + space)
      .join('')
      .trim(),
  );
  const label = fc
    .array(fc.constantFrom('A', 'b', '-', ' '), { minLength: 1, maxLength: 90 })
    .map((parts) => `L${parts.join('')}l`);

  test('any elements round-trip, with long ones folded', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ label, value })), (elements) => {
        const lines = writeBagInfo(elements).split('\n').slice(0, -1);
        expect(parseBagInfo(lines, V1)).toEqual({ elements, malformed: [] });
      }),
    );
    expect(
      writeBagInfo([{ label: 'A', value: 'word '.repeat(30).trim() }])
        .split('\n')
        .every(({ length }) => length < 80),
    ).toBe(true);
  });

  test('labels are case-insensitive and keep their order', () => {
    const { elements, malformed } = parseBagInfo([' lost', 'A:1', 'a: 2', '', '\tmore', 'b : 3', ': 4', 'x'], V1);
    expect(infoValuesOf(elements, 'A')).toEqual(['1', '2 more']);
    expect(malformed).toEqual([1, 6, 7, 8]);
    expect(parseBagInfo(['b : 3'], V097).elements).toEqual([{ label: 'b', value: '3' }]);
  });

  test('the Oxum is two numbers', () => {
    expect(parseOxum(writeOxum({ bytes: 12, files: 3 }))).toEqual({ bytes: 12, files: 3 });
    for (const text of ['', '1', '1.', '.1', '-1.1', '1.1.1', '1e3.1', ' 1.1', `${'9'.repeat(16)}.1`])
      expect(parseOxum(text)).toBeNull();
  });
});

describe('manifests and fetch.txt', () => {
  const digest = 'AB'.repeat(32);

  test('written lines are parsed', () => {
    const path = 'data/a %\r\n b';
    const line = writeManifestLine('ab'.repeat(32), path);
    expect(parseManifestLine(line.trimEnd(), 'sha256', V1)).toEqual({
      digest: 'ab'.repeat(32),
      path,
      problem: null,
      oddities: [],
    });
    for (const start of ['http://x/a%20b -', 'u 5']) {
      expect(parseFetchLine(`${start} ${encodePath(path)}`, V1)).toEqual({ path, problem: null, oddities: [] });
    }
    expect(parseManifestName(manifestName('tag', 'md5'))).toEqual({ kind: 'tag', algorithm: 'md5' });
    expect(parseManifestName('data/manifest-md5.txt')).toBeNull();
  });

  test('unusual notations of a path are reported', () => {
    expect(parseManifestLine(`${digest}\t *./data/%`, 'sha256', V1)).toEqual({
      digest: digest.toLowerCase(),
      path: 'data/%',
      problem: null,
      oddities: ['asterisk', 'relative', 'percent'],
    });
    expect(parseManifestLine('', 'sha256', V1)).toBe('blank');
    for (const line of [
      ' ',
      'data/a',
      digest,
      `${digest} `,
      `${digest}data/a`,
      `${digest}0 data/a`,
      `x${digest.slice(1)} data/a`,
    ]) {
      expect(parseManifestLine(line, 'sha256', V1)).toBe('malformed');
    }
    for (const line of ['u', 'u -', 'u - ', 'u x data/a', 'u -1 data/a', `u ${'9'.repeat(16)} data/a`]) {
      expect(parseFetchLine(line, V1)).toBe('malformed');
    }
  });
});
