// S4-73, C56: finds a passage that was copied from a source, however it is disguised; other texts do not match.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Json } from '../../../src/core/contract/json.js';
import {
  createJointPassageSearch,
  stringsIn,
  wordsIn,
  type PassageSearch,
} from '../../../src/features/promotions/passage-search.js';
import { sized } from '../../fixtures/campaign.js';

/** Passages of a text as long as the search of a whole record looks for them, or of so many words. */
const createPassageSearch = (text: string, words = 8): PassageSearch =>
  createJointPassageSearch([{ text, words, wordsMin: 3, letters: words * 8 }]);
const hasSharedPassage = (candidate: string, source: string, words?: number): boolean =>
  createPassageSearch(candidate, words).occursIn(source);

const SOURCE = `The witness, Ms. Müller, stated on 14 March 2024 that the brakes of the lorry had failed twice before
  the accident, and that her employer was informed of this in writing by the maintenance crew.`;
const PASSAGE = 'the brakes of the lorry had failed twice before the accident';
const within = (text: string): string => `Lesson learned. ${text}; nothing else is known.`;

describe('S4-73: a copied passage is found', () => {
  test.each([
    ['as it is', PASSAGE],
    ['exactly eight words', 'lorry had failed twice before the accident and'],
    ['in capitals', PASSAGE.toUpperCase()],
    ['over several lines', PASSAGE.replaceAll(' ', '\r\n\t')],
    ['with other punctuation', PASSAGE.replaceAll(' ', ' ... "')],
    ['with numbers and names', 'MULLER stated on 14.March/2024 that the'],
    ['with accents', PASSAGE.replaceAll('a', 'á').replaceAll('e', 'e\u0308\u0301')],
    ['in full width', PASSAGE.replaceAll(/[a-z]/g, (c) => String.fromCodePoint(c.charCodeAt(0) + 0xfee0))],
    [
      'in bold letters of mathematics',
      PASSAGE.replaceAll(/[a-z]/g, (c) => String.fromCodePoint(c.charCodeAt(0) + 0x1d3b9)),
    ],
    ['with soft hyphens', PASSAGE.replaceAll('r', '\u00adr')],
    ['with zero-width characters', PASSAGE.replaceAll(/[aeiou]/g, '$&\u200b\u200d\u2060\ufeff')],
    ['with fillers and control characters', PASSAGE.replaceAll(/[aeiou]/g, '$&\u3164\0\u{e0061}')],
    ['with words divided at line ends', PASSAGE.replace('failed', 'fai-\n  led').replace('before', 'be\u2010\r\nfore')],
    ['with HTML in it', PASSAGE.replace('lorry', '<b class="x">lorry</b><br/>')],
    ['inside a tag', `<img alt="${PASSAGE}">`],
    ['in the target of a link', `[see](${PASSAGE.replaceAll(' ', '-')})`],
    ['with links in it', PASSAGE.replace('lorry', '[lorry](https://example.org/one)')],
    ['with letters as numbers', PASSAGE.replaceAll('a', '&#97;').replaceAll('o', '&#x6F;')],
    ['with spaces as entities', PASSAGE.replaceAll(' ', '&nbsp;')],
    ['in Markdown', PASSAGE.replaceAll(' ', '** __')],
    ['as the name of a file', PASSAGE.replaceAll(' ', '_')],
    ['cut into the strings of a list', stringsIn(PASSAGE.split(' '))!.join('\n')],
    ['a long one in single letters', SOURCE.slice(0, 120).split('').join(' ')],
    ['a long one without spaces', SOURCE.slice(0, 120).replaceAll(/\s/g, '')],
    ['a long one with hyphens inside words', SOURCE.slice(0, 120).replaceAll(/[aeiou]/g, '$&-')],
  ])('%s', (_, copied) => {
    expect(hasSharedPassage(within(copied), SOURCE)).toBe(true);
    // The reverse: a source may be written like this as well.
    expect(hasSharedPassage(within(PASSAGE), `${SOURCE} ${copied}`)).toBe(true);
  });

  test('in a source that is disguised instead', () => {
    const source = SOURCE.replaceAll(' ', ' \u00ad')
      .replace('lorry', '<i>lor&#114;y</i>')
      .replace('failed', 'fai-\nled');
    expect(hasSharedPassage(within(PASSAGE), source)).toBe(true);
  });

  test('with case folded, also where one letter becomes two or has two forms', () => {
    const german = 'die größte straße der stadt muß gesperrt werden';
    const greek = 'ο δικηγόρος του πελάτη είπε πως όλοι έφυγαν';
    expect(hasSharedPassage(german.toUpperCase(), german)).toBe(true);
    expect(hasSharedPassage(greek.toUpperCase(), greek)).toBe(true);
  });

  test('in scripts without spaces between words, from eight characters', () => {
    const source = '委托人承认在事故发生之前已经知道刹车失灵。';
    expect(hasSharedPassage('我们得知：事故发生之前已经知道', source)).toBe(true);
    expect(hasSharedPassage('事故发生之前已', source.replace('之', '的'))).toBe(false);
  });

  test('across the pieces in which a long source is read', () => {
    const words = Array.from({ length: 20_000 }, (_, n) => `w${n}`);
    const source = words.join(' ');
    const { length } = source;
    for (let at = 32_768; at < length; at += 32_768) {
      const first = source.slice(0, at).split(' ').length - 4;
      const copied = words.slice(first, first + 8);
      expect(hasSharedPassage(copied.join(' '), source)).toBe(true);
      const letters = words.slice(first - 4, first + 12).join('');
      expect(hasSharedPassage(letters, source)).toBe(true);
    }
  });
});

