// The decision points of a policy, as the rest of the platform uses them. The feature `decision-points` makes the
// queries and reads the answers; it is installed before the first policy with decision points is loaded.

import type { Catalogue } from '../contract/policy/catalogue.js';
import type { DecisionFact, DecisionPoint, DecisionQuery } from '../contract/policy/decision-points.js';
import type { JsonObject } from '../contract/json.js';
import type { RunContext } from '../contract/run/run-context.js';
import { PolicyError } from '../errors.js';
import type { DECISION_POINT_RULES } from './files/policy-finding.js';
import type { Policy } from './policy.js';
import type { Verdict } from './verdict.js';

/** A step that decision points are asked about; `name` is that of conditions, with the tool or table. */
export interface QueriedStep {
  readonly name: string;
  /** The name of the action alone. */
  readonly action: string;
  readonly args: JsonObject;
  /** Canonical paths. */
  readonly paths: readonly string[];
}

/** A mistake, and the JSON pointer to its place in the actions file. */
export interface DecisionPointMistake {
  readonly pointer: string;
  readonly rule: (typeof DECISION_POINT_RULES)[number];
  readonly message: string;
}

/** What core requests of decision points. */
export interface DecisionPointRules {
  /** The mistakes that a schema cannot express. */
  findMistakes(points: readonly DecisionPoint[], catalogue: Catalogue): Iterable<DecisionPointMistake>;
  /**
   * One query of each decision point, or one for each path: all must permit.
   * @param run the mediated run
   */
  queries(points: readonly DecisionPoint[], step: QueriedStep, run: RunContext): readonly DecisionQuery[];
  /** The denial by the first decision point that does not permit; null if all permit. */
  denial(queries: readonly DecisionQuery[], facts: readonly DecisionFact[]): Verdict | null;
}

let installed: DecisionPointRules | null = null;

export const installDecisionPoints = (rules: DecisionPointRules): void => {
  installed = rules;
};

/** @throws PolicyError POLICY_UNSUPPORTED if the feature is not installed */
export function decisionPointRules(): DecisionPointRules {
  if (installed !== null) return installed;
  const message = 'the policy has decision points, and this installation does not have the feature decision-points';
  throw new PolicyError({ code: 'POLICY_UNSUPPORTED', message });
}

/** The decision points that are asked about an action. */
export const decisionPointsFor = (name: string, { decision_points }: Policy): readonly DecisionPoint[] =>
  decision_points?.filter(({ actions }) => actions.includes(name)) ?? NO_POINTS;

const NO_POINTS: readonly DecisionPoint[] = [];

/** What the decision points of a policy are asked about a step. @param run the mediated run */
export function decisionQueries(step: QueriedStep, run: RunContext, policy: Policy): readonly DecisionQuery[] {
  const points = decisionPointsFor(step.name, policy);
  return points.length === 0 ? NO_QUERIES : decisionPointRules().queries(points, step, run);
}

const NO_QUERIES: readonly DecisionQuery[] = [];

/** The denial by the first decision point that does not permit; null if all permit. */
export const decisionPointDenial = (
  queries: readonly DecisionQuery[],
  facts: readonly DecisionFact[],
): Verdict | null => (queries.length === 0 ? null : decisionPointRules().denial(queries, facts));

/** The name of the feature. */
export const DECISION_POINTS = 'decision-points';

// The names of the actions of steps by which what a policy says of them is chosen: with the tool or table that the
// arguments name.

/** Actions whose arguments name what they act on: there is one for each tool or table. */
export const NAMED_ACTIONS: readonly string[] = ['CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'];

/** The name of an action with these arguments, such as `WRITE_FILE` or `CALL_TOOL:payments.refund`. */
export function decidedActionName(name: string, args: JsonObject): string {
  if (!NAMED_ACTIONS.includes(name)) return name;
  const named = args[name === 'CALL_TOOL' ? 'tool' : 'target'];
  return `${name}:${typeof named === 'string' ? named : ''}`;
}

/** All of them for a policy. An action without a run of its own has no effect, so nothing decides it. */
export const decidedActionNames = ({ actions, registrations }: Catalogue): ReadonlySet<string> =>
  new Set([
    ...actions
      .filter(({ run_kind, name }) => run_kind !== null && !NAMED_ACTIONS.includes(name))
      .map(({ name }) => name),
    ...registrations.tools.map(({ name }) => `CALL_TOOL:${name}`),
    ...registrations.targets.flatMap(({ name }) => [`WRITE_RECORD:${name}`, `READ_RECORDS:${name}`]),
  ]);
