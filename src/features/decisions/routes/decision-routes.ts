// The Access Evaluation API of AuthZEN 1.0 (OpenID Foundation): other services ask for decisions, and execute the
// actions themselves.

import Type, { type Static } from 'typebox';
import { CaseId, closed, Identifier } from '../../../core/contract/shapes.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { ActionDecision } from '../../../runtime/agents/decision-request.js';
import {
  completed,
  evaluateAll,
  Evaluation,
  EvaluationList,
  evaluationsOf,
  toEvaluationResult,
  toToolCall,
} from '../evaluation.js';
import { AGENT_DEFAULTS } from '../../../runtime/agents/caller-input.js';
import { RefusalError } from '../../../interfaces/service/problems.js';
import type { HttpService } from '../../../interfaces/http/http-service.js';
import { route, type Route } from '../../../interfaces/http/routes/route.js';
import { checkTokenCase } from '../../../interfaces/http/routes/run-access.js';
import { jsonResponse, openObject } from '../../../interfaces/http/routes/route-shapes.js';

const EvaluationResultShape = openObject({ decision: Type.Boolean(), context: openObject({}) });
const ResultListShape = Type.Union([
  openObject({ evaluations: Type.Array(EvaluationResultShape) }),
  EvaluationResultShape,
]);
const MetadataShape = openObject({
  policy_decision_point: Type.String(),
  access_evaluation_endpoint: Type.String(),
  access_evaluations_endpoint: Type.String(),
});
/** The specification leaves both to the address of the service. */
const PlaceQuery = Type.Object({ lane: Type.Optional(Identifier), case: Type.Optional(CaseId) }, closed);
type PlaceQuery = Static<typeof PlaceQuery>;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export const DECISION_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/access/v1/evaluation',
    summary: 'Decide one action that the caller executes itself, and record the decision (AuthZEN 1.0)',
    rights: ['act'],
    query: PlaceQuery,
    body: Evaluation,
    headers: ['idempotency-key', 'x-request-id'],
    invalid: 'INVALID_EVALUATION',
    responses: { 200: jsonResponse('The decision, whatever it is.', EvaluationResultShape) },
    async handle({ principal, query, body, headers: { 'idempotency-key': key } }, service) {
      if (key !== undefined && !IDEMPOTENCY_KEY.test(key)) throw new RefusalError('INVALID_EVALUATION');
      return { json: toEvaluationResult(await decider(principal, query, service, key)(body)) };
    },
  }),
  route({
    method: 'POST',
    path: '/access/v1/evaluations',
    summary: 'Decide several actions, one after the other (AuthZEN 1.0)',
    rights: ['act'],
    query: PlaceQuery,
    body: EvaluationList,
    headers: ['x-request-id'],
    invalid: 'INVALID_EVALUATION',
    responses: { 200: jsonResponse('The decisions, in the order of the request.', ResultListShape) },
    async handle({ principal, query, body }, service) {
      const evaluations = evaluationsOf(body);
      if (evaluations === null) throw new RefusalError('INVALID_EVALUATION');
      if (evaluations.length === 0) {
        const single = completed(body, {});
        if (single === null) throw new RefusalError('INVALID_EVALUATION');
        return { json: toEvaluationResult(await decider(principal, query, service)(single)) };
      }
      // Before the first decision: a request with another subject leaves no record of a part of it.
      for (const evaluation of evaluations) checkSubject(evaluation, principal);
      const semantic = body.options?.evaluations_semantic ?? 'execute_all';
      return { json: { evaluations: await evaluateAll(evaluations, semantic, decider(principal, query, service)) } };
    },
  }),
  route({
    method: 'GET',
    path: '/.well-known/authzen-configuration',
    summary: 'Get the addresses of the AuthZEN API',
    rights: [],
    responses: { 200: jsonResponse('The metadata of the policy decision point.', MetadataShape) },
    handle({ headers: { host = '' } }) {
      // The guard has compared the name with those that the service may have.
      const base = `https://${host}`;
      return {
        json: {
          policy_decision_point: base,
          access_evaluation_endpoint: `${base}/access/v1/evaluation`,
          access_evaluations_endpoint: `${base}/access/v1/evaluations`,
        },
      };
    },
  }),
];

/** @throws RefusalError RIGHT_MISSING: a token gets decisions for its own actor only */
function checkSubject({ subject }: Evaluation, { actor }: Principal): void {
  if (subject.id !== actor) throw new RefusalError('RIGHT_MISSING');
}

/** Decides evaluations for the actor of a token. @throws RefusalError RIGHT_MISSING for another case or subject */
function decider(
  principal: Principal,
  query: PlaceQuery,
  { turnpike, agent }: HttpService,
  key?: string,
): (evaluation: Evaluation) => Promise<ActionDecision> {
  const { actor, person, role } = principal;
  const case_id = query.case ?? principal.case ?? agent.case;
  checkTokenCase(principal, case_id);
  const lane = query.lane ?? agent.lane ?? AGENT_DEFAULTS.lane;
  const caller = {
    ...{ actor, role, lane },
    ...omitUndefined({ case: case_id, person }),
  };
  return (evaluation) => {
    checkSubject(evaluation, principal);
    return turnpike.decide({ ...toToolCall(evaluation), ...caller, ...omitUndefined({ key }) });
  };
}
