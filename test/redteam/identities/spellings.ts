// Other spellings of a name, drawn from the bundled tables by an independent reader of them. C87 knows two ways in
// which whole names are alike: as they are written, and after case folding. Letter by letter it knows a third one: each
// letter in either case, and then a look-alike. A spelling uses one of these ways.

import { CONFUSABLES, FOLDS } from '../../../src/names/tables/tables.js';
import { pairsOf } from '../../names/table-pairs.js';
import type { Random } from '../../simulation/random.js';

export const SPELLING_KINDS = [
  'combining marks',
  'confusables',
  'zero-width',
  'bidi',
  'tags and selectors',
  'hyphens',
  'case',
  'width',
  'compatibility',
  'spaces',
  'case plus look-alike',
] as const;
export type SpellingKind = (typeof SPELLING_KINDS)[number];

/** Known people. No two of them look alike. */
export const KNOWN_NAMES = [
  'anna-maria',
  'Ren\u00e9e Dupont',
  'paul',
  'amanda',
  'Zo\u00eb \u017bmuda',
  "Sin\u00e9ad O'Brien",
  'J\u00f6rg M\u00fcller-L\u00fcdenscheid',
  '\u0141ukasz Wi\u015bniewski',
  'Nguy\u1ec5n V\u0103n \u0110\u1ea1t',
  '\u0391\u03bb\u03ad\u03be\u03b7\u03c2 \u03a0\u03b1\u03c0\u03c0\u03ac\u03c2',
  '\u041e\u043b\u044c\u0433\u0430 \u0419\u043e\u0432\u0438\u0447',
  '\u6797\u7f8e\u73b2',
  '\ubc15\uc9c0\uc601',
  'OTTO 2',
  'Ida Liem',
] as const;

export interface Spelling {
  readonly known: string;
  readonly text: string;
  readonly kinds: readonly SpellingKind[];
}

const ZERO_WIDTH = ['\u00ad', '\u034f', '\u200b', '\u200c', '\u200d', '\u2060', '\u2064', '\ufeff'] as const;
const BIDI = ['\u061c', '\u200e', '\u200f', '\u202a', '\u202c', '\u202d', '\u202e', '\u2066', '\u2069'] as const;
const SELECTORS = ['\ufe00', '\ufe0f', '\u{e0001}', '\u{e0041}', '\u{e007f}', '\u{e0100}', '\u{e01ef}'] as const;
const SPACES = [' ', '\u00a0', '\u1680', '\u2003', '\u2009', '\u202f', '\u205f', '\u3000', '\t'] as const;
const INSERTED: Readonly<Partial<Record<SpellingKind, readonly string[]>>> = {
  'zero-width': ZERO_WIDTH,
  bidi: BIDI,
  'tags and selectors': SELECTORS,
  spaces: SPACES,
};

type Groups = ReadonlyMap<string, readonly string[]>;

const CONFUSABLE = new Map(pairsOf(CONFUSABLES));
const FOLD = new Map(pairsOf(FOLDS));
const LOOKING_LIKE = sourcesOf(CONFUSABLE);
const FOLDING_TO = sourcesOf(FOLD);

/** The sources of each target. */
function sourcesOf(table: ReadonlyMap<string, string>): Groups {
  const groups = new Map<string, string[]>();
  for (const [source, target] of table) groups.set(target, [...(groups.get(target) ?? []), source]);
  return groups;
}

/** What UTS #39 maps to the same prototype as a character, and the prototype. */
function lookAlikes(character: string): readonly string[] {
  const prototype = CONFUSABLE.get(character) ?? character;
  return [prototype, ...(LOOKING_LIKE.get(prototype) ?? [])].filter((other) => other !== character);
}

/** What NFKC_Casefold maps to the same as a character, and what it maps to. */
function folded(character: string): readonly string[] {
  const target = FOLD.get(character) ?? character;
  return [target, ...(FOLDING_TO.get(target) ?? [])].filter((other) => other !== character);
}

const isWide = (text: string): boolean => /^[\uff00-\uffef]$/u.test(text);
const isCase = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
const foldKind = (from: string, to: string): SpellingKind =>
  isWide(to) ? 'width' : isCase(from, to) ? 'case' : 'compatibility';

/** Each character with the others that can replace it. */
type Choices = (character: string) => readonly (readonly [SpellingKind, string])[];

const lookKind = (character: string): SpellingKind => (character === '-' ? 'hyphens' : 'confusables');
const asWritten: Choices = (character) => lookAlikes(character).map((other) => [lookKind(character), other] as const);

/**
 * A look-alike takes part if it folds to itself. Folding turns every other one into another letter, and the name as it
 * is written is compared only with that of the same case.
 */
const onceFolded: Choices = (character) => {
  const letter = FOLD.get(character) ?? character;
  const isStable = (text: string): boolean => Array.from(text.normalize('NFD')).every((point) => !FOLD.has(point));
  const stable = lookAlikes(letter).filter(isStable);
  return [
    ...folded(character).map((other) => [foldKind(character, other), other] as const),
    ...stable.map((other) => [lookKind(letter), other] as const),
  ];
};

/** Single letters whose two cases lead back to each other. */
const isPairOf =
  (character: string) =>
  (letter: string): boolean =>
    letter !== character &&
    Array.from(letter).length === 1 &&
    [letter.toLowerCase(), letter.toUpperCase()].includes(character);

/** The other case of a letter, if it has one, and what then looks like it. */
const inAnyCase: Choices = (character) => {
  const cases = [character.toUpperCase(), character.toLowerCase()].filter(isPairOf(character));
  return cases.flatMap((letter) => [
    ['case plus look-alike', letter] as const,
    ...lookAlikes(letter).map((other) => ['case plus look-alike', other] as const),
  ]);
};

/** One spelling of a known name, in one of the three ways. */
export function drawSpelling(random: Random): Spelling {
  const known = random.pick(KNOWN_NAMES);
  const choices = random.pick([asWritten, onceFolded, inAnyCase]);
  const kinds = new Set<SpellingKind>();
  const marked = random.chance(0.3) ? known.normalize('NFD') : known;
  if (marked !== known) kinds.add('combining marks');
  const [rate, wanted] = [random.pick([0.1, 0.3, 1]), random.pick(SPELLING_KINDS)];
  let text = '';
  for (const character of marked) {
    const all = choices(character);
    const fit = all.filter(([kind]) => kind === wanted);
    const drawn = random.chance(rate) && all.length > 0 ? random.pick(fit.length > 0 ? fit : all) : null;
    text += drawn?.[1] ?? character;
    if (drawn !== null) kinds.add(drawn[0]);
    const more = INSERTED[wanted];
    if (more !== undefined && random.chance(rate)) {
      text += random.pick(more);
      kinds.add(wanted);
    }
  }
  return { known, text, kinds: [...kinds] };
}

/** Every mapping of both tables, within a name. */
export function* tableSpellings(every: number): Generator<Spelling> {
  const mapped = [...CONFUSABLE, ...[...FOLD].filter(([, target]) => target !== '')];
  for (const [index, [source, target]] of mapped.entries()) {
    if (index % every !== 0) continue;
    const kinds = [FOLD.get(source) === target ? foldKind(source, target) : ('confusables' as const)];
    yield { known: `An${target}na`, text: `An${source}na`, kinds };
  }
}
