// S4-73: which forms of a text are decoded, at the limits of each form.

import { describe, expect, test } from '@jest/globals';
import { decodeReadings, listSearchReadings } from '../../../src/features/promotions/decode-readings.js';

const PASSAGE = 'the brakes had failed';
const hex = (text: string): string => Buffer.from(text).toString('hex');
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const hexPairs = (text: string): readonly string[] => [...Buffer.from(text)].map((byte) => byte.toString(16));

const textsOf = (text: string, unspaced: boolean): readonly string[] =>
  listSearchReadings(text)
    .filter((reading) => reading.unspaced === unspaced)
    .map((reading) => reading.text);

describe('S4-73 escapes are decoded', () => {
  test.each([
    ['\\u escapes in either case', 'a|\\u0041bc|\\u00e9t\\u00E9', 'a|Abc|été'],
    ['\\u escapes of four digits only', '\\u0062\\u004', 'b\\u004'],
    ['a run of percent escapes', 'my|%62%72%61%6B|it', 'my|brak|it'],
    ['percent escapes of more than one byte', 'xyz%c3%a4%62%72%61', 'xyzäbra'],
    ['decimal entities', '&#98;&#0000114|&#97', 'br|a'],
    ['hexadecimal entities', '&#x62;&#X000072|&#x61;&#xE9', 'br|aé'],
    ['the last code point', '&#x10ffff;', '\u{10ffff}'],
    ['names of accented letters', '&eacute;|&Uuml;|&Agrave;|&ocirc;|&ntilde;|&ccedil;|&aring;', 'e|U|A|o|n|c|a'],
    ['the names of a sharp s and of the invisible characters', 'a&szlig;b&shy;c&zwnj;d&zwj;e', 'aßbcde'],
    ['the names of blanks and signs', 'a&nbsp;b&amp;c&lt;d&gt;e&quot;f&apos;g&ensp;h', 'a b c d e f g h'],
  ])('%s', (_, text, decoded) => {
    expect(decodeReadings(text)).toEqual([decoded]);
  });

  test.each([
    ['an empty text', ''],
    ['a plain text', 'the brakes'],
    ['a code point that does not exist', '&#1114112;&#x110000;'],
    ['an entity of no letter', '&1acute;&éacute;&;'],
    ['a percent escape of fewer than four characters', '%62%72%61'],
    ['percent escapes that are not readable', '%e2%82%ac%20%41%42'],
    ['digits that are not hexadecimal', '\\u00gg%gg&#xgg;&#gg;'],
  ])('but not %s', (_, text) => {
    expect(decodeReadings(text)).toEqual([]);
  });
});

describe('S4-73 hex is decoded', () => {
  test.each([
    ['without separators', hex('brakes!!')],
    [
      'with \\x',
      hexPairs('brakes!!')
        .map((pair) => `\\x${pair}`)
        .join(''),
    ],
    [
      'with 0x',
      hexPairs('brakes!!')
        .map((pair) => `0x${pair}`)
        .join(', '),
    ],
    ['in capitals with colons', hexPairs('brakes!!').join(':').toUpperCase()],
    ['with hyphens and semicolons', hexPairs('brakes!!').join('-').replace('-', ';')],
    ['with two blanks', hexPairs('brakes!!').join('\n ')],
    ['between other texts', `|||${hex('brakes!!')}|||`],
    ['from the second digit on', `f${hex('brakes!!')}6`],
  ])('%s', (_, text) => {
    expect(decodeReadings(text)).toContain('brakes!!');
  });

  test.each([
    ['fewer than eight pairs', hex('brakes!')],
    ['pairs with three blanks between them', hexPairs('brakes!!').join('   ')],
    ['pairs with other separators', hexPairs('brakes!!').join('|')],
    ['single digits', hex('brakes!!').split('').join('|')],
  ])('but not %s', (_, text) => {
    expect(decodeReadings(text)).not.toContain(Buffer.from(text.replace(/[^0-9a-f]/g, ''), 'hex').toString());
  });

  test('in whole pairs: a digit too many at the end is ignored', () => {
    expect(decodeReadings(`|${hex('brakes!!')}6|`)).toEqual(['brakes!!']);
    expect(decodeReadings(`|6${hex('brakes!!')}|`)).toContain('brakes!');
    expect(decodeReadings(`|6${hex('brakes!!')}62|`)).toContain('brakes!!');
  });

  test('each run by itself', () => {
    expect(decodeReadings(`${hex('brakes!!')}|${hex('failed..')}`)).toEqual(
      expect.arrayContaining(['brakes!!', 'failed..']),
    );
  });
});

