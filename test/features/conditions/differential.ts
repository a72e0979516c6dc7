// Compares the reference evaluator with Cedar's own engine, on random conditions and requests. The rule of Turnpike for
// an evaluation is checked too: a policy that fails denies, as one that is satisfied does. So is the unmet check: where
// it is certain, no policy is satisfied and none fails.

import { type CedarRequest, parsePolicy } from '../../../src/features/conditions/cedar.js';
import { compileUnmetCheck, type UnmetCheck } from '../../../src/features/conditions/unmet-check.js';
import { prepareCedar } from './cedar-engine.js';
import { Chance } from './chance.js';
import { type PolicyText, randomConditions } from './generate-conditions.js';
import { asWritten, randomEntities, randomRequest } from './generate-requests.js';
import { evaluatePolicies, type Evaluation } from './reference/evaluate.js';
import { type Operator, OPERATORS, type OperatorName, type Operators } from './reference/operators.js';
import { type ForbidPolicy, parsePolicies } from './reference/parser.js';
import { type RequestJson, requestOf } from './reference/request.js';

export interface DifferentialOptions {
  readonly seed: number;
  readonly sets: number;
  readonly requestsPerSet: number;
  /** Changes each set before it is evaluated. */
  readonly plant?: (conditions: readonly PolicyText[], chance: Chance) => readonly PolicyText[];
  readonly onRequest?: (tally: DifferentialTally) => void;
}

export interface DifferentialTally {
  requests: number;
  /** Evaluations of one policy, by their result. */
  satisfied: number;
  unsatisfied: number;
  erring: number;
  /** Requests in which no policy is satisfied and at least one fails: Cedar by itself permits these. */
  onlyErring: number;
  allowed: number;
  /** Requests for which the unmet check is certain, of one policy and of all policies of a set. */
  certainPolicies: number;
  certain: number;
  differences: number;
  /** How often each operator was evaluated. */
  readonly operators: Map<OperatorName, number>;
  /** Enough to evaluate it again. */
  firstDifference: string | null;
}

/** A request is allowed only if no policy is satisfied and none fails. */
export const isAllowed = ({ satisfied, erring }: Evaluation): boolean => satisfied.length === 0 && erring.length === 0;

const newTally = (): DifferentialTally => ({
  requests: 0,
  satisfied: 0,
  unsatisfied: 0,
  erring: 0,
  onlyErring: 0,
  allowed: 0,
  certainPolicies: 0,
  certain: 0,
  differences: 0,
  operators: new Map(),
  firstDifference: null,
});

export const parseConditions = (conditions: readonly PolicyText[]): ReadonlyMap<string, ForbidPolicy> =>
  new Map(
    conditions.map(({ id, text }) => {
      const [policy, ...others] = parsePolicies(text);
      if (policy === undefined || others.length > 0) throw new Error(`not one policy: ${text}`);
      return [id, policy];
    }),
  );

/** The seed of a set: of its conditions. The number after it is the seed of its requests. */
const seedOf = (seed: number, set: number): number => Math.imul(seed, 2_000_003) + 2 * set;

interface Case {
  readonly seed: number;
  readonly conditions: readonly PolicyText[];
  readonly policies: ReadonlyMap<string, ForbidPolicy>;
  /** Of each policy. */
  readonly unmet: ReadonlyMap<string, UnmetCheck>;
  readonly request: RequestJson;
  /** What Cedar's engine says. */
  readonly expected: Evaluation;
}

function* randomCases(options: DifferentialOptions): Generator<Case> {
  for (let set = 0; set < options.sets; set += 1) {
    const seed = seedOf(options.seed, set);
    const chance = new Chance(seed + 1);
    const generated = randomConditions(seed);
    const conditions = options.plant?.(generated, chance) ?? generated;
    const cedar = prepareCedar(conditions);
    const policies = parseConditions(conditions);
    const unmet = compileUnmetChecks(conditions);
    const entities = randomEntities(chance);
    for (let number = 0; number < options.requestsPerSet; number += 1) {
      const any = randomRequest(chance, entities);
      const request = number % 2 === 0 ? any : asWritten(any);
      yield { seed, conditions, policies, unmet, request, expected: cedar(request) };
    }
  }
}

