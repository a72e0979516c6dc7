// Computes the canonical id, skeletons and looks of a name, by which persons are compared. Case folds and skeletons are
// repeated until they are stable.

import { compareNames, type Person } from '../core/contract/person.js';
import {
  isAssigned,
  isIgnorable,
  pointsOf,
  textOfPoints,
  UNICODE_VERSION,
  decompose,
  isCombining,
  otherCase,
  type Points,
  caseFoldOnce,
  skeletonOnce,
} from './unicode.js';

/** Why a name cannot be compared, or must not be given to a new person. */
export type NameProblem = 'malformed' | 'unassigned' | 'invisible' | 'empty' | 'too_long';

const COMPARED_CHARS_MAX = 4_096;
/** Limits of remembered names, and of their length: the looks of a long name can take megabytes. */
const NAMES_MAX = 16;
const REMEMBERED_CHARS_MAX = 64;
const TABLES = `unicode-${UNICODE_VERSION}`;

/** Explanations for operators, completing "the name ...". */
export const NAME_PROBLEMS: Readonly<Record<NameProblem, string>> = {
  malformed: 'holds half a surrogate pair',
  unassigned: `holds a character that Unicode ${UNICODE_VERSION} does not know: write it with others`,
  invisible: 'holds an invisible character or a control: leave it out',
  empty: 'holds nothing that can be seen',
  too_long: 'is too long',
};

/** The persons of recent names: the same few actors start most runs. */
const knownPersons = new Map<string, Person | NameProblem>();

/**
 * The person of a name: a pure function of its code points and the bundled tables.
 * @returns the problem of a name that the tables do not cover; the same object for the same name
 */
export function personOf(name: string): Person | NameProblem {
  const known = knownPersons.get(name);
  if (known !== undefined) return known;
  const person = computePerson(name);
  if (name.length > REMEMBERED_CHARS_MAX) return person;
  if (knownPersons.size === NAMES_MAX) knownPersons.clear();
  knownPersons.set(name, person);
  return person;
}

function computePerson(name: string): Person | NameProblem {
  if (!name.isWellFormed()) return 'malformed';
  const points = pointsOf(name);
  if (!points.every(isAssigned)) return 'unassigned';
  const canonical = folded(points);
  const canonical_id = textOfPoints(canonical);
  const skeletons = [foldedLook(canonical), writtenLook(points)].map(textOfPoints);
  if (canonical_id === '' || skeletons.includes('')) return 'empty';
  const looks = looksOf(points);
  if (looks === null) return 'too_long';
  if ([canonical_id, ...skeletons, ...looks].some(({ length }) => length > COMPARED_CHARS_MAX)) return 'too_long';
  return { canonical_id, skeletons, looks: [...looks], tables: TABLES };
}

/** The problem of a name for a new person, or null. The rules are stricter than for a name that is compared. */
export function nameProblem(name: string): NameProblem | null {
  const person = personOf(name);
  if (typeof person === 'string') return person;
  return pointsOf(name).some((point) => isIgnorable(point) || isControl(point)) ? 'invisible' : null;
}

/**
 * Whether a name is another spelling of a known one, or looks like it. The identical text is the known name itself.
 */
export function isLookAlike(known: string, name: string): boolean {
  if (known === name) return false;
  const [a, b] = [personOf(known), personOf(name)];
  return typeof a === 'string' || typeof b === 'string' || compareNames(a, b) !== 'other';
}

const ROUNDS_MAX = 16;

/** NFKC_Casefold, decomposed, without spaces and controls. */
const folded = (points: Points): Points => stable(points, visibleFold);

/** The skeleton of a folded name. */
const foldedLook = (points: Points): Points => stable(points, foldedSkeleton);

/** The skeleton of the points as written: the prototypes are case-folded, the points themselves are not. */
const writtenLook = (points: Points): Points => foldedLook(skeletonOnce(points));

const isControl = (point: number): boolean =>
  point < 0x20 || (point >= 0x7f && point <= 0x9f) || point === 0x2028 || point === 0x2029;
/** The white space that NFKC_Casefold leaves. */
const isSpace = (point: number): boolean => point === 0x20 || point === 0x1680;

const visibleFold = (points: Points): Points =>
  caseFoldOnce(points).filter((point) => !isControl(point) && !isSpace(point));
const foldedSkeleton = (points: Points): Points => skeletonOnce(visibleFold(points));

/** A pass can produce input for the next one. The number of passes has a fixed limit. */
function stable(points: Points, pass: (points: Points) => Points): Points {
  let [before, after] = [points, pass(points)];
  for (let round = 1; round < ROUNDS_MAX && textOfPoints(before) !== textOfPoints(after); round += 1) {
    [before, after] = [after, pass(after)];
  }
  return after;
}

// The looks of a name whose letters may each be written in either case.
//
// A small `l` looks like a capital `I`, whose small letter is `i`. So names that look alike in one case are found
// letter by letter. No single text stands for a letter: the Greek nu looks like `N` as a capital and like `v` as a
// small letter, and `n` and `v` do not look alike. Each letter has a set of looks, and two names look alike if one text
// can be read from both (src/core/contract/person.ts).

/** Limit of looks of one letter. A single character of the tables has at most 8. */
const READINGS_MAX = 64;
/** Limit of the characters of all looks of a name. */
const LOOKS_CHARS_MAX = 16_384;

/**
 * The looks of a name: a list of parts, each with its alternatives, separated by spaces.
 * @returns null for a name with too many looks
 */
function looksOf(points: Points): readonly string[] | null {
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
