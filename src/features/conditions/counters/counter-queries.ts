// Which counters a step depends on, and what it adds to them.

import type { CountedAction, Counter } from './counters-policy.js';
import type { CounterQuery, UncountableReason } from '../../../core/contract/run/counter-fact.js';
import { lookOf } from '../../../core/contract/person.js';
import type { RunContext } from '../../../core/contract/run/run-context.js';
import type { ConditionedPolicy, ConditionedStep } from '../../../core/policy/policy-features.js';
import { argumentAt, namedArguments } from '../../../core/policy/read-argument.js';

/** What the file of counters says. Core has only their names: `loadCounters` is the only source of counters. */
const countersOf = ({ counters }: ConditionedPolicy): readonly Counter[] => (counters?.all ?? []) as readonly Counter[];

/** The counters that count the step, and all counters if a condition of its action reads any, which is `isRead`. */
export const queriesOf = (
  step: ConditionedStep,
  agent: RunContext,
  policy: ConditionedPolicy,
  isRead: boolean,
): readonly CounterQuery[] => countersOf(policy).flatMap((counter) => queryOf(counter, step, agent, isRead));

/** What identifies a counter of one subject. */
export type CounterAccountKey = Pick<CounterQuery, 'name' | 'key'>;

/** What identifies the counters that agents of other trees may have in common with this one. */
export const sharedCounterKeys = (agent: RunContext, policy: ConditionedPolicy): readonly CounterAccountKey[] =>
  countersOf(policy).flatMap((counter) => {
    if (counter.over === 'run' || counter.over === 'tree') return [];
    const subject = subjectOf(counter.over, agent);
    return subject === null ? [] : [accountOf(counter, subject)];
  });

const accountOf = ({ name, over }: Counter, { id }: CountedSubject): CounterAccountKey => ({
  name,
  key: `${over}:${id}`,
});

/** @param isRead whether a condition of the action reads counters */
function queryOf(counter: Counter, step: ConditionedStep, agent: RunContext, isRead: boolean): readonly CounterQuery[] {
  const { over, window, currency } = counter;
  const subject = subjectOf(over, agent);
  if (subject === null) return [];
  const added = amountOf(counter.counts, step, currency);
  const returned = amountOf(counter.gives_back ?? [], step, currency);
  if (added === undefined && returned === undefined && !isRead) return [];
  const uncountable = [added, returned, subject.unknown].find((reason) => typeof reason === 'string');
  return [
    {
      ...accountOf(counter, subject),
      adds: uncountable === undefined ? amountIn(added) - amountIn(returned) : 0,
      ...(window === undefined ? {} : { window }),
      ...(uncountable === undefined ? {} : { isUncountable: true as const, uncountable }),
    },
  ];
}

const amountIn = (amount: Amount): number => (typeof amount === 'number' ? amount : 0);

/** What a counter counts over. `unknown`: it cannot be distinguished from others, so nothing can be counted for it. */
interface CountedSubject {
  readonly id: string;
  readonly unknown?: UncountableReason;
}

function subjectOf(over: Counter['over'], run: RunContext): CountedSubject | null {
  switch (over) {
    case 'run':
      return { id: run.run_id };
    case 'tree':
      return { id: run.root_run_id };
    case 'case':
      return run.case_id === null ? null : { id: run.case_id };
    case 'actor':
      return personSubject(run);
    case 'role':
      return { id: run.role_id };
  }
}

/** All spellings of a name, and all names that look like it, are counted together. */
function personSubject({ actor, person }: RunContext): CountedSubject {
  if (person === undefined) return { id: actor.actor_id };
  const look = lookOf(person);
  return look === null ? { id: person.canonical_id, unknown: 'name' } : { id: look };
}

/** Undefined: the step is not counted. */
type Amount = number | UncountableReason | undefined;

function amountOf(
  counted: readonly CountedAction[],
  { name, args }: ConditionedStep,
  currency: string | undefined,
): Amount {
  const found = counted.find(({ action }) => action === name);
  if (found === undefined) return undefined;
  const input = namedArguments(name, args);
  if (found.currency !== undefined && argumentAt(input, found.currency) !== currency) return 'currency';
  if (found.sum === undefined) return 1;
  const amount = argumentAt(input, found.sum);
  // A negative amount would give back what no policy gives back.
  return typeof amount === 'number' && Number.isSafeInteger(amount) && amount >= 0 ? amount : 'amount';
}
