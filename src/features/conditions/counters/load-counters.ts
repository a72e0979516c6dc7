// The counters of a policy, read and checked. A counter says how much the steps of a run, a tree, a case, an actor or a
// role have used so far; conditions read it.

import type { Catalogue } from '../../../core/contract/policy/catalogue.js';
import { CountersPolicy, type CountedAction, type Counter } from './counters-policy.js';
import { conditionActions, isStep, type ConditionAction } from '../condition-schema.js';
import type { RecordShape, ValueShape } from '../value-shape.js';
import { readPolicyFile, type NamedPolicyFile } from '../../../core/policy/files/read-policy-file.js';
import type { Counters } from '../../../core/policy/policy-features.js';
import type { PolicyFinding } from '../../../core/policy/files/policy-finding.js';
import { isTimeZone } from './window-start.js';

/**
 * Reads any bytes: every mistake is a finding.
 * @param hasConditions whether the policy has conditions: without them, nothing reads a counter
 */
export function loadCounters(
  file: NamedPolicyFile,
  catalogue: Catalogue,
  hasConditions: boolean,
): { readonly counters: Counters; readonly findings: readonly PolicyFinding[] } {
  const read = readPolicyFile(file, CountersPolicy);
  if (read.value === null) return { counters: { all: [] }, findings: read.findings };
  const all = read.value.counters;
  const { lineOf } = read.document;
  const mistakes = [...findMistakes(all, conditionActions(catalogue))];
  if (!hasConditions) {
    const message = 'only conditions read counters: write policy/conditions.cedar, or remove this file';
    mistakes.push({ pointer: '/counters', rule: 'counter.no_conditions', message });
  }
  const findings = mistakes.map(({ pointer, ...mistake }) => ({ file: file.path, line: lineOf(pointer), ...mistake }));
  return { counters: { all }, findings };
}

interface CounterMistake extends Pick<PolicyFinding, 'rule' | 'message'> {
  readonly pointer: string;
}

function* findMistakes(
  counters: readonly Counter[],
  actions: ReadonlyMap<string, ConditionAction>,
): Generator<CounterMistake> {
  const names = new Set<string>();
  for (const [index, counter] of counters.entries()) {
    const pointer = `/counters/${index}`;
    if (names.has(counter.name)) {
      const message = `the counter ${counter.name} is defined twice`;
      yield { pointer: `${pointer}/name`, rule: 'counter.duplicate_name', message };
    }
    names.add(counter.name);
    yield* findWindowMistakes(counter, pointer);
    for (const list of ['counts', 'gives_back'] as const) {
      const listed = new Set<string>();
      for (const [at, counted] of (counter[list] ?? []).entries()) {
        yield* findCountedMistakes(counted, counter, actions, `${pointer}/${list}/${at}`);
        if (listed.has(counted.action)) {
          const message = `${counted.action} is there twice, and only the first is counted: give it a counter of its own`;
          yield { pointer: `${pointer}/${list}/${at}/action`, rule: 'counter.duplicate_action', message };
        }
        listed.add(counted.action);
      }
    }
  }
}

function* findWindowMistakes({ window }: Counter, pointer: string): Generator<CounterMistake> {
  if (window === undefined || 'sliding' in window) return;
  if (window.time_zone === undefined) {
    const message = `a calendar ${window.calendar} begins at a time of day: give it a time_zone, such as Europe/Berlin`;
    yield { pointer: `${pointer}/window`, rule: 'counter.no_time_zone', message };
  } else if (!isTimeZone(window.time_zone)) {
    const message = 'the time zone is not known: use a name such as Europe/Berlin or UTC';
    yield { pointer: `${pointer}/window/time_zone`, rule: 'counter.unknown_time_zone', message };
  }
}

function* findCountedMistakes(
  { action, sum, currency }: CountedAction,
  counter: Counter,
  actions: ReadonlyMap<string, ConditionAction>,
  pointer: string,
): Generator<CounterMistake> {
  const known = actions.get(action);
  if (known === undefined || !isStep(known)) {
    const message = `no step has the action ${action}: name it as conditions do, such as CALL_TOOL:TOOL`;
    yield { pointer: `${pointer}/action`, rule: 'counter.unknown_action', message };
    return;
  }
  const argument = (name: 'sum' | 'currency', message: string): CounterMistake => ({
    pointer: `${pointer}/${name}`,
    rule: 'counter.argument',
    message,
  });
  if (sum !== undefined && shapeAt(known.args, sum)?.kind !== 'Long')
    yield argument('sum', `${sum} must be a required integer argument of ${action}`);
  if (currency === undefined) return;
  if (counter.currency === undefined) yield argument('currency', 'the counter has no currency to compare it with');
  else if (shapeAt(known.args, currency)?.kind !== 'String')
    yield argument('currency', `${currency} must be a required text argument of ${action}`);
}

/** The shape of a required argument; a point leads into a record. */
function shapeAt(shape: RecordShape, path: string): ValueShape | null {
  let found: ValueShape = shape;
  for (const name of path.split('.')) {
    if (found.kind !== 'Record') return null;
    const attribute: RecordShape['attributes'][number] | undefined = found.attributes.find((one) => one.name === name);
    if (attribute?.required !== true) return null;
    found = attribute.shape;
  }
  return found;
}
