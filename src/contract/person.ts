// C87: whom a name stands for. What people see of a name is its look; what two names have in common is recorded, so
// that a decision about it can be made again without any table.

import Type, { type Static } from 'typebox';
import { COMPARED_LOOKS } from './policy/flags.js';
import { Actor, closed } from './shapes.js';

const ComparableName = Type.String({ minLength: 1, maxLength: 4_096 });

/** A name as it is compared. Made outside of the kernel, from tables of one version of Unicode. */
export const Person = Type.Object(
  {
    /** NFKC_Casefold of the name, decomposed, without spaces: one person, however the name is written. */
    canonical_id: ComparableName,
    /** What the canonical id looks like (UTS #39), and what the name looks like as it is written. */
    skeletons: Type.Array(ComparableName, { minItems: 2, maxItems: 2 }),
    /**
     * What the name looks like when each letter may be in either case: texts that follow one another, each with its
     * alternatives, separated by spaces. Absent in trees without behaviour flag 13.
     */
    looks: Type.Optional(Type.Array(ComparableName, { minItems: 1, maxItems: 1_024 })),
    /** Persons of other tables cannot be compared. */
    tables: Type.String({ pattern: '^unicode-[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}$' }),
  },
  closed,
);
export type Person = Static<typeof Person>;

/** An actor whose name people's votes are compared with; the person is absent in trees without behaviour flag 6. */
export const namedActorProperties = { actor: Actor, person: Type.Optional(Person) };

/** How two names stand to one another. `unknown`: they cannot be compared, and count as one. */
export type Likeness = 'same' | 'alike' | 'unknown' | 'other';

/**
 * Names look alike when they do as they are written, once the case of their letters is left out, or when each can be
 * written, in some case of its letters, so that both look the same.
 */
export function compareNames(a: Person | null | undefined, b: Person | null | undefined): Likeness {
  if (a == null || b == null || a.tables !== b.tables) return 'unknown';
  if (a.canonical_id === b.canonical_id) return 'same';
  if (a.skeletons.some((skeleton, index) => skeleton === b.skeletons[index])) return 'alike';
  if (a.looks === undefined && b.looks === undefined) return 'other';
  if (a.looks === undefined || b.looks === undefined) return 'unknown';
  return haveCommonLook(a.looks, b.looks) ? 'alike' : 'other';
}

/** As persons were compared before behaviour flag 13. */
export const withoutLooks = ({ canonical_id, skeletons, tables }: Person): Person => ({
  canonical_id,
  skeletons,
  tables,
});

/** The person as a tree with these flags compares it. */
export const personUnder = (person: Person | undefined, flags: ReadonlySet<number>): Person | undefined =>
  person === undefined || flags.has(COMPARED_LOOKS) ? person : withoutLooks(person);

/** More than any two names need that are not made to need it: those count as alike. */
const COMPARED_STATES_MAX = 20_000;

/** How far two names have been read: what is read of one and not yet of the other is its rest. */
interface Reading {
  readonly of: readonly [number, number];
  readonly rest: string;
  readonly ahead: 0 | 1;
}

/** Whether one text can be read of both. */
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
    // Whichever is behind is read on; where neither is, one that goes on.
    const next = rest === '' ? (of[0] < a.length ? 0 : 1) : ahead === 0 ? 1 : 0;
    const at: [number, number] = next === 0 ? [of[0] + 1, of[1]] : [of[0], of[1] + 1];
    for (const text of looks[next]?.[of[next]] ?? []) {
      if (rest.startsWith(text)) todo.push({ of: at, rest: rest.slice(text.length), ahead });
      else if (text.startsWith(rest)) todo.push({ of: at, rest: text.slice(rest.length), ahead: next });
    }
  }
  return false;
}
