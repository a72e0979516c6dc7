// The policy file counters.yaml: what counters count.

import Type, { type Static } from 'typebox';
import { COUNTERS_MAX, CounterName } from '../../../core/contract/run/counter-fact.js';
import { closed, OneOf } from '../../../core/contract/shapes.js';
import { policyHeader } from '../../../core/contract/policy/policy-header.js';

/** Whose steps a counter counts together. */
const COUNTER_SUBJECTS = ['run', 'tree', 'case', 'actor', 'role'] as const;

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

const Window = Type.Union([
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

export const Counter = Type.Object(
  {
    name: CounterName,
    over: OneOf(COUNTER_SUBJECTS),
    /** Absent: everything that the ledger has. */
    window: Type.Optional(Window),
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
