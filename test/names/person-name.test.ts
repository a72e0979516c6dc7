// C87: names are compared with bundled tables, so every Node version gives the same result.

import { describe, expect, test } from '@jest/globals';
import { compareNames, type Likeness, type Person } from '../../src/core/contract/person.js';
import { nameProblem, personOf } from '../../src/names/person-name.js';
import { CASES, CONFUSABLES, DECOMPOSITIONS, FOLDS } from '../../src/names/tables/tables.js';
import { hasInvisibleCharacter, INVISIBLE_RANGES } from '../../src/core/contract/invisible.js';
import { decompose, isIgnorable, pointsOf, textOfPoints, UNICODE_VERSION } from '../../src/names/unicode.js';
import { sized } from '../fixtures/campaign.js';
import { sampled } from './sampled.js';
import { pairsOf } from './table-pairs.js';

function known(name: string): Person {
  const person = personOf(name);
  if (typeof person === 'string') throw new Error(`${name}: ${person}`);
  return person;
}
const compared = (a: string, b: string): Likeness => compareNames(known(a), known(b));

describe('the tables', () => {
  test('are of one Unicode version, with every mapping of UTS #39', () => {
    expect(UNICODE_VERSION).toBe('15.0.0');
    expect(pairsOf(CONFUSABLES)).toHaveLength(6_311);
    expect(pairsOf(DECOMPOSITIONS)).toHaveLength(2_061);
    expect(pairsOf(FOLDS).length).toBeGreaterThan(4_000);
    expect(pairsOf(CASES)).toHaveLength(972);
  });

  test('pair letters like the runtime, for code points that are stable in Unicode', () => {
    const pairs = new Map(pairsOf(CASES));
    for (const [one, other] of pairs) expect([one.toUpperCase(), one.toLowerCase()]).toContain(other);
    const missed: string[] = [];
    for (let point = 0; point <= sized(0x2fff, 0x1ffff); point += 1) {
      const [letter, capital] = [String.fromCodePoint(point), String.fromCodePoint(point).toUpperCase()];
      const isPair = capital !== letter && capital.toLowerCase() === letter && Array.from(capital).length === 1;
      // NFKC_Casefold writes other letters, or their parts, as different letters.
      const isStable = letter.normalize('NFKD') === letter && capital.normalize('NFKD') === capital;
      if (!isPair || !isStable || typeof personOf(letter + capital) === 'string') continue;
      if (pairs.get(letter) !== capital && pairs.get(capital) !== letter) missed.push(letter);
    }
    expect(missed).toEqual([]);
  });

  test('decompose like the runtime, for code points that are stable in Unicode', () => {
    const texts = [
      ...sampled(pairsOf(DECOMPOSITIONS)).map(([source]) => source),
      '\uac00',
      '\ud7a3',
      'a\u0323\u0301\u0315b',
    ];
    for (const text of texts) {
      for (const around of [text, `\u0301${text}\u0323\u0301`]) {
        expect(textOfPoints(decompose(pointsOf(around)))).toBe(around.normalize('NFD'));
      }
    }
  });
});

test('C88 invisible characters are those that NFKC_Casefold ignores, line separators and annotation marks', () => {
  const others: number[] = [];
  for (let point = 0; point <= sized(0xffff, 0x10ffff); point += 1) {
    const invisible = INVISIBLE_RANGES.some(([first, last]) => first <= point && point <= last);
    if (isIgnorable(point)) expect(invisible).toBe(true);
    else if (invisible) others.push(point);
  }
  expect(others).toEqual([0x2028, 0x2029, 0xfff9, 0xfffa, 0xfffb]);
  expect(hasInvisibleCharacter('Ren\u00e9e/\u6797.txt')).toBe(false);
  expect(hasInvisibleCharacter('a\u{e0041}b')).toBe(true);
});

