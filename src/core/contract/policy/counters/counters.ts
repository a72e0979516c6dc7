// The policy file counters.yaml: what counters count, and the fact that a decision records of each.

import Type, { type Static } from 'typebox';
import { closed, OneOf, Timestamp } from '../../shapes.js';
import { policyHeader } from '../policy-header.js';

/** Whose steps a counter counts together. */
const COUNTER_SUBJECTS = ['run', 'tree', 'case', 'actor', 'role'] as const;

/** Maximum number of counters of a policy. */
export const COUNTERS_MAX = 32;

const Name = Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' });
const ActionName = Type.String({ minLength: 1, maxLength: 200 });
const Argument = Type.String({ minLength: 1, maxLength: 120 });

const CountedAction = Type.Object(
  {
    /** As in conditions: `WRITE_FILE`, `CALL_TOOL:payments.refund`, `WRITE_RECORD:invoices`. */
    action: ActionName,
    /** The argument whose value is added. Absent: each step adds 1. */
    sum: Type.Optional(Argument),
    /** The argument that names the currency of the amount. */
    currency: Type.Optional(Argument),
  },
  closed,
);
export type CountedAction = Static<typeof CountedAction>;

export const CounterWindow = Type.Union([
  /** At most 9999 minutes, 999 hours or 31 days. */
  Type.Object(
    { sliding: Type.String({ pattern: '^([1-9]\\d{0,3}m|[1-9]\\d{0,2}h|([1-9]|[12]\\d|3[01])d)$' }) },
    closed,
  ),
  Type.Object(
    { calendar: OneOf(['day', 'week', 'month']), time_zone: Type.Optional(Type.String({ maxLength: 64 })) },
    closed,
  ),
]);
export type CounterWindow = Static<typeof CounterWindow>;

export const Counter = Type.Object(
  {
    name: Name,
    over: OneOf(COUNTER_SUBJECTS),
    /** Absent: everything that the ledger has. */
    window: Type.Optional(CounterWindow),
    /** The currency of the amounts, in ISO 4217. With an amount in another one, conditions get no value. */
    currency: Type.Optional(Type.String({ pattern: '^[A-Z]{3}$' })),
    counts: Type.Array(CountedAction, { minItems: 1, maxItems: 32 }),
    gives_back: Type.Optional(Type.Array(CountedAction, { maxItems: 32 })),
  },
  closed,
);
export type Counter = Static<typeof Counter>;

export const CountersPolicy = Type.Object(
  { ...policyHeader, counters: Type.Array(Counter, { minItems: 1, maxItems: COUNTERS_MAX }) },
  closed,
);
export type CountersPolicy = Static<typeof CountersPolicy>;

/** What a counter had counted when a step was decided, and what the step adds if it is allowed and happens. */
export const CounterFact = Type.Object(
  {
    name: Name,
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
