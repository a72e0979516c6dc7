// Untrusted text: hidden characters are named, long text is split, and bytes that are not text are shown in hex.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ENTRY_TYPES } from '../../../fixtures/features.js';
import { parseJson, toJsonLines } from '../../../../src/interfaces/inspector/page/text/json-lines.js';
import { authorOfField, entryLines } from '../../../../src/interfaces/inspector/page/text/text-authors.js';
import {
  startOfText,
  hexDump,
  splitParts,
  splitPieces,
  decodeUtf8,
} from '../../../../src/interfaces/inspector/page/text/untrusted.js';
import { character } from '../../../fixtures/characters.js';

const marks = (text: string) => splitPieces(text).flatMap((piece) => ('mark' in piece ? [piece.mark] : []));
/** The text that the pieces represent. */
const whole = (text: string): string =>
  splitPieces(text)
    .map((piece) => ('text' in piece ? piece.text : String.fromCodePoint(Number.parseInt(piece.mark.slice(2), 16))))
    .join('');

test('a name of two megabytes takes no longer than reading it, whatever its structure', () => {
  for (const part of ['args_summary.', 'scope.', '.title.x', ' sha256']) {
    const long = part.repeat(2_000_000 / part.length);
    for (const type of ENTRY_TYPES) authorOfField(type, {}, { path: long, value: long });
    const value = { args_summary: { [long]: Array.from({ length: 300 }, (_, at) => ({ at: String(at) })) } };
    const { lines } = toJsonLines(value);
    expect(lines).toHaveLength(400);
    const author = entryLines('step_trace', value);
    expect(lines.filter((line) => line.kind === 'text').map(author)).not.toContain(null);
    // The name itself is listed once, and is not repeated for its children.
    expect(Math.max(...lines.map(({ path }) => path.length))).toBeLessThan(200);
  }
});

describe('untrusted text', () => {
  test('names every invisible, reordering or joining character', () => {
    const hidden: readonly (readonly [text: string, mark: string])[] = [
      ['\u202e', 'U+202E'],
      ['\u2066', 'U+2066'],
      ['\u200b', 'U+200B'],
      ['\u200d', 'U+200D'],
      ['\ufeff', 'U+FEFF'],
      ['\u00ad', 'U+00AD'],
      ['\u0000', 'U+0000'],
      ['\u001b', 'U+001B'],
      ['\r', 'U+000D'],
      ['\u0085', 'U+0085'],
      ['\u2028', 'U+2028'],
      ['\u061c', 'U+061C'],
      ['\u180e', 'U+180E'],
      ['\u3164', 'U+3164'],
      ['\ufe0f', 'U+FE0F'],
      ['\u{e0041}', 'U+E0041'],
      ['\ud800', 'U+D800'],
      ['\ue000', 'U+E000'],
    ];
    for (const [character, mark] of hidden) expect([mark, marks(`a${character}b`)]).toEqual([mark, [mark]]);
    expect(marks('line\n\ttab, Ünïcode, 漢字, עברית, 👍')).toEqual([]);
  });

  test('neither loses nor adds anything', () => {
    fc.assert(fc.property(fc.string({ unit: character, maxLength: 200 }), (text) => expect(whole(text)).toBe(text)));
  });

  test('a part never ends inside a surrogate pair, and the parts are complete', () => {
    expect(startOfText('ab👍', 3)).toBe('ab');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.integer({ min: 2, max: 40 }), (text, chars) => {
        const all = splitParts(text, chars);
        expect(all.join('')).toBe(text);
        expect(all.every((part) => part.length <= chars && part.isWellFormed())).toBe(text.isWellFormed());
      }),
    );
  });

  test('splits two megabytes', () => {
    const text = 'x\u202e'.repeat(1_000_000);
    expect(splitParts(text).length).toBe(62);
    expect(splitPieces(startOfText(text, 2_048))).toHaveLength(2_048);
  });

  test('bytes that are not UTF-8 are shown in hex', () => {
    expect(decodeUtf8(new TextEncoder().encode('\ufeffä'))).toBe('\ufeffä');
    expect(decodeUtf8(Uint8Array.of(0x61, 0xff))).toBe(null);
    expect(decodeUtf8(Uint8Array.of(0xed, 0xa0, 0x80))).toBe(null);
    expect(hexDump(Uint8Array.from({ length: 18 }, (_, at) => at))).toBe(
      '000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n000010  10 11',
    );
  });
});

describe('JSON as lines', () => {
  test('has names, values and their paths, and at most the requested number of lines', () => {
    const { lines, cut } = toJsonLines({ a: { b: [1, 'x', null] }, c: {} });
    expect(lines.map(({ depth, name, value, path }) => [depth, name, value, path])).toEqual([
      [0, 'a', null, 'a'],
      [1, 'b', null, 'a.b'],
      [2, '0', '1', 'a.b.0'],
      [2, '1', 'x', 'a.b.1'],
      [2, '2', 'null', 'a.b.2'],
      [0, 'c', '{}', 'c'],
    ]);
    expect(cut).toBe(false);
    expect(toJsonLines({ a: 1, b: 2, c: 3 }, 2)).toMatchObject({ lines: { length: 2 }, cut: true });
  });

  test('accepts any depth', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 3_000; level += 1) deep = [deep];
    expect(toJsonLines(deep).lines.at(-1)?.value).toBe('…');
    expect([parseJson('"text"'), parseJson('{'), parseJson('[1]')]).toEqual([null, null, { value: [1] }]);
  });
});
