// S4-73: the limits of the passage search, and what it makes of single characters, entities and pieces.

import { describe, expect, test } from '@jest/globals';
import {
  createJointPassageSearch,
  hasSharedPassage,
  stringsIn,
  wordsIn,
} from '../../../../src/features/promotions/passage-search.js';

const SOURCE = 'It is said that the brakes of the lorry had failed twice before.';
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
    expect(hasSharedPassage(EIGHT.join(between), SOURCE)).toBe(true);
    expect(hasSharedPassage(SOURCE, EIGHT.join(between))).toBe(true);
  });

  test('on both sides of the target of a link', () => {
    expect(hasSharedPassage('[the brakes of the lorry](https://example.org/)had failed twice', SOURCE)).toBe(true);
  });

  test('with blanks behind the hyphen at the end of a line', () => {
    expect(hasSharedPassage('the brakes of the lorry had fai- \t\n led twice', SOURCE)).toBe(true);
    expect(hasSharedPassage('the brakes of the lorry had fai-x\n led twice', SOURCE)).toBe(false);
  });

  test('but not between a code point that does not exist', () => {
    expect(hasSharedPassage(EIGHT.join('&#1114112;'), SOURCE)).toBe(false);
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
    const search = createJointPassageSearch([candidate(one, 40), candidate(other, 40), candidate(SOURCE, null)]);
    expect(search.occursIn(`x ${one} x`)).toBe(true);
    expect(search.occursIn(`x ${other} x`)).toBe(true);
    expect(search.occursIn(SOURCE)).toBe(true);
    expect(search.occursIn('another text')).toBe(false);
    expect(search.occursIn(SOURCE.replaceAll(' ', ''))).toBe(false);
    expect(search.occursIn(one + other.slice(0, 39))).toBe(true);
  });

  test('no texts share nothing', () => {
    expect(createJointPassageSearch([]).occursIn(SOURCE)).toBe(false);
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