describe('S4-78 two names of one person', () => {
  const composed = 'Ren\u00e9e Dupont';
  test.each<readonly [string, string, string]>([
    ['the case of its letters', composed, 'REN\u00c9E DUPONT'],
    ['spaces', composed, ' Ren\u00e9eDupont\u00a0'],
    ['a decomposed letter', composed, 'Rene\u0301e Dupont'],
    ['a joiner inside of a letter', composed, 'Rene\u034f\u0301e Dupont'],
    ['zero-width characters', composed, 'Ren\u00e9e\u200b Du\u2060pont\ufeff'],
    ['bidi controls', composed, '\u202eRen\u00e9e Dupont\u202c'],
    ['tag characters', composed, 'Ren\u00e9e Dupont\u{e0041}\u{e007f}'],
    ['variation selectors', composed, 'Ren\u00e9e\ufe0f Dupont\u{e0100}'],
    ['full-width letters', 'anna', '\uff21\uff4e\uff4e\uff41'],
    ['a ligature', 'fiona', '\ufb01ona'],
    ['a long s and a sharp s', 'strasse', '\u017ftra\u00dfe'],
  ])('that differ in %s are the same person', (_, one, other) => {
    expect(compared(one, other)).toBe('same');
  });

  test.each<readonly [string, string, string]>([
    ['a Cyrillic letter', 'anna', '\u0430nna'],
    ['a Greek letter', 'Zoe', '\u0396oe'],
    ['a hyphen', 'anna-maria', 'anna\u2010maria'],
    ['a non-breaking hyphen', 'anna-maria', 'anna\u2011maria'],
    ['a minus sign', 'anna-maria', 'anna\u2212maria'],
    ['rn for m', 'amanda', 'arnanda'],
    ['a capital i for an l', 'paul', 'pauI'],
    ['a capital i for an L, in another case', 'PAUL', 'pauI'],
    ['a one for an l', 'paul', 'pau1'],
    ['a zero for an O', 'OTTO', '0TT0'],
    ['a zero for an o', 'otto', 'ott0'],
    ['a small l for a capital i, in another case', 'paul ida', 'PAUL lDA'],
    ['a one for a capital i, in another case', 'paul ida', 'PAUL 1DA'],
    ['an acute accent for an apostrophe, in another case', "Sin\u00e9ad O'Brien", 'SIN\u00c9AD O\u00b4BRIEN'],
    ['Latin letters for Greek capitals', '\u03bd\u03b9\u03ba\u03b7', 'NIKH'],
    ['a Latin letter for a Greek small one, and others for capitals', '\u03bd\u03b9\u03ba\u03b7', 'vIKH'],
    ['a Latin letter for a Cyrillic capital', '\u0432\u0430\u043b\u044f', 'B\u0430\u043b\u044f'],
    ['r and n for a Greek capital mu', '\u03bc\u03b1\u03c1\u03b9\u03b1', 'rnAPIA'],
    ['a marked Greek letter', '\u0399\u03ce \u0399', '\u03b9\u03c9\u0301 l'],
    ['a space before a mark, in another case', 'J\u00f6rg ida', 'J\u0555\u1680\u0308rg lDA'],
    ['a sign that looks like a mark, in another case', 'ida \u0227x', 'lDA a\u0902X'],
    ['an i for an l', 'Mia', 'Mla'],
    ['a Roman numeral', 'Otto \u2167', 'OTTO VllI'],
  ])('that differ in %s look alike', (_, one, other) => {
    expect(compared(one, other)).toBe('alike');
  });

  test.each([
    ['anna', 'berta'],
    ['anna', 'anne'],
    ['Ren\u00e9e', 'Renee'],
    // A Greek nu looks like one of them as a small letter and like the other as a capital.
    ['Ana', 'Ava'],
    ['Benny', 'Bevvy'],
    ['Sam', 'Fam'],
    ['governor', 'attorney'],
  ])('%s and %s are different persons', (one, other) => {
    expect(compared(one, other)).toBe('other');
  });

  test('a character that UTS #39 maps never makes another person', () => {
    const missed = sampled(pairsOf(CONFUSABLES)).filter(([source, target]) => {
      const [one, other] = [`An${source}na`, `An${target}na`];
      return compared(one, other) === 'other' || compared(one.toUpperCase(), one) === 'other';
    });
    // Characters whose prototype is a space or empty are removed from names: such names are the same.
    expect(missed.map(([source]) => source)).toEqual([]);
  });

  test('comparing looks finds all look-alikes, with the case of every other letter changed', () => {
    const looks = (name: string): Person => ({ ...known(name), canonical_id: name, skeletons: [] });
    const missed = sampled(pairsOf(CONFUSABLES)).filter(([source, target]) => {
      const [one, other] = [`paul ida ${source}x`, `PAUL lDA ${target}X`];
      if (personOf(one) === 'unassigned' || target.trim() === '') return false;
      return compareNames(looks(one), looks(other)) === 'other' || compareNames(looks(other), looks(one)) === 'other';
    });
    expect(missed.map(([source]) => source)).toEqual([]);
  });

  test('names made to have many looks are rejected, or cost no more than others', () => {
    expect(personOf(`\u03b1${'\u0345'.repeat(20)}`)).toBe('too_long');
    const wide = Array.from({ length: 100 }, (_, index) => `${'x'.repeat(index % 7)} ${'x'.repeat((index % 5) + 1)}`);
    const made = { ...known('anna'), canonical_id: 'x', skeletons: [], looks: wide };
    expect(compareNames(made, { ...made, canonical_id: 'y', looks: [...wide, 'y'] })).toMatch(/^(?:alike|other)$/);
    expect(compared('\u2167'.repeat(40), `${'VIII'.repeat(39)}VIIl`)).toBe('alike');
    expect(compared('\u03b9'.repeat(120), `${'l'.repeat(119)}x`)).toBe('other');
  });

  test('a character that NFKC_Casefold maps never makes another person', () => {
    const missed = sampled(pairsOf(FOLDS))
      .filter(([source]) => personOf(source) !== 'unassigned')
      .filter(([source, target]) => compared(`An${source}na`, `An${target}na`) === 'other');
    expect(missed).toEqual([]);
  });

  test('comparing a name twice gives the same result', () => {
    for (const [source] of sampled(pairsOf(CONFUSABLES))) {
      const person = personOf(`x${source}y`);
      if (typeof person === 'string') throw new Error(person);
      expect(personOf(person.canonical_id)).toMatchObject({ canonical_id: person.canonical_id });
    }
  });

  test('persons of other tables, or of none, cannot be distinguished', () => {
    const [anna, berta] = [personOf('anna'), personOf('berta')];
    if (typeof anna === 'string' || typeof berta === 'string') throw new Error('a name');
    expect(compareNames(anna, { ...berta, tables: 'unicode-17.0.0' })).toBe('unknown');
    expect(compareNames(anna, null)).toBe('unknown');
    expect(compareNames(undefined, berta)).toBe('unknown');
  });
});

describe('an invalid name', () => {
  test.each([
    ['a lone surrogate', 'anna\ud800', 'malformed'],
    ['a character of a later Unicode version', 'anna\u{10d4a}', 'unassigned'],
    ['only joiners', '\u200b\u200c\u200d', 'empty'],
  ])('%s', (_, name, problem) => {
    expect(personOf(name)).toBe(problem);
    expect(nameProblem(name)).toBe(problem);
  });

  test('the name of a new person has no invisible character; a compared name may have one', () => {
    expect(nameProblem('an\u200bna')).toBe('invisible');
    expect(nameProblem('an\u202ena')).toBe('invisible');
    expect(nameProblem('an\u0007na')).toBe('invisible');
    expect(nameProblem('Ren\u00e9e D\u2019Arc-\u6797')).toBeNull();
    expect(personOf('an\u200bna')).toMatchObject({ canonical_id: 'anna' });
  });
});
