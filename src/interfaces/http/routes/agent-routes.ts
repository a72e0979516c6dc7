// Routes for agents. Their runs are remote: clients start and reach them with a token.

import Type, { type Static } from 'typebox';
import { canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { BudgetLimits } from '../../../core/contract/run/budget.js';
import { REPORT_MATCHES } from '../../../core/contract/run/report-origin.js';
import { StepResponse } from '../../../core/contract/run/response.js';
import { CaseId, closed, Identifier, Nullable, OneOf, RunId, TaxonomyVersions } from '../../../core/contract/shapes.js';
import { agentTrace } from '../../../core/contract/trace-context.js';
import { IntegrationError } from '../../../core/errors.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { AgentIdentity } from '../../mcp/run-gateway.js';
import type { ActionReport } from '../../../runtime/agents/action-reports.js';
import { RefusalError } from '../../service/problems.js';
import { BinaryBody, route, type RequestHeader, type Route } from './route.js';
import { checkIfMatch } from './run-routes.js';
import type { HttpService } from '../http-service.js';
import { Ending, ExposureShape, jsonResponse, RunParams, Scope } from './route-shapes.js';

export const StartAgentBody = Type.Object(
  {
    lane: Type.Optional(Identifier),
    case: Type.Optional(CaseId),
    scope: Type.Optional(Scope),
    correlation: Type.Optional(Identifier),
    taxonomy: Type.Optional(TaxonomyVersions),
    exposure: Type.Optional(ExposureShape),
    idle_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 8_640_000_000 })),
    budget: Type.Optional(BudgetLimits),
  },
  closed,
);
const ReportBody = Type.Object(
  {
    status: OneOf(['done', 'failed', 'unknown']),
    result: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    match: Type.Optional(OneOf(REPORT_MATCHES)),
  },
  closed,
);
export type StartAgentBody = Static<typeof StartAgentBody>;
const StartedAgent = Type.Object({ run_id: RunId, ending: Nullable(Ending), resumed: Type.Boolean() }, closed);
const INTEGRATED = 'wait=integrated';
const STEP_DESCRIPTION =
  `The response of the step, whatever its outcome. With \`Prefer: ${INTEGRATED}\` it has the header ` +
  `\`Preference-Applied: ${INTEGRATED}\` once the log includes the step; after 10 s it comes without.`;
const IDEMPOTENCY_KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

