// C87: which person a name stands for. People recognise a name by its looks. What two names have in common is recorded,
// so that a replay can repeat a decision about them without any Unicode table.

import Type, { type Static } from 'typebox';
import { Actor, closed } from './shapes.js';

const ComparableName = Type.String({ minLength: 1, maxLength: 4_096 });
/** More spellings of one name than a policy needs. */
export const POLICY_NAMES_MAX = 64;
const PolicyNames = Type.Array(ComparableName, { minItems: 1, maxItems: POLICY_NAMES_MAX });

/** A name in the form in which it is compared. Computed outside the kernel, from the tables of one Unicode version. */
export const Person = Type.Object(
  {
    /** NFKC_Casefold of the name, decomposed, without spaces: equal for all spellings of one name. */
    canonical_id: ComparableName,
    /** The skeletons (UTS #39) of the canonical id and of the name as written. */
    skeletons: Type.Array(ComparableName, { minItems: 2, maxItems: 2 }),
    /**
     * The looks of the name if each letter may be in either case: consecutive texts, each with its alternatives
     * separated by spaces.
     */
    looks: Type.Array(ComparableName, { minItems: 1, maxItems: 1_024 }),
    /** Names that policy gives to actors, as it writes them: those that are this person. */
    same_as: Type.Optional(PolicyNames),
    /** The same: those that look like this person, or like its actor. */
    alike_to: Type.Optional(PolicyNames),
    /** Persons of different tables cannot be compared. */
    tables: Type.String({ pattern: '^unicode-[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}$' }),
  },
  closed,
);
export type Person = Static<typeof Person>;

/** An actor whose name is compared with voters. The platform itself has no person. */
export const namedActorProperties = { actor: Actor, person: Type.Optional(Person) };

/** The relation of two names. `unknown`: they cannot be compared, and count as the same person. */
export type Likeness = 'same' | 'alike' | 'unknown' | 'other';

/**
 * Two names are alike if their skeletons agree, ignoring case, or if some choice of case for each letter makes both
 * look the same.
 */
export function compareNames(a: Person | null | undefined, b: Person | null | undefined): Likeness {
  if (a == null || b == null || a.tables !== b.tables) return 'unknown';
  if (a.canonical_id === b.canonical_id) return 'same';
  if (a.skeletons.some((skeleton, index) => skeleton === b.skeletons[index])) return 'alike';
  return haveCommonLook(a.looks, b.looks) ? 'alike' : 'other';
}

/**
 * One text for all names that look alike, by which a person is counted. A letter that looks like a Latin one in either
 * case is that letter, and `i` is `l`, as a capital `I` looks.
 * @returns null for a name that can be read as several names of Latin letters
 */
export function lookOf({ looks }: Person): string | null {
  let look = '';
  for (const part of looks) {
    const readings = [...new Set(part.split(' ').map((text) => text.replaceAll('i', 'l')))];
    const latin = readings.filter((text) => /^[!-~]*$/.test(text));
    const [first = ''] = latin.length === 0 ? readings : latin;
    if (latin.length > 1) return null;
    look += first;
  }
  return look === '' ? null : look;
}

/** More than any two honest names need; names that need more count as alike. */
const COMPARED_STATES_MAX = 20_000;

/** A position in the comparison of two names: the rest is what was read of one and not yet of the other. */
interface Reading {
  readonly of: readonly [number, number];
  readonly rest: string;
  readonly ahead: 0 | 1;
}

/** Whether both names have a common look. */
function haveCommonLook(a: readonly string[], b: readonly string[]): boolean {
  const looks = [a, b].map((each) => each.map((texts) => texts.split(' ')));
  const todo: Reading[] = [{ of: [0, 0], rest: '', ahead: 0 }];
  const seen = new Set<string>();
  for (let reading = todo.pop(); reading !== undefined; reading = todo.pop()) {
    const { of, rest, ahead } = reading;
    if (rest === '' && of[0] === a.length && of[1] === b.length) return true;
    const key = `${of.join(' ')} ${ahead} ${rest}`;
    if (seen.has(key)) continue;
    if (seen.size >= COMPARED_STATES_MAX) return true;
    seen.add(key);
    // Read on in the name that is behind; if neither is, in the one that has texts left.
    const next = rest === '' ? (of[0] < a.length ? 0 : 1) : ahead === 0 ? 1 : 0;
    const at: [number, number] = next === 0 ? [of[0] + 1, of[1]] : [of[0], of[1] + 1];
    for (const text of looks[next]?.[of[next]] ?? []) {
      if (rest.startsWith(text)) todo.push({ of: at, rest: rest.slice(text.length), ahead });
      else if (text.startsWith(rest)) todo.push({ of: at, rest: text.slice(rest.length), ahead: next });
    }
  }
  return false;
}