describe('S4-73: other texts do not match', () => {
  test.each([
    ['seven words', 'lorry had failed twice before the accident'],
    ['one word in the middle is another', PASSAGE.replace('failed', 'worked')],
    ['the same words in another order', PASSAGE.split(' ').reverse().join(' ')],
    ['nothing', ''],
    ['no words', '... --- !!!'],
  ])('%s', (_, text) => {
    expect(hasSharedPassage(within(text), SOURCE)).toBe(false);
  });

  test('a short candidate must not occur as a whole, if it has three words', () => {
    expect(hasSharedPassage('failed twice before', SOURCE)).toBe(true);
    expect(hasSharedPassage('Failed. Twice.', SOURCE)).toBe(false);
    expect(hasSharedPassage('failed twice again', SOURCE)).toBe(false);
    expect(hasSharedPassage('failed', SOURCE)).toBe(false);
    expect(hasSharedPassage('failed twice before', '')).toBe(false);
  });

  test('what the documentation excludes is not found', () => {
    const homoglyphs = PASSAGE.replaceAll('a', 'а').replaceAll('e', 'е');
    const base64 = Buffer.from(PASSAGE).toString('base64');
    const spaced = 'lorry had failed twice'.split('').join(' ');
    for (const text of [homoglyphs, base64, spaced]) expect(hasSharedPassage(within(text), SOURCE)).toBe(false);
  });

  test('one candidate is compared with many sources, each from its beginning', () => {
    const passages = createPassageSearch(PASSAGE);
    const [first, second] = ['the brakes of the lorry', 'had failed twice before the accident'];
    expect([first, second, SOURCE, second, first].map((text) => passages.occursIn(text))).toEqual([
      false,
      false,
      true,
      false,
      false,
    ]);
  });
});

const letter = fc.constantFrom(...Array.from('abcdefghijklmnopqrstuvwxyzäéßñ0123456789'));
const word = fc.string({ unit: letter, minLength: 1, maxLength: 9 });
const break_ = fc
  .array(fc.constantFrom(' ', '\n', '\t', ', ', '. ', ' -- ', ' "', '; (', '* ', '\u2003', ' \u200b '), {
    minLength: 1,
    maxLength: 2,
  })
  .map((parts) => ` ${parts.join('')}`);
const noise = fc.constantFrom('', '', '', '', '\u00ad', '\u200b', '\u200d', '\u2060', '\ufeff', '\ufe0f', '\0');

