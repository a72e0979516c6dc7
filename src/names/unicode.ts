// Normalization, case folding and confusables by bundled tables of one Unicode version. The built-in functions
// (`String.prototype.normalize`, `toLowerCase`) follow the Unicode version of the running Node: recorded or compared
// values must not.

import { ASSIGNED, CASES, CLASSES, CONFUSABLES, DECOMPOSITIONS, FOLDS } from './tables/tables.js';

export { UNICODE_VERSION } from './tables/tables.js';

/** Code points. */
export type Points = readonly number[];
type Mapping = ReadonlyMap<number, Points>;

interface UnicodeTables {
  readonly cases: Mapping;
  readonly confusables: Mapping;
  readonly decompositions: Mapping;
  readonly folds: Mapping;
  readonly classes: Mapping;
  /** First and last code point of each range, ascending. */
  readonly assigned: readonly (readonly [number, number])[];
}

/** Loaded at the first use: most processes never need the tables, or only late. */
let loaded: UnicodeTables | null = null;
const loadTables = (): UnicodeTables =>
  (loaded ??= {
    cases: parseMapping(CASES),
    confusables: parseMapping(CONFUSABLES),
    decompositions: parseMapping(DECOMPOSITIONS),
    folds: parseMapping(FOLDS),
    classes: parseMapping(CLASSES),
    assigned: [...parseMapping(ASSIGNED)].map(([first, [last = first]]) => [first, last] as const),
  });

const BASE = 36;

/** Parses the text of a table: `TARGET=SOURCE,SOURCE+MORE`, each source as its distance from the previous one. */
function parseMapping(text: string): Mapping {
  const map = new Map<number, Points>();
  for (const group of text.trim().split(/\s+/)) {
    const [target = '', sources = ''] = group.split('=');
    const points = target === '' ? [] : target.split('.').map((point) => Number.parseInt(point, BASE));
    let source = 0;
    for (const run of sources.split(',')) {
      const [distance = '', more = '0'] = run.split('+');
      source += Number.parseInt(distance, BASE);
      map.set(source, points);
      for (let left = Number.parseInt(more, BASE); left > 0; left -= 1) map.set((source += 1), points);
    }
  }
  return map;
}

export const pointsOf = (text: string): Points => Array.from(text, (character) => character.codePointAt(0) ?? 0);
export const textOfPoints = (points: Points): string => points.map((point) => String.fromCodePoint(point)).join('');

/** Whether the tables cover the code point. They do not cover code points of later Unicode versions. */
export function isAssigned(point: number): boolean {
  return loadTables().assigned.some(([first, last]) => first <= point && point <= last);
}

/** Whether NFKC_Casefold removes the code point: joiners, bidi controls, tags, fillers, selectors. */
export const isIgnorable = (point: number): boolean => loadTables().folds.get(point)?.length === 0;

/** The other case of a letter; undefined if it has none. */
export const otherCase = (point: number): number | undefined => loadTables().cases.get(point)?.[0];

/** Whether the code point joins the one before it: its combining class is not 0. */
export const isCombining = (point: number): boolean => loadTables().classes.has(point);

/** One pass of NFKC_Casefold (Unicode 3.13, D146), on code points, decomposed. */
export const caseFoldOnce = (points: Points): Points =>
  decompose(decompose(points).flatMap((point) => loadTables().folds.get(point) ?? [point]));

/**
 * `skeleton` of UTS #39 on code points: it maps all characters that look alike to one prototype. The standard algorithm
 * decomposes first, so it never applies the entries of its own table for precomposed letters. This one does.
 */
export const skeletonOnce = (points: Points): Points => {
  const visible = decompose(points).filter((point) => !isIgnorable(point));
  return decompose(replaceLetters(toPrototypes(visible)));
};

const toPrototypes = (points: Points): Points =>
  decompose(points.flatMap((point) => loadTables().confusables.get(point) ?? [point]));

/** Parts and prototype of the letters with marks that the table maps as a whole, by their first part. */
type Letters = ReadonlyMap<number, readonly (readonly [Points, Points])[]>;
let letters: Letters | null = null;

function lettersOf({ confusables }: UnicodeTables): Letters {
  const found = new Map<number, (readonly [Points, Points])[]>();
  for (const [source, target] of confusables) {
    const parts = decompose([source]);
    if (parts.length < 2) continue;
    const [key, look] = [toPrototypes(parts), toPrototypes(decompose(target))];
    // If the prototype is the letter itself with one more mark, the name would grow in every pass: the mark is removed.
    const grows = look.length > key.length && hasInOrder(look, key);
    const [first = 0] = key;
    found.set(first, [...(found.get(first) ?? []), grows ? ([look, key] as const) : ([key, target] as const)]);
  }
  // The longest first.
  for (const known of found.values()) known.sort(([a], [b]) => b.length - a.length);
  return found;
}

/** Whether all parts of `key` occur in their order, possibly with others between them. */
function hasInOrder(points: Points, key: Points): boolean {
  let found = 0;
  for (const point of points) if (point === key[found]) found += 1;
  return found === key.length;
}

function replaceLetters(points: Points): Points {
  letters ??= lettersOf(loadTables());
  const parts: number[] = [];
  for (let at = 0; at < points.length;) {
    const point = points[at] ?? 0;
    const found = letters.get(point)?.find(([key]) => key.every((part, index) => points[at + index] === part));
    parts.push(...(found?.[1] ?? [point]));
    at += found?.[0].length ?? 1;
  }
  return parts;
}

/** Canonical decomposition in canonical order: NFD (UAX #15). */
export function decompose(points: Points): Points {
  const { classes } = loadTables();
  const parts: number[] = [];
  for (const point of points) pushParts(parts, point);
  const classOf = (point: number): number => classes.get(point)?.[0] ?? 0;
  // Sorts the marks between two starters by their class; marks of one class keep their order.
  for (let from = 0; from < parts.length; from += 1) {
    let to = from;
    while (to < parts.length && classOf(parts[to] ?? 0) !== 0) to += 1;
    if (to - from < 2) continue;
    const marks = parts.slice(from, to).sort((a, b) => classOf(a) - classOf(b));
    parts.splice(from, marks.length, ...marks);
    from = to;
  }
  return parts;
}

const HANGUL = { first: 0xac00, last: 0xd7a3, lead: 0x1100, vowel: 0x1161, tail: 0x11a7, vowels: 21, tails: 28 };

function pushParts(parts: number[], point: number): void {
  if (point >= HANGUL.first && point <= HANGUL.last) {
    const index = point - HANGUL.first;
    const tail = index % HANGUL.tails;
    const syllable = (index - tail) / HANGUL.tails;
    parts.push(HANGUL.lead + Math.floor(syllable / HANGUL.vowels), HANGUL.vowel + (syllable % HANGUL.vowels));
    if (tail > 0) parts.push(HANGUL.tail + tail);
    return;
  }
  const found = loadTables().decompositions.get(point);
  if (found === undefined) parts.push(point);
  else for (const part of found) pushParts(parts, part);
}
