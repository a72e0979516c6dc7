// Agents: their runs are remote, begun and reached by whoever has a token for them.

import Type, { type Static } from 'typebox';
import { BudgetLimits } from '../../contract/budget.js';
import { StepResponse } from '../../contract/response.js';
import { CaseId, closed, Identifier, Nullable, RunId, TaxonomyVersions } from '../../contract/shapes.js';
import type { Principal } from '../../ports/token-book.js';
import type { AgentIdentity } from '../mcp/run-door.js';
import { Refused } from './refused.js';
import { Bytes, route, type Route } from './route.js';
import { checkIsAsBefore } from './run-routes.js';
import type { HttpService } from './service.js';
import { Ending, Exposure, json, OfRun, Scope } from './shapes.js';

const StartAgent = Type.Object(
  {
    lane: Type.Optional(Identifier),
    case: Type.Optional(CaseId),
    scope: Type.Optional(Scope),
    correlation: Type.Optional(Identifier),
    taxonomy: Type.Optional(TaxonomyVersions),
    exposure: Type.Optional(Exposure),
    idle_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 8_640_000_000 })),
    budget: Type.Optional(BudgetLimits),
  },
  closed,
);
type StartAgent = Static<typeof StartAgent>;
const Started = Type.Object({ run_id: RunId, ending: Nullable(Ending) }, closed);
const KEY = /^[\x21-\x7e]{1,255}$/;

export const AGENT_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/agents',
    summary: 'Start an agent run as the actor and role of the token',
    rights: ['act'],
    body: StartAgent,
    answers: { 201: json('The run. One that policy denies has ended already.', Started) },
    async handle({ principal, body }, service) {
      const { run_id, ending } = await service.turnpike.remoteAgents.start(identityOf(principal, body, service));
      const ended = ending === null ? null : { state: ending.state, reason: ending.reason };
      return { status: 201, json: { run_id, ending: ended }, headers: { Location: `/api/v1/runs/${run_id}` } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/agents/{run_id}/steps',
    summary: 'Propose: one raw payload, byte for byte, which has exactly one response',
    rights: ['act'],
    params: OfRun,
    body: Bytes,
    headers: ['idempotency-key'],
    answers: { 200: json('The response of the step, whatever it says.', StepResponse) },
    async handle({ principal, params: { run_id }, body, headers }, service) {
      const { turnpike, keyed, metrics, access } = service;
      if (!(await access.isOwn(principal, run_id))) throw new Refused('RUN_UNKNOWN');
      const key = headers['idempotency-key'];
      if (key !== undefined && !KEY.test(key)) throw new Refused('INVALID_REQUEST');
      const response =
        key === undefined
          ? await turnpike.respond(run_id, body)
          : await keyed.take({ run_id, key, principal, body }, (inputId) =>
              turnpike.respond(run_id, body, { inputId }),
            );
      metrics.step(response);
      return { bytes: response, type: 'application/json' };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/agents/{run_id}/end',
    summary: 'There are no more proposals: the run is completed, unless it has ended before',
    rights: ['act'],
    params: OfRun,
    headers: ['if-match'],
    answers: { 200: json('How the run has ended.', Ending) },
    async handle({ principal, params: { run_id }, headers }, { turnpike, access }) {
      if (!(await access.isOwn(principal, run_id))) throw new Refused('RUN_UNKNOWN');
      await checkIsAsBefore(run_id, headers['if-match'], turnpike);
      await turnpike.remoteAgents.end(run_id);
      return { json: (await turnpike.remoteAgents.find(run_id))?.ended ?? null };
    },
  }),
];

/** Who it is, is the token's to say; in which case, too, where that is for one. */
function identityOf(principal: Principal, body: StartAgent, { agent }: HttpService): AgentIdentity {
  const { idle_ms, case: asked, ...named } = body;
  const { actor, role, case: bound } = principal;
  if (bound !== null && asked !== undefined && asked !== bound) throw new Refused('RIGHT_MISSING');
  const case_id = bound ?? asked;
  return {
    ...agent,
    ...named,
    ...(case_id === undefined ? {} : { case: case_id }),
    ...(idle_ms === undefined ? {} : { idleMs: idle_ms }),
    actor,
    role,
  };
}
