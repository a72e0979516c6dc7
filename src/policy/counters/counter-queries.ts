// Which counters a step depends on, and what it adds to them.

import type { JsonObject } from '../../contract/json.js';
import type { CountedAction, Counter, CounterQuery } from '../../contract/policy/counters/counters.js';
import type { RunContext } from '../../contract/run/run-context.js';
import type { Policy } from '../policy.js';
import { argumentAt, namedArguments } from '../read-argument.js';

/** What a step proposes; `name` is that of conditions, with the tool or table. */
export interface CountableStep {
  readonly name: string;
  readonly args: JsonObject;
}

/** The counters that count the step, and all counters if a condition of its action reads any. */
export function counterQueries(
  step: CountableStep,
  agent: RunContext,
  { counters, conditions }: Policy,
): readonly CounterQuery[] {
  if (counters === undefined || conditions === undefined) return [];
  const applicable = conditions.forAction(step.name);
  const isRead = applicable !== null && applicable.reads.context?.has('counters') !== false;
  return counters.all.flatMap((counter) => queryOf(counter, step, agent, isRead));
}

/** What identifies a counter of one subject. */
export type CounterAccountKey = Pick<CounterQuery, 'name' | 'key'>;

/** What identifies the counters that agents of other trees may have in common with this one. */
export const sharedCounterKeys = (agent: RunContext, { counters }: Policy): readonly CounterAccountKey[] =>
  (counters?.all ?? []).flatMap((counter) =>
    counter.over === 'run' || counter.over === 'tree' ? [] : (accountOf(counter, agent) ?? []),
  );

function accountOf({ name, over }: Counter, agent: RunContext): CounterAccountKey | null {
  const id = subjectOf(over, agent);
  return id === null ? null : { name, key: `${over}:${id}` };
}

function queryOf(counter: Counter, step: CountableStep, agent: RunContext, isRead: boolean): readonly CounterQuery[] {
  const { window, currency } = counter;
  const account = accountOf(counter, agent);
  if (account === null) return [];
  const added = amountOf(counter.counts, step, currency);
  const returned = amountOf(counter.gives_back ?? [], step, currency);
  if (added === undefined && returned === undefined && !isRead) return [];
  const isUncountable = added === null || returned === null;
  return [
    {
      ...account,
      adds: isUncountable ? 0 : (added ?? 0) - (returned ?? 0),
      ...(window === undefined ? {} : { window }),
      ...(isUncountable ? { isUncountable } : {}),
    },
  ];
}

function subjectOf(over: Counter['over'], { run_id, root_run_id, case_id, actor, role_id }: RunContext): string | null {
  switch (over) {
    case 'run':
      return run_id;
    case 'tree':
      return root_run_id;
    case 'case':
      return case_id;
    case 'actor':
      return actor.actor_id;
    case 'role':
      return role_id;
  }
}

/** @returns undefined if the step is not counted, null if its amount is in another currency */
function amountOf(
  counted: readonly CountedAction[],
  { name, args }: CountableStep,
  currency: string | undefined,
): number | null | undefined {
  const found = counted.find(({ action }) => action === name);
  if (found === undefined) return undefined;
  const input = namedArguments(name, args);
  if (found.currency !== undefined && argumentAt(input, found.currency) !== currency) return null;
  if (found.sum === undefined) return 1;
  const amount = argumentAt(input, found.sum);
  // A negative amount would give back what no policy gives back.
  return typeof amount === 'number' && Number.isSafeInteger(amount) && amount >= 0 ? amount : null;
}
