// Computes the looks of a name whose letters may each be written in either case.
//
// A small `l` looks like a capital `I`, whose small letter is `i`. So names that look alike in one case are found
// letter by letter. No single text stands for a letter: the Greek nu looks like `N` as a capital and like `v` as a
// small letter, and `n` and `v` do not look alike. Each letter has a set of looks, and two names look alike if one text
// can be read from both (src/core/contract/person.ts).

import { folded, writtenLook } from './folding.js';
import { decompose, isCombining, otherCase, textOfPoints } from './unicode.js';
import type { Points } from './unicode.js';

/** Limit of looks of one letter. A single character of the tables has at most 8. */
const READINGS_MAX = 64;
/** Limit of the characters of all looks of a name. */
const LOOKS_CHARS_MAX = 16_384;

/**
 * The looks of a name: a list of parts, each with its alternatives, separated by spaces.
 * @returns null for a name with too many looks
 */
export function looksOf(points: Points): readonly string[] | null {
  const looks: string[] = [];
  let isPlain = false;
  // Without spaces and invisible characters, so that a mark after one joins the letter before it.
  for (const letter of letters(points.filter((point) => folded([point]).length > 0))) {
    const found = readings(letter);
    if (found === null) return null;
    const [only = ''] = found;
    if (found.length > 1) looks.push(found.join(' '));
    else if (isPlain) looks.push(`${looks.pop() ?? ''}${only}`);
    else if (only !== '') looks.push(only);
    isPlain = found.length === 1 && (isPlain || only !== '');
  }
  return looks.reduce((sum, { length }) => sum + length, 0) > LOOKS_CHARS_MAX ? null : looks;
}

/** A combining mark, or another character that looks like one. */
const isMark = (point: number): boolean => isCombining(point) || isCombining(writtenLook([point])[0] ?? 0);

/** Base characters with their combining marks. */
function letters(points: Points): readonly Points[] {
  const found: number[][] = [];
  for (const point of decompose(points)) {
    const last = found.at(-1);
    if (last === undefined || !isMark(point)) found.push([point]);
    else last.push(point);
  }
  return found;
}

/** The letter as written, and folded with each of its parts in either case; null for too many. */
function readings(letter: Points): readonly string[] | null {
  let texts: readonly string[] = [''];
  for (const part of letters(folded(letter))) {
    const looks = inEitherCase(part);
    texts = texts.flatMap((text) => looks.map((look) => text + look));
    if (texts.length > READINGS_MAX) return null;
  }
  return [...new Set([textOfPoints(writtenLook(letter)), ...texts])].sort();
}

function inEitherCase([base = 0, ...marks]: Points): readonly string[] {
  const other = otherCase(base);
  const bases = other === undefined ? [base] : [base, other];
  return [...new Set(bases.map((each) => textOfPoints(writtenLook([each, ...marks]))))];
}
