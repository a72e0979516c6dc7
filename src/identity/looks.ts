// What a name looks like when each of its letters may be written in either case.
//
// A small `l` looks like a capital `I`, whose small letter is `i`. So what looks like a name in one case of its letters
// is found letter by letter. No single text stands for a letter: in capitals the Greek nu looks like `N`, in small
// letters like `v`, and `n` and `v` do not look alike. A letter has a set of looks, and two names look alike where one
// text can be read of both (src/contract/person.ts).

import { folded, writtenLook } from './folding.js';
import { decompose, isCombining, otherCase, textOfPoints } from './unicode.js';
import type { Points } from './unicode.js';

/** The most looks of one letter. The most that a single character of the tables has is 8. */
const READINGS_MAX = 64;
/** The most characters of all looks of a name. */
const LOOKS_CHARS_MAX = 16_384;

/**
 * The looks of a name: texts that follow one another, each with its alternatives, separated by spaces.
 * @returns null for a name that has too many
 */
export function looksOf(points: Points): readonly string[] | null {
  const looks: string[] = [];
  let isPlain = false;
  // Without spaces and invisible characters, so that a mark behind one joins the letter before it.
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

/** A combining mark, or a sign of another class that looks like one. */
const isMark = (point: number): boolean => isCombining(point) || isCombining(writtenLook([point])[0] ?? 0);

/** Base characters with the marks that join them. */
function letters(points: Points): readonly Points[] {
  const found: number[][] = [];
  for (const point of decompose(points)) {
    const last = found.at(-1);
    if (last === undefined || !isMark(point)) found.push([point]);
    else last.push(point);
  }
  return found;
}

/** The letter as it is written, and folded with each of its parts in either case; null where those are too many. */
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
