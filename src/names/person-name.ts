// Computes the canonical id, skeletons and looks of a name, by which persons are compared.

import { compareNames, type Person } from '../core/contract/person.js';
import { folded, foldedLook, isControl, writtenLook } from './folding.js';
import { looksOf } from './looks.js';
import { isAssigned, isIgnorable, pointsOf, textOfPoints, UNICODE_VERSION } from './unicode.js';

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
