// What a decision records of a counter, and what an engine is asked about it. A counter counts what earlier steps have
// done. Only the feature that has the counters of policies knows what they count.

import Type, { type Static } from 'typebox';
import { closed, Timestamp } from '../shapes.js';

/** Maximum number of counters of a policy. */
export const COUNTERS_MAX = 32;

export const CounterName = Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' });

/** What a counter had counted when a step was decided, and what the step adds if it is allowed and happens. */
export const CounterFact = Type.Object(
  {
    name: CounterName,
    /** Whose steps are counted: the subject of the counter and its id, such as `case:case-17`. */
    key: Type.String({ minLength: 1, maxLength: 300 }),
    /** Null: it is not known, and conditions that read it deny. */
    used: Type.Union([Type.Integer(), Type.Null()]),
    /** Steps that were decided before are not counted. Null: all are. */
    since: Type.Union([Timestamp, Type.Null()]),
    /** Negative for what is given back. */
    adds: Type.Integer(),
  },
  closed,
);
export type CounterFact = Static<typeof CounterFact>;

/** The time that a counter counts over. */
export type CounterWindow =
  { readonly sliding: string } | { readonly calendar: 'day' | 'week' | 'month'; readonly time_zone?: string };

/** A counter on which a step depends, or that counts it. */
export interface CounterQuery extends Pick<CounterFact, 'name' | 'key' | 'adds'> {
  readonly window?: CounterWindow;
  /** The amount of the step cannot be counted, such as one in another currency: conditions get no value. */
  readonly isUncountable?: true;
  /** Why, for people. */
  readonly uncountable?: UncountableReason;
}

/** `name`: the name of the actor can be read as several names. */
export type UncountableReason = 'currency' | 'amount' | 'name';

/** What facts record of a counter. @param used what earlier steps have used; null: it is not known */
export const counterFact = (
  { name, key, adds, isUncountable }: CounterQuery,
  used: number | null,
  since: string | null,
): CounterFact => ({ name, key, used: isUncountable === true ? null : used, since, adds });