test('S4-73: finds any passage of any source, with random case, punctuation, white space and invisible characters', () => {
  const copied = fc
    .record({
      words: fc.integer({ min: 3, max: 9 }),
      source: fc.array(word, { minLength: 9, maxLength: 60 }),
      from: fc.nat(),
    })
    .chain(({ words, source, from }) => {
      const start = from % (source.length - words + 1);
      const passage = source.slice(start, start + words);
      const dressed = passage.map((each) =>
        fc
          .tuple(break_, ...Array.from(each, (char) => fc.tuple(noise, fc.boolean(), fc.constant(char))))
          .map(([before, ...chars]) =>
            [before, ...chars.map(([hidden, up, char]) => hidden + (up ? char.toUpperCase() : char))].join(''),
          ),
      );
      return fc.record({
        words: fc.constant(words),
        source: fc.constant(source),
        candidate: fc
          .tuple(fc.array(word, { maxLength: 20 }), fc.tuple(...dressed), break_, fc.array(word, { maxLength: 20 }))
          .map(([before, middle, end, behind]) => `${before.join(' ')}${middle.join('')}${end}${behind.join(' ')}`),
      });
    });
  fc.assert(
    fc.property(copied, ({ words, source, candidate }) => {
      expect(hasSharedPassage(candidate, source.join(' '), words)).toBe(true);
    }),
    { numRuns: sized(80, 500), seed: 1 },
  );
});

/** Compares everything with everything: whether both have a common run of `length` units. */
const shareRun = (length: number, own: readonly string[], other: readonly string[]): boolean =>
  own
    .slice(length - 1)
    .some((_, at) => other.some((__, from) => own.slice(at, at + length).every(sameFrom(other, from))));
const sameFrom = (other: readonly string[], from: number) => (unit: string, n: number) => other[from + n] === unit;

test('S4-73: two texts share a passage exactly if both contain a common run of words, or of letters', () => {
  // The candidate is derived from the source: some words are replaced, some are joined to the previous one.
  const few = fc.constantFrom('a', 'b', 'c', 'ab', 'abcabcabcab', 'cabcabcabca');
  const change = fc.oneof({ weight: 5, arbitrary: fc.constant(' ') }, fc.constant(''), few);
  const parts = fc.array(fc.tuple(few, change), { maxLength: 24, size: 'max' });
  const seen = { words: 0, letters: 0, nothing: 0 };
  fc.assert(
    fc.property(parts, fc.integer({ min: 3, max: 8 }), (all, words) => {
      const source = all.map(([each]) => each);
      const text = all.map(([each, how]) => (how.trim() === '' ? how + each : ` ${how}`)).join('');
      const candidate = text.split(' ').filter((each) => each !== '');
      const length = Math.min(words, candidate.length);
      const byWords = length >= 3 && shareRun(length, candidate, source);
      const byLetters = shareRun(words * 8, Array.from(candidate.join('')), Array.from(source.join('')));
      seen[byWords ? 'words' : byLetters ? 'letters' : 'nothing'] += 1;
      expect(hasSharedPassage(text, source.join(', '), words)).toBe(byWords || byLetters);
    }),
    { numRuns: sized(250, 2_000), seed: 1 },
  );
  for (const times of Object.values(seen)) expect(times).toBeGreaterThan(sized(12, 50));
});

