// Routes for sessions, with the same requests and answers as MCP and the command. Every answer has status 200, even if
// the session refuses the request: the HTTP request itself has succeeded.

import Type from 'typebox';
import type { JsonObject } from '../../../core/contract/json.js';
import { SESSION_ROLES } from '../contract/session.js';
import { closed } from '../../../core/contract/shapes.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import { rejectionWithoutSession } from '../rules/command-answer.js';
import { callOperation, Id, SESSION_OPERATIONS, sessionOperations } from '../session-operations.js';
import { SessionOutput, TaskArguments, TaskOutput } from '../tools/session-tool-schemas.js';
import {
  answerRefusals,
  callSessionTool,
  createSessionTools,
  toSessionCaller,
  type SessionToolAnswer,
  type SessionToolsOptions,
} from '../tools/session-tools.js';
import { agentOf, type AgentIdentity } from '../../../interfaces/mcp/run-gateway.js';
import { AGENT_DEFAULTS } from '../../../runtime/agents/caller-input.js';
import { SessionSpecs, isWithheldByLane, type ContentLedger } from '../../../interfaces/http/routes/ledger-audit.js';
import { RefusalError } from '../../../interfaces/service/problems.js';
import { route, type RouteResponse, type Route } from '../../../interfaces/http/routes/route.js';
import type { HttpService } from '../../../interfaces/http/http-service.js';
import { jsonResponse } from '../../../interfaces/http/routes/route-shapes.js';

const SessionId = Type.String({ minLength: 1, maxLength: 160, pattern: '^[A-Za-z0-9_]+$' });
const SessionParams = Type.Object({ session_id: SessionId }, closed);
const { spec_id, spec, case: case_id, idempotency_key } = TaskArguments.properties;

const SESSION_RESPONSES = {
  200: jsonResponse('The answer of the session: `success`, `data`, `error`.', SessionOutput),
};

/** The session validates the report, and reports all mistakes at once. */
const Report = Type.Optional(
  Type.Object({}, { additionalProperties: true, description: 'The report of the outstanding step' }),
);
const NextBody = Type.Object({ ...SESSION_OPERATIONS.next.request.properties, last_step_result: Report }, closed);

/** The route of an operation. The session authorizes the caller by its role. */
const operationRoute = ([name, operation]: (typeof sessionOperations)[number], summary: string): Route =>
  route({
    method: 'POST',
    path: `/api/v1/sessions/{session_id}/${name}`,
    summary,
    rights: ['sessions'],
    params: SessionParams,
    body: name === 'next' ? NextBody : operation.request,
    responses: SESSION_RESPONSES,
    handle: ({ principal, params: { session_id }, body }, service) =>
      withSessionTools(principal, service, ({ sessions, caller }) => {
        const answer = callOperation(sessions, name, session_id, body, caller);
        return operation.role === 'autonomy_runner' ? answerRefusals(answer) : answer;
      }),
  });

/** Agents that work without proofs find out here what they have to send. */
const REPORT_ROUTE = route({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}/report',
  summary: 'Always refused: send the report to `next`, with the proof of its step',
  rights: ['sessions'],
  params: SessionParams,
  body: Type.Object({}, { additionalProperties: true }),
  responses: SESSION_RESPONSES,
  handle: ({ principal }, service) =>
    withSessionTools(principal, service, () => Promise.resolve(rejectionWithoutSession('STEP_PROOF_MISSING'))),
});

const OPERATION_ROUTES: readonly Route[] = sessionOperations.flatMap((entry) =>
  entry[1].route === null
    ? []
    : [operationRoute(entry, entry[1].route), ...(entry[0] === 'next' ? [REPORT_ROUTE] : [])],
);

export const SESSION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/sessions',
    summary: 'List the sessions, the newest first',
    rights: ['sessions', 'observe'],
    query: Type.Object({ spec_id }, closed),
    responses: { 200: jsonResponse('All sessions, or those of one spec.', TaskOutput) },
    async handle({ query, control }, { turnpike }) {
      const sessions = await turnpike.sessions.list(query.spec_id, control);
      return { json: { success: true, data: { sessions }, error: null } };
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/sessions',
    summary: 'Start a session of a spec',
    rights: ['sessions'],
    body: Type.Object({ spec_id, spec, case: case_id, idempotency_key }, closed),
    responses: SESSION_RESPONSES,
    handle: ({ principal, body }, service) =>
      withSessionTools(principal, service, (tools) =>
        callSessionTool('task', { ...(body as JsonObject), action: 'session-step', command: 'start' }, tools),
      ),
  }),
  route({
    method: 'GET',
    path: '/api/v1/sessions/{session_id}',
    summary: 'Get the status of a session; changes and records nothing',
    rights: ['sessions', 'observe'],
    params: SessionParams,
    responses: SESSION_RESPONSES,
    handle: async ({ params: { session_id } }, { turnpike }) => ({ json: await turnpike.sessions.status(session_id) }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/sessions/{session_id}/task',
    summary: 'Get a task; by default that of the outstanding step',
    rights: ['sessions', 'observe'],
    params: SessionParams,
    query: Type.Object({ task_id: Type.Optional(Id) }, closed),
    responses: { 200: jsonResponse('The task.', TaskOutput) },
    async handle({ principal, params: { session_id }, query: { task_id } }, { turnpike, audit }) {
      const task = await turnpike.sessions.prepare(session_id, task_id);
      if (task === null) throw new RefusalError('NOT_FOUND');
      // A caller that works through the session receives the task anyway; for others it is content that a lane may
      // withhold.
      if (!principal.rights.has('sessions')) await checkSpecIsVisible(session_id, turnpike.ledger);
      const { id: token, actor, role } = principal;
      await audit({ token, actor, role, route: '/api/v1/sessions/{session_id}/task', subject: { session_id } });
      return { json: { success: true, data: task, error: null } };
    },
  }),
  ...OPERATION_ROUTES,
];

/** @throws RefusalError LEDGER_ERASED if a lane withholds the spec of the session */
async function checkSpecIsVisible(session_id: string, ledger: ContentLedger): Promise<void> {
  for (const spec of await new SessionSpecs(ledger).list(session_id, Infinity)) {
    if (await isWithheldByLane(spec, ledger)) throw new RefusalError('LEDGER_ERASED');
  }
}

async function withSessionTools(
  principal: Principal,
  { turnpike, agent, options: { sessions = {} } }: HttpService,
  work: (tools: SessionToolsOptions) => Promise<SessionToolAnswer>,
): Promise<RouteResponse> {
  if (sessions === null) throw new RefusalError('NOT_FOUND');
  const tools = createSessionTools(turnpike.sessions, sessions, sessionAgentOf(principal, agent));
  return { json: await work({ ...tools, caller: toSessionCaller(principal) }) };
}

/** If the token's role is a session role, agents get the configured role. */
function sessionAgentOf(principal: Principal, agent: AgentIdentity): AgentIdentity {
  const identity = agentOf(principal, agent);
  if (!SESSION_ROLES.some((role) => role === principal.role)) return identity;
  return { ...identity, role: agent.role ?? AGENT_DEFAULTS.role };
}