describe('S4-73 base64 is decoded', () => {
  const encoded = base64(PASSAGE);

  test.each([
    ['as it is', encoded],
    ['in its form for addresses', Buffer.from('ää??>>~~öö the brakes').toString('base64url'), 'ää??>>~~öö the brakes'],
    ['with padding', base64('the brakes had fail'), 'the brakes had fail'],
    ['after one foreign character', `x${encoded}`],
    ['after two foreign characters', `xy${encoded}`],
    ['after three foreign characters', `xyz${encoded}`],
    ['with line breaks', encoded.replace(/.{7}/g, '$&\r\n')],
    ['with a dot between all characters', encoded.split('').join('.')],
    ['in one of two runs', `${base64('it is known that')}|${encoded}`],
    ['in two runs of sixteen characters', `${base64('the brakes!!')}|${encoded}`, 'the brakes!!'],
  ])('%s', (_, text, passage = PASSAGE) => {
    expect(decodeReadings(text)).toContain(passage);
  });

  test('from sixteen characters', () => {
    expect(decodeReadings('dGhlIGJyYWtlcyEh')).toEqual(['the brakes!!']);
    expect(decodeReadings('dGhlIGJyYWtlcyE')).toEqual([]);
    expect(decodeReadings('xdGhlIGJyYWtlcyE')).not.toContain('the brakes!');
    expect(decodeReadings('|dGhl|dGhlIGJyYWtlcyEh|')).toEqual(['the brakes!!']);
  });

  test('with one run that is both in the text and in the text without blanks, once', () => {
    const readings = decodeReadings(encoded);
    expect(new Set(readings).size).toBe(readings.length);
    expect(readings.filter((reading) => reading === PASSAGE)).toHaveLength(1);
  });

  test('up to three times', () => {
    const once = base64(PASSAGE);
    const twice = base64(once);
    const thrice = base64(twice);
    expect(decodeReadings(thrice)).toEqual(expect.arrayContaining([twice, once, PASSAGE]));
    expect(decodeReadings(base64(thrice))).toEqual(expect.arrayContaining([thrice, twice, once]));
    expect(decodeReadings(base64(thrice))).not.toContain(PASSAGE);
  });
});

describe('S4-73 decoded bytes are readable text', () => {
  const bytes = (values: readonly number[]): string => Buffer.from(values).toString('hex');
  const NUL = 0;
  const A = 0x61;
  const BROKEN = 0xff;

  test.each([
    ['four of five characters are letters', [A, A, A, A, NUL, A, A, A, A, NUL], 'aaaa\0aaaa\0'],
    ['all are punctuation', [...Buffer.from('.,!?.,!?')], '.,!?.,!?'],
    ['all are digits', [...Buffer.from('٣٣٣٣')], '٣٣٣٣'],
    ['all are blanks', [...Buffer.from('\t \n\r\t \n\r')], '\t \n\r\t \n\r'],
    ['a letter of two code units counts once', [...Buffer.from('𐐷𐐷𐐷𐐷'), NUL], '𐐷𐐷𐐷𐐷\0'],
    ['a quarter of the bytes is text', [A, A, A, A, ...Array.from({ length: 12 }, () => BROKEN)], 'aaaa'],
  ])('if %s', (_, values, text) => {
    expect(decodeReadings(`|${bytes(values)}|`)).toContain(text);
  });

  test.each([
    ['three of four characters are letters', [A, A, A, NUL, A, A, A, NUL], 'aaa\0aaa\0'],
    ['three characters remain', [A, A, A, ...Array.from({ length: 9 }, () => BROKEN)], 'aaa'],
    ['less than a quarter of the bytes is text', [A, A, A, A, ...Array.from({ length: 13 }, () => BROKEN)], 'aaaa'],
    ['symbols are most of it', [...Buffer.from('+++++++a')], '+++++++a'],
    ['nothing is readable', [...Buffer.from('++++++++')], '++++++++'],
  ])('but not if %s', (_, values, text) => {
    expect(decodeReadings(`|${bytes(values)}|`)).not.toContain(text);
  });

  test('a truncated character at either end is ignored', () => {
    const cut = Buffer.from('äthe brakesä').subarray(1, -1);
    expect(decodeReadings(`|${cut.toString('hex')}|`)).toContain('the brakes');
  });
});