describe('a text that is as hostile as Unicode and markup allow', () => {
  const MIB = 1_048_576;
  /** Processor time: many times what any of them takes here, so that only a hang or a quadratic loop fails. */
  const CPU_MS_MAX = 10_000;
  const fill = (unit: string, chars = MIB): string => unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars);
  const texts: Record<string, string> = {
    words: fill('a b c d e f g x '),
    'one word': fill('a'),
    'almost the same letters': fill(`${'a'.repeat(63)}b`),
    'marks in no order': `a${fill('\u0301\u0316')}`,
    'spacing marks in no order': `a${fill('\u{1d16d}\u{1d165}')}`,
    'half-width marks': `a${fill('\uff9e\uff9f')}`,
    'letters of eighteen letters': fill('\ufdfa'),
    surrogates: fill('\ud800\udbff a'),
    'open tags': fill('<a'),
    'an open tag': `<a${fill(' x')}`,
    'open links': fill(']('),
    'an open link': `](${fill('x')}`,
    entities: fill('&#'),
    'hyphens and blanks': fill(`a-\n${' '.repeat(1_000)}`),
    'a hyphen before blanks': `a-${fill('\n ')}`,
    hyphens: fill('a-\n'),
    ideographs: fill('委托人'),
  };
  test.each(Object.keys(texts))('%s', (name) => {
    const text = texts[name]!;
    const start = process.cpuUsage();
    expect(hasSharedPassage(`${text.slice(0, 65_536)}z`, SOURCE)).toBe(false);
    expect(hasSharedPassage(PASSAGE, text)).toBe(false);
    hasSharedPassage(`${text.slice(0, 65_536)}z`, text);
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(CPU_MS_MAX);
  });
});

describe('the strings of a value', () => {
  test('are all its strings and then all its keys, in document order', () => {
    const value = { b: ['x', { c: 'y', a: [1, null, true, 'z'] }], d: '' };
    expect(stringsIn(value)).toEqual(['x', 'y', 'z', '', 'b', 'd', 'c', 'a']);
    expect(stringsIn('x')).toEqual(['x']);
    expect([null, 1, false, [], {}].map((empty) => stringsIn(empty))).toEqual([[], [], [], [], []]);
  });

  test('are as many as a naive walk finds', () => {
    const walk = (value: Json): string[] => {
      if (typeof value === 'string') return [value];
      if (typeof value !== 'object' || value === null) return [];
      return [
        ...(Array.isArray(value) ? [] : Object.keys(value)),
        ...Object.values(value).flatMap((each) => walk(each)),
      ];
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect([...stringsIn(value as Json)!].sort()).toEqual(walk(value as Json).sort());
      }),
    );
  });

  test('are rejected if there are too many or if they are too long; depth does not matter', () => {
    const many = (count: number): Json => Array.from({ length: count }, () => '');
    expect(stringsIn(many(100_000))).toHaveLength(100_000);
    expect(stringsIn(many(100_001))).toBeNull();
    expect(stringsIn(Object.fromEntries(Array.from({ length: 100_001 }, (_, n) => [`k${n}`, 0])))).toBeNull();
    expect(stringsIn(['x'.repeat(16_777_216)])).toHaveLength(1);
    expect(stringsIn({ y: 'x'.repeat(16_777_216) })).toBeNull();
    let deep: Json = 'down';
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(stringsIn(deep)).toEqual(['down']);
  });
});

// The limits of the search, and what it makes of single characters, entities and pieces.

const SAYING = 'It is said that the brakes of the lorry had failed twice before.';
const EIGHT = ['the', 'brakes', 'of', 'the', 'lorry', 'had', 'failed', 'twice'];
const letters = (length: number): string =>
  Array.from({ length }, (_, n) => String.fromCharCode(97 + ((n * n * 7 + n) % 26))).join('');

describe('S4-73 the words of a text', () => {
  test.each([
    ['The Brakes, of 2 lorries', ['the', 'brakes', 'of', '2', 'lorries']],
    ['Bräkes\u00adx \u0301a', ['brakesx', 'a']],
    ['ΛΌΓΟΣ λόγος', ['λογοσ', 'λογοσ']],
    ['ΆΈ\u2003ΉΊ', ['αε', 'ηι']],
    ['Ａｂ\u3000Ｃ', ['ab', 'c']],
    ['lorry\ufdfahad\ufdfbfailed', ['lorry', 'had', 'failed']],
    ['die Straße', ['die', 'strasse']],
    ['...', []],
    ['', []],
  ])('%j', (text, words) => {
    expect(wordsIn(text)).toEqual(words);
  });
});

