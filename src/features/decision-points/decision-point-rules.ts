// What the decision points of a policy are asked about a step, what their replies mean, and what policy makes of them.

import { isJsonObject, type Json, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import { lookOf } from '../../core/contract/person.js';
import type {
  DecisionAnswer,
  DecisionFact,
  DecisionPoint,
  DecisionQuery,
} from '../../core/contract/policy/decision-points.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import {
  type DecisionPointRules,
  type QueriedStep,
  type DecisionPointMistake,
  decidedActionNames,
} from '../../core/policy/policy-features.js';
import { argumentAt, namedArguments } from '../../core/policy/read-argument.js';
import type { Verdict } from '../../core/policy/verdict.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import { isSafeUrl } from '../../core/contract/safe-url.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';

/** What core asks about decision points. */
export const POINT_RULES: DecisionPointRules = { findMistakes: findDecisionPointMistakes, queries, denial };

function queries(points: readonly DecisionPoint[], step: QueriedStep, run: RunContext): readonly DecisionQuery[] {
  const paths = step.paths.length === 0 ? [undefined] : step.paths;
  return points.flatMap((point) =>
    paths.map((path) => toQuery(point, withPersonAndPaths(toEvaluation(step, run, point, path), step, run))),
  );
}

const toQuery = (point: DecisionPoint, request: Evaluation): DecisionQuery => ({
  point,
  body: canonicalJson(point.protocol === 'opa' ? { input: request } : request),
});

/** An evaluation of AuthZEN 1.0, which is also what OPA gets as its input. */
interface Evaluation extends JsonObject {
  readonly subject: JsonObject & { readonly properties: JsonObject };
  readonly context: JsonObject;
}

const toEvaluation = (
  { name, action, args }: QueriedStep,
  run: RunContext,
  { sends }: DecisionPoint,
  path: string | undefined,
): Evaluation => ({
  subject: { type: 'actor', id: run.actor.actor_id, properties: { lane: run.lane_id, role: run.role_id } },
  action: { name: action },
  resource: resourceOf(name, path, run),
  context: { args: selectArguments(namedArguments(name, args), sends ?? []), case_id: run.case_id },
});

/** The person is the same in all spellings of a name. Of several paths, an answer counts for these together only. */
function withPersonAndPaths(
  { subject, context, ...request }: Evaluation,
  { paths }: QueriedStep,
  { person }: RunContext,
): Evaluation {
  const named = person === undefined ? {} : { person: person.canonical_id, look: lookOf(person) };
  return {
    ...request,
    subject: { ...subject, properties: { ...subject.properties, ...named } },
    context: paths.length > 1 ? { ...context, paths } : context,
  };
}

function resourceOf(name: string, path: string | undefined, { case_id }: RunContext): Json {
  if (path !== undefined) return { type: 'path', id: path };
  const [action = '', ...rest] = name.split(':');
  if (rest.length === 0) return { type: 'case', id: case_id ?? '' };
  return { type: action === 'CALL_TOOL' ? 'tool' : 'table', id: rest.join(':') };
}

const selectArguments = (args: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = argumentAt(args, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** What a reply says. Only a plain yes permits. */
export function readDecision(protocol: DecisionPoint['protocol'], reply: JsonObject): DecisionAnswer {
  const { decision, result } = reply;
  const found = protocol === 'authzen' ? decision : isJsonObject(result) ? result['allow'] : result;
  if (found === true) return 'permit';
  return found === false ? 'deny' : 'none';
}

/**
 * The denial by the first decision point that does not permit; null if all permit. An answer counts only for the very
 * request that it was given to: it may come late, when the run has gone on.
 */
function denial(sent: readonly DecisionQuery[], facts: readonly DecisionFact[]): Verdict | null {
  for (const { point, body } of sent) {
    const request_hash = sha256(body);
    const fact = facts.find((one) => one.name === point.name && one.request_hash === request_hash);
    const answer = fact?.answer ?? 'none';
    if (answer !== 'permit') return answer === 'deny' ? DENIED : NO_ANSWER;
  }
  return null;
}

const DENIED: Verdict = { decision: 'deny', rule_id: 'decision_point.denied', cause: 'CONDITION' };
const NO_ANSWER: Verdict = { decision: 'deny', rule_id: 'decision_point.no_answer', cause: 'CONDITION' };

// The mistakes of decision points that a schema cannot express.

function* findDecisionPointMistakes(
  points: readonly DecisionPoint[],
  catalogue: Catalogue,
): Generator<DecisionPointMistake> {
  const known = decidedActionNames(catalogue);
  const names = new Set<string>();
  for (const [index, { name, url, actions }] of points.entries()) {
    const pointer = `/decision_points/${index}`;
    if (names.has(name)) {
      const message = `the decision point ${name} is there twice`;
      yield { pointer: `${pointer}/name`, rule: 'decision_point.duplicate_name', message };
    }
    names.add(name);
    if (!isSafeUrl(url)) {
      const message = 'use https, or http to the local machine, without a user, a password or a fragment';
      yield { pointer: `${pointer}/url`, rule: 'decision_point.url', message };
    }
    for (const [at, action] of actions.entries()) {
      if (known.has(action)) continue;
      const message = `no step has the action ${quoteForMessage(action)}: name it as conditions do`;
      yield { pointer: `${pointer}/actions/${at}`, rule: 'decision_point.unknown_action', message };
    }
  }
}
