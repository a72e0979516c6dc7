// Why conditions could not be evaluated, for people: which condition, which attribute, and the cause.

import type { CounterFact, UncountableReason } from '../../core/contract/run/counter-fact.js';
import { toPrintable } from '../../core/contract/finding-text.js';
import type { CedarFailure } from './cedar.js';
import type { ParsedCondition } from './condition-file.js';
import { readPartsOf } from './read-parts.js';
import type { InexactValueError } from './value-shape.js';
import type { ConditionError } from '../../core/policy/policy-features.js';

const CAUSE_CHARS_MAX = 400;

/** A value that Cedar does not hold exactly, for every condition that reads it. */
export function inexactErrors(
  error: InexactValueError,
  conditions: readonly ParsedCondition[],
): readonly ConditionError[] {
  const [part = '', name = ''] = error.path;
  const reading = conditions.filter(({ scope }) => {
    const { context, ...records } = readPartsOf([scope]);
    const names = part === 'args' || part === 'scope' ? records[part] : null;
    return context?.has(part) !== false && names?.has(name) !== false;
  });
  const attribute = `context.${error.path.join('.')}`;
  return reading.map(({ id }) => ({ condition: id, attribute, cause: error.message }));
}

/** Why a counter has no value for a step. */
export type CounterReasons = ReadonlyMap<string, UncountableReason | undefined>;

const COUNTER_CAUSES: Readonly<Record<UncountableReason, string>> = {
  currency: 'its currency is not that of the counter',
  amount: 'its amount is not a whole number of 0 or more',
  name: 'the name of its actor can be read as several names',
};

/** What the engine says of each condition; a counter without a value is named with the cause. */
export function engineErrors(
  failed: readonly CedarFailure[],
  counters: readonly Pick<CounterFact, 'name' | 'used'>[],
  reasons: CounterReasons,
): readonly ConditionError[] {
  return failed.map(({ id, message }) => {
    const name = ATTRIBUTE.exec(message)?.[1] ?? null;
    const counter = counters.find((one) => one.name === name && one.used === null);
    if (counter === undefined) return { condition: id, attribute: name, cause: printable(message) };
    const reason = reasons.get(counter.name);
    const cause =
      reason === undefined
        ? 'entries of its window were moved to an archive, or it is too large'
        : `the step cannot be counted: ${COUNTER_CAUSES[reason]}`;
    return { condition: id, attribute: `context.counters.${counter.name}`, cause };
  });
}

const ATTRIBUTE = /attribute `([^`]{1,120})`/;
const printable = (text: string): string => toPrintable(text).slice(0, CAUSE_CHARS_MAX);
