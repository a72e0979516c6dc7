// C87: whom a name stands for. What people see of a name is its look; what two names have in common is recorded, so
// that a decision about it can be made again without any table.

import Type, { type Static } from 'typebox';
import { Actor, closed } from './shapes.js';

const Compared = Type.String({ minLength: 1, maxLength: 4_096 });

/** A name as it is compared. Made outside of the kernel, from tables of one version of Unicode. */
export const Person = Type.Object(
  {
    /** NFKC_Casefold of the name, decomposed, without spaces: one person, however the name is written. */
    canonical_id: Compared,
    /** What the canonical id looks like (UTS #39), and what the name looks like as it is written. */
    skeletons: Type.Array(Compared, { minItems: 2, maxItems: 2 }),
    /** Persons of other tables cannot be compared. */
    tables: Type.String({ pattern: '^unicode-[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}$' }),
  },
  closed,
);
export type Person = Static<typeof Person>;

/** An actor whose name people's votes are compared with; the person is absent in trees without behaviour flag 6. */
export const named = { actor: Actor, person: Type.Optional(Person) };

/** How two names stand to one another. `unknown`: they cannot be compared, and count as one. */
export type Likeness = 'same' | 'alike' | 'unknown' | 'other';

/** Names look alike when they do as they are written, or once the case of their letters is left out. */
export function likeness(a: Person | null | undefined, b: Person | null | undefined): Likeness {
  if (a == null || b == null || a.tables !== b.tables) return 'unknown';
  if (a.canonical_id === b.canonical_id) return 'same';
  return a.skeletons.some((skeleton, index) => skeleton === b.skeletons[index]) ? 'alike' : 'other';
}