export const AGENT_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/agents',
    summary: 'Start an agent run as the actor and role of the token',
    rights: ['act'],
    body: StartAgentBody,
    headers: ['idempotency-key', 'traceparent'],
    responses: {
      201: jsonResponse('The run. If policy denies it, it has ended already.', StartedAgent),
      200: jsonResponse('The run that the same key has started before: `resumed` is true.', StartedAgent),
    },
    async handle({ principal, body, headers }, service) {
      const identity = { ...identityOf(principal, body, service), ...agentTrace(headers.traceparent) };
      const key = checkedKey(headers);
      const { run_id, finished, resumed } = await service.turnpike.startAgent({
        ...identity,
        link: 'remote',
        ...(key === undefined ? {} : { key: startKeyOf(principal, key) }),
      });
      const ending = await Promise.race([finished, Promise.resolve(null)]);
      const ended = ending === null ? null : { state: ending.state, reason: ending.reason };
      const json = { run_id, ending: ended, resumed: resumed === true };
      return { status: json.resumed ? 200 : 201, json, headers: { Location: `/api/v1/runs/${run_id}` } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/agents/{run_id}/steps',
    summary: 'Submit a proposal: one raw payload, byte for byte, with exactly one response',
    rights: ['act'],
    params: RunParams,
    body: BinaryBody,
    headers: ['idempotency-key', 'prefer', 'traceparent'],
    responses: { 200: jsonResponse(STEP_DESCRIPTION, StepResponse) },
    async handle({ principal, params: { run_id }, body, headers }, service) {
      const { turnpike, metrics, access } = service;
      if (!(await access.isOwn(principal, run_id))) throw new RefusalError('RUN_UNKNOWN');
      const key = checkedKey(headers);
      const integrated = isIntegrationPreferred(headers.prefer);
      const trace = agentTrace(headers.traceparent);
      const keyed = key === undefined ? {} : { inputId: keyedInputId(principal, { run_id, key }) };
      const { response, headers: applied } = await respondAsPreferred(
        turnpike.respond(run_id, body, { ...keyed, ...trace, integrated }),
        integrated,
      );
      metrics.step(response);
      return { bytes: response, type: 'application/json', headers: applied };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/runs/{run_id}/report',
    summary:
      'Report the outcome of an action that the caller has executed itself; the same report again changes nothing',
    rights: ['act'],
    params: RunParams,
    body: ReportBody,
    responses: { 200: jsonResponse('The report is recorded.', Type.Object({ run_id: RunId }, closed)) },
    async handle({ principal, params: { run_id }, body }, { turnpike, access }) {
      const agent = run_id.slice(0, Math.max(0, run_id.lastIndexOf('.')));
      if (!(await access.isOwn(principal, agent))) throw new RefusalError('RUN_UNKNOWN');
      await turnpike.report({ run: run_id, ...(body as Omit<ActionReport, 'run'>) });
      return { json: { run_id } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/agents/{run_id}/end',
    summary: 'End a run, because there are no more proposals: completes it unless it has ended already',
    rights: ['act'],
    params: RunParams,
    headers: ['if-match'],
    responses: { 200: jsonResponse('How the run has ended.', Ending) },
    async handle({ principal, params: { run_id }, headers }, { turnpike, access }) {
      if (!(await access.isOwn(principal, run_id))) throw new RefusalError('RUN_UNKNOWN');
      await checkIfMatch(run_id, headers['if-match'], turnpike);
      await turnpike.remoteAgents.end(run_id);
      return { json: (await turnpike.remoteAgents.find(run_id))?.ended ?? null };
    },
  }),
];

interface AppliedResponse {
  readonly response: string;
  readonly headers: Readonly<Record<string, string>>;
}

function checkedKey({ 'idempotency-key': key }: Readonly<Partial<Record<RequestHeader, string>>>): string | undefined {
  if (key !== undefined && !IDEMPOTENCY_KEY_PATTERN.test(key)) throw new RefusalError('INVALID_REQUEST');
  return key;
}

/** Each actor and role has its own keys: no other agent can take one, or learn that it is in use. */
const startKeyOf = ({ actor, person = '', role }: Principal, key: string): string =>
  `http:${sha256(canonicalJson([actor, person, role, key]))}`;

/** Whether a client prefers to wait until the log includes its step (RFC 7240). */
const isIntegrationPreferred = (prefer = ''): boolean =>
  prefer.split(',').some((preference) => /^\s*wait\s*=\s*"?integrated"?\s*(?:;|$)/i.test(preference));

/** A step that the log does not include in time has its response all the same, without the header. */
async function respondAsPreferred(pending: Promise<string>, integrated: boolean): Promise<AppliedResponse> {
  try {
    return { response: await pending, headers: integrated ? { 'Preference-Applied': INTEGRATED } : {} };
  } catch (error) {
    if (error instanceof IntegrationError) return { response: error.response, headers: {} };
    throw error;
  }
}

/** The identity of a new run: actor and role come from the token, and so does the case if the token is bound to one. */
function identityOf(principal: Principal, body: StartAgentBody, { agent }: HttpService): AgentIdentity {
  const { idle_ms, case: requestedCase, ...agentOptions } = body;
  const { actor, person, role, case: bound } = principal;
  if (bound !== null && requestedCase !== undefined && requestedCase !== bound) throw new RefusalError('RIGHT_MISSING');
  const case_id = bound ?? requestedCase;
  return {
    ...agent,
    ...agentOptions,
    ...omitUndefined({ case: case_id, idleMs: idle_ms }),
    actor,
    ...omitUndefined({ person }),
    role,
  };
}

/**
 * The input id of a proposal with an idempotency key. The ledger keeps every key permanently: the same key of the same
 * principal in the same run is the same input, and gets the recorded response.
 */
const keyedInputId = (
  { actor, role }: Pick<Principal, 'actor' | 'role'>,
  { run_id, key }: { readonly run_id: string; readonly key: string },
): string => `http:${sha256(canonicalJson([actor, role, run_id, key]))}`;