describe('S4-73 encodings of different kinds are combined', () => {
  test('a text in several escapes is decoded step by step', () => {
    expect(decodeReadings('\\u0062|&#114;|')).toEqual(['b|&#114;|', '\\u0062|r|', 'b|r|']);
    expect(decodeReadings('&#92;u0062|')).toEqual(['\\u0062|', 'b|']);
  });

  test('a decoded form that is the text itself is not a reading', () => {
    expect(decodeReadings('|the|brakes|')).toEqual([]);
    // Both escapes can be decoded first: the last form is reached twice, and is one reading.
    const readings = decodeReadings('\\u0062|&#114;|');
    expect(new Set(readings).size).toBe(readings.length);
    expect(readings).toHaveLength(3);
  });

  test('the readings of one text have at most sixteen times its length', () => {
    const percent = (text: string): string =>
      hexPairs(text)
        .map((pair) => `%${pair}`)
        .join('');
    const unicode = (text: string): string => Array.from(text, (c) => `\\u00${hex(c)}`).join('');
    const entity = (text: string): string => Array.from(text, (c) => `&#${c.charCodeAt(0)};`).join('');
    const codes = [percent, unicode, entity];
    const nested = codes.flatMap((one) =>
      codes
        .filter((other) => other !== one)
        .flatMap((other) => codes.filter((third) => third !== other).map((third) => one(other(third('|'))))),
    );
    const text = `${nested.join('|')}${'|'.repeat(20_000)}`;
    const readings = decodeReadings(text);
    const total = readings.reduce((sum, { length }) => sum + length, 0);
    expect(readings.length).toBe(16);
    expect(total).toBeLessThanOrEqual(16 * text.length);
  });
});

describe('S4-73 a text is also read in other orders and alphabets', () => {
  test('as it is, in ROT13, reversed, and with its words reversed', () => {
    expect(listSearchReadings('The brakes, AMNZ amnz 2')).toEqual([
      { text: 'The brakes, AMNZ amnz 2', unspaced: false },
      { text: 'Gur oenxrf, NZAM nzam 2', unspaced: false },
      { text: '2 znma ZNMA ,sekarb ehT', unspaced: false },
      { text: '2 amnz AMNZ brakes, The', unspaced: false },
    ]);
    expect(textsOf('a😀', false)).toEqual(['a😀', 'n😀', '😀a', 'a😀']);
  });

  test('an empty text has four empty readings', () => {
    expect(listSearchReadings('')).toEqual(Array.from({ length: 4 }, () => ({ text: '', unspaced: false })));
  });

  test('each decoded form is read in the same way', () => {
    expect(textsOf('&#98;r|', false)).toEqual(['&#98;r|', '&#98;e|', '|r;89#&', '&#98;r|', 'br|', 'oe|', '|rb', 'br|']);
  });

  test('words of 24 and more letters and digits are read without word breaks', () => {
    const [one, other] = ['äöü4'.repeat(6), 'ñ'.repeat(24)];
    expect(textsOf(`|${one}|||${other}|`, true)).toEqual([`${one} ${other}`]);
    expect(textsOf(`|${one.slice(1)}|`, true)).toEqual([]);
    expect(textsOf(`|${'+'.repeat(24)}|`, true)).toEqual([]);
    expect(textsOf(`|${'٣'.repeat(24)}|`, true)).toEqual(['٣'.repeat(24)]);
  });

  test.each([
    ['five single letters', 'b r a k e', ['brake']],
    ['five single letters at the end of a text', 'of b r a k e', ['brake']],
    ['single digits', '1 2 3 4 5', ['12345']],
    ['letters of two code units', '𐐷 𐐸 𐐹 𐐺 𐐻', ['𐐷𐐸𐐹𐐺𐐻']],
    ['two runs that a word separates', 'b r a k e of l o r r y', ['brake lorry']],
    ['letters with four characters between them', 'b----r -- a - k....e', ['brake']],
    ['letters with four characters of two code units between them', 'b😀😀😀😀r a k e', ['brake']],
    ['letters with invisible characters', 'b\u200b\u0301\u00ad r\u3164 a k e', ['brake']],
    ['two runs that five characters separate', 'b r a k e-----l o r r y', ['brake lorry']],
    ['two runs that five characters of two code units separate', 'b r a k e😀😀😀😀😀l o r r y', ['brake lorry']],
    ['two runs that nine characters separate', 'b r a k e---------l o r r y', ['brake lorry']],
  ])('%s are joined', (_, text, joined) => {
    expect(textsOf(text, true)).toEqual(joined);
  });

  test.each([
    ['four single letters', 'b r a k'],
    ['five letters with five characters before the last', 'b r a k-----e'],
    ['four letters, a word and four letters', 'b r a k es l o r r'],
    ['words', 'brakes of a lorry'],
    ['nothing', ''],
    ['signs', '- - - - -'],
  ])('%s are not joined', (_, text) => {
    expect(textsOf(text, true)).toEqual([]);
  });

  test('the space between letters is measured from the end of the last word', () => {
    expect(textsOf('brakes b r a k e', true)).toEqual(['brake']);
    expect(textsOf('b r a k e brakes', true)).toEqual(['brake']);
    expect(textsOf('of the b r a k e s and of the l o r r y', true)).toEqual(['brakes lorry']);
  });
});
