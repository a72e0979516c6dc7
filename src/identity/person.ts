// From a name to its canonical id and skeletons, by which persons are compared.

import { likeness, type Person } from '../contract/person.js';
import { foldOnce, isAssigned, isIgnorable, pointsOf, skeletonOnce, textOf, UNICODE_VERSION } from './unicode.js';
import type { Points } from './unicode.js';

/** Why a name cannot be compared, or should not be given to a person. */
export type NameProblem = 'malformed' | 'unassigned' | 'invisible' | 'empty' | 'too_long';

const COMPARED_CHARS_MAX = 4_096;
const ROUNDS_MAX = 16;
const TABLES = `unicode-${UNICODE_VERSION}`;

/** What the operator should know of a name that is refused. */
export const NAME_PROBLEMS: Readonly<Record<NameProblem, string>> = {
  malformed: 'holds half a surrogate pair',
  unassigned: `holds a character that Unicode ${UNICODE_VERSION} does not know: write it with others`,
  invisible: 'holds an invisible character or a control: leave it out',
  empty: 'holds nothing that can be seen',
  too_long: 'is too long',
};

/**
 * The person of a name: a pure function of its code points and the bundled tables.
 * @returns the problem for a name that the tables cannot judge
 */
export function personOf(name: string): Person | NameProblem {
  if (!name.isWellFormed()) return 'malformed';
  const points = pointsOf(name);
  if (!points.every(isAssigned)) return 'unassigned';
  const canonical = stable(points, visibleFold);
  const canonical_id = textOf(canonical);
  const skeletons = [canonical, skeletonOnce(points)].map((from) => textOf(stable(from, foldedSkeleton)));
  if (canonical_id === '' || skeletons.includes('')) return 'empty';
  if ([canonical_id, ...skeletons].some(({ length }) => length > COMPARED_CHARS_MAX)) return 'too_long';
  return { canonical_id, skeletons, tables: TABLES };
}

/** What is wrong with a name for a new person. Less is allowed than in a name that is compared. */
export function nameProblem(name: string): NameProblem | null {
  const person = personOf(name);
  if (typeof person === 'string') return person;
  return pointsOf(name).some((point) => isIgnorable(point) || isControl(point)) ? 'invisible' : null;
}

/** Whether a name is another spelling of a known one, or looks like it. The same text is the known name itself. */
export function isLookAlike(known: string, name: string): boolean {
  if (known === name) return false;
  const [a, b] = [personOf(known), personOf(name)];
  return typeof a === 'string' || typeof b === 'string' || likeness(a, b) !== 'other';
}

const isControl = (point: number): boolean =>
  point < 0x20 || (point >= 0x7f && point <= 0x9f) || point === 0x2028 || point === 0x2029;
/** What NFKC_Casefold leaves of white space. */
const isSpace = (point: number): boolean => point === 0x20 || point === 0x1680;

const visibleFold = (points: Points): Points =>
  foldOnce(points).filter((point) => !isControl(point) && !isSpace(point));
const foldedSkeleton = (points: Points): Points => skeletonOnce(visibleFold(points));

/** A second pass can find what the first has made. The number of passes is a limit, not a choice of the caller. */
function stable(points: Points, pass: (points: Points) => Points): Points {
  let [before, after] = [points, pass(points)];
  for (let round = 1; round < ROUNDS_MAX && textOf(before) !== textOf(after); round += 1) {
    [before, after] = [after, pass(after)];
  }
  return after;
}