describe('S4-73 eight words are found', () => {
  test.each([
    ['between tags', '<br>'],
    ['between closing tags', '</b>'],
    ['between single quotes as entities', '&lsquo;'],
    ['between double quotes as entities', '&rdquo;'],
    ['between dashes as entities', '&ndash;'],
    ['between numeric entities', '&#32;'],
    ['between numeric entities without a semicolon', '&#32'],
    ['between the last code point', '&#x10ffff;'],
  ])('%s', (_, between) => {
    expect(hasSharedPassage(EIGHT.join(between), SAYING)).toBe(true);
    expect(hasSharedPassage(SAYING, EIGHT.join(between))).toBe(true);
  });

  test('on both sides of the target of a link', () => {
    expect(hasSharedPassage('[the brakes of the lorry](https://example.org/)had failed twice', SAYING)).toBe(true);
  });

  test('with blanks behind the hyphen at the end of a line', () => {
    expect(hasSharedPassage('the brakes of the lorry had fai- \t\n led twice', SAYING)).toBe(true);
    expect(hasSharedPassage('the brakes of the lorry had fai-x\n led twice', SAYING)).toBe(false);
  });

  test('but not between a code point that does not exist', () => {
    expect(hasSharedPassage(EIGHT.join('&#1114112;'), SAYING)).toBe(false);
  });
});

describe('S4-73 consecutive letters are found', () => {
  test('from eight for each word', () => {
    expect(hasSharedPassage(letters(64), letters(64))).toBe(true);
    expect(hasSharedPassage(letters(63), letters(63))).toBe(false);
    expect(hasSharedPassage(letters(64), letters(63))).toBe(false);
    expect(hasSharedPassage(letters(70), `${letters(64)}-`)).toBe(true);
    expect(hasSharedPassage(letters(24), letters(24), 3)).toBe(true);
    expect(hasSharedPassage(letters(23), letters(23), 3)).toBe(false);
  });

  test('in two pieces of a source', () => {
    const [first, rest] = [letters(64).slice(0, 60), letters(64).slice(60)];
    const filler = '.'.repeat(32_768);
    expect(hasSharedPassage(letters(64), `${first}${filler} ${rest}`)).toBe(true);
    expect(hasSharedPassage(letters(64), `${letters(64).slice(0, 2)}${filler} ${letters(64).slice(2)}`)).toBe(true);
    expect(hasSharedPassage(letters(64), `${first}${filler} x${rest}`)).toBe(false);
  });

  test('for each of several texts, and for none without a limit', () => {
    const [one, other] = [letters(40), letters(40).toUpperCase().split('').reverse().join('')];
    const candidate = (text: string, limit: number | null) => ({ text, words: 8, wordsMin: 3, letters: limit });
    const search = createJointPassageSearch([candidate(one, 40), candidate(other, 40), candidate(SAYING, null)]);
    expect(search.occursIn(`x ${one} x`)).toBe(true);
    expect(search.occursIn(`x ${other} x`)).toBe(true);
    expect(search.occursIn(SAYING)).toBe(true);
    expect(search.occursIn('another text')).toBe(false);
    expect(search.occursIn(SAYING.replaceAll(' ', ''))).toBe(false);
    expect(search.occursIn(one + other.slice(0, 39))).toBe(true);
  });

  test('no texts share nothing', () => {
    expect(createJointPassageSearch([]).occursIn(SAYING)).toBe(false);
  });
});

test('S4-73 a candidate of several pieces is one text, which begins and ends once', () => {
  const words = Array.from({ length: 7_000 }, (_, n) => `w${n}`);
  const candidate = words.join(' ');
  const middle = candidate.slice(0, 32_768).split(' ').length;
  expect(hasSharedPassage(candidate, words.slice(middle - 4, middle + 4).join(' '))).toBe(true);
  expect(hasSharedPassage(candidate, words.slice(-8).join(' '))).toBe(true);
  expect(hasSharedPassage(candidate, [...words.slice(-4), ...words.slice(0, 4)].join(' '))).toBe(false);
});

test('strings and keys are counted together', () => {
  const value = (length: number) => Object.fromEntries(Array.from({ length }, (_, n) => [`k${n}`, '']));
  expect(stringsIn(value(50_000))).toHaveLength(100_000);
  expect(stringsIn(value(50_001))).toBeNull();
});