export function compareEvaluators(options: DifferentialOptions): DifferentialTally {
  const tally = newTally();
  const operators = countingOperators(tally.operators);
  for (const each of randomCases(options)) {
    const actual = evaluatePolicies(each.policies, requestOf(each.request), operators);
    count(tally, each);
    const wrong = wronglyCertain(tally, each);
    if (!isSame(each.expected, actual) || wrong.length > 0) {
      tally.differences += 1;
      tally.firstDifference ??= describe(each, actual, wrong);
    }
    options.onRequest?.(tally);
  }
  return tally;
}

function compileUnmetChecks(conditions: readonly PolicyText[]): ReadonlyMap<string, UnmetCheck> {
  return new Map(
    conditions.map(({ id, text }) => {
      const read = parsePolicy(text);
      if ('problems' in read) throw new Error(`Cedar does not parse: ${text}`);
      return [id, compileUnmetCheck([read.policy])];
    }),
  );
}

/** The policies that the unmet check calls unmet, and that are satisfied or fail. */
function wronglyCertain(tally: DifferentialTally, { unmet, request, expected }: Case): readonly string[] {
  const certain = [...unmet].filter(([, isUnmet]) => isUnmet(request as CedarRequest)).map(([id]) => id);
  tally.certainPolicies += certain.length;
  if (certain.length === unmet.size) tally.certain += 1;
  return certain.filter((id) => expected.satisfied.includes(id) || expected.erring.includes(id));
}

/** The names of the operators with which no request has another result. */
export function findUnnoticed(options: DifferentialOptions, faults: ReadonlyMap<string, Operators>): readonly string[] {
  const unnoticed = new Map(faults);
  for (const { policies, request, expected } of randomCases(options)) {
    const input = requestOf(request);
    for (const [name, operators] of unnoticed) {
      if (!isSame(expected, evaluatePolicies(policies, input, operators))) unnoticed.delete(name);
    }
    if (unnoticed.size === 0) break;
  }
  return [...unnoticed.keys()];
}

const isSame = (expected: Evaluation, actual: Evaluation): boolean =>
  expected.satisfied.join() === actual.satisfied.join() && expected.erring.join() === actual.erring.join();

function count(tally: DifferentialTally, { policies, expected }: Case): void {
  const { satisfied, erring } = expected;
  tally.requests += 1;
  tally.satisfied += satisfied.length;
  tally.erring += erring.length;
  tally.unsatisfied += policies.size - satisfied.length - erring.length;
  if (satisfied.length === 0 && erring.length > 0) tally.onlyErring += 1;
  if (isAllowed(expected)) tally.allowed += 1;
}

function countingOperators(counts: Map<OperatorName, number>): Operators {
  const counting = Object.entries(OPERATORS).map(([name, operate]) => [
    name,
    (...call: Parameters<Operator>) => {
      counts.set(name as OperatorName, (counts.get(name as OperatorName) ?? 0) + 1);
      return operate(...call);
    },
  ]);
  return Object.fromEntries(counting) as Operators;
}

function describe({ seed, conditions, request, expected }: Case, actual: Evaluation, wrong: readonly string[]): string {
  const resultOf = ({ satisfied, erring }: Evaluation, id: string): string =>
    satisfied.includes(id) ? 'satisfied' : erring.includes(id) ? 'error' : 'not satisfied';
  const isDifferent = (id: string): boolean => wrong.includes(id) || resultOf(expected, id) !== resultOf(actual, id);
  const lines = conditions.flatMap(({ id, text }) => {
    const results = `Cedar: ${resultOf(expected, id)}, reference: ${resultOf(actual, id)}`;
    return isDifferent(id) ? [`${results}${wrong.includes(id) ? ', unmet check: unmet' : ''}\n${text}`] : [];
  });
  return [`set ${seed}`, ...lines, JSON.stringify(request)].join('\n');
}
