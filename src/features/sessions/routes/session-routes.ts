// Routes for sessions, with the same requests and answers as MCP and the command. Every answer has status 200, even if
// the session refuses the request: the HTTP request itself has succeeded.

import Type, { type TObject, type TProperties } from 'typebox';
import type { JsonObject } from '../../../core/contract/json.js';
import { OVERRIDE_REASONS, SESSION_ROLES } from '../contract/session.js';
import { closed, OneOf } from '../../../core/contract/shapes.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import type { SessionCaller, Sessions } from '../sessions.js';
import { SessionOutput, TaskArguments, TaskOutput } from '../tools/session-tool-schemas.js';
import {
  callSessionTool,
  createSessionTools,
  type SessionToolAnswer,
  type SessionToolsOptions,
} from '../tools/session-tools.js';
import { agentOf, type AgentIdentity } from '../../../interfaces/mcp/run-gateway.js';
import { AGENT_DEFAULTS } from '../../../runtime/agents/caller-input.js';
import { toSessionCaller } from '../session-caller.js';
import { SessionSpecs } from '../../../interfaces/http/routes/ledger-audit.js';
import { RefusalError } from '../../../interfaces/service/problems.js';
import { EmptyObject, route, type RouteResponse, type Route } from '../../../interfaces/http/routes/route.js';
import type { HttpService } from '../../../interfaces/http/http-service.js';
import { jsonResponse } from '../../../interfaces/http/routes/route-shapes.js';
import { isWithheldByLane, type ContentLedger } from '../../../interfaces/http/routes/step-contents.js';

const SessionId = Type.String({ minLength: 1, maxLength: 160, pattern: '^[A-Za-z0-9_]+$' });
const SessionParams = Type.Object({ session_id: SessionId }, closed);
const Id = Type.String({ minLength: 1, maxLength: 160 });
const {
  spec_id,
  spec,
  case: case_id,
  idempotency_key,
  heartbeat,
  context_usage_pct,
  estimated_tokens_used,
} = TaskArguments.properties;

const OverrideBody = {
  reason_code: OneOf(OVERRIDE_REASONS),
  reason_detail: Type.Optional(Type.String({ maxLength: 1_000 })),
};
/** The session validates the report, and reports all mistakes at once. */
const Report = Type.Optional(
  Type.Object({}, { additionalProperties: true, description: 'The report of the outstanding step' }),
);

const SESSION_RESPONSES = {
  200: jsonResponse('The answer of the session: `success`, `data`, `error`.', SessionOutput),
};

/** Routes for the operations that MCP also offers; both use the session tools. */
const toolRoute = (name: string, tool: 'task' | 'review' | 'verification', known: JsonObject, body: TObject): Route =>
  route({
    method: 'POST',
    path: `/api/v1/sessions/{session_id}/${name}`,
    summary: SUMMARIES[name] ?? name,
    rights: ['sessions'],
    params: SessionParams,
    body,
    responses: SESSION_RESPONSES,
    handle: ({ principal, params: { session_id }, body: toolArguments }, service) =>
      withSessionTools(principal, service, (tools) =>
        callSessionTool(tool, { ...(toolArguments as JsonObject), ...known, session_id }, tools),
      ),
  });

/** Routes for the decisions of people. The session authorizes the caller by its role. */
const personRoute = (
  name: string,
  properties: TProperties,
  runCommand: (
    sessions: Sessions,
    session_id: string,
    body: Record<string, unknown>,
    requester: SessionCaller,
  ) => Promise<SessionToolAnswer>,
): Route =>
  route({
    method: 'POST',
    path: `/api/v1/sessions/{session_id}/${name}`,
    summary: SUMMARIES[name] ?? name,
    rights: ['sessions'],
    params: SessionParams,
    body: Type.Object<TProperties>(properties, closed),
    responses: SESSION_RESPONSES,
    handle: ({ principal, params: { session_id }, body }, service) =>
      withSessionTools(principal, service, ({ sessions, caller }) => runCommand(sessions, session_id, body, caller)),
  });

const SUMMARIES: Readonly<Record<string, string>> = {
  next: 'Report the outstanding step, and get the next one',
  report: 'Always refused: send the report to `next`, with the proof of its step',
  replay: 'Get the last answer again',
  heartbeat: 'Record that the agent is alive',
  verify: 'Run the command of the outstanding verification',
  review: 'Review the outstanding gate',
  pause: 'Pause the session',
  resume: 'Resume the session after a pause',
  end: 'End the session permanently',
  waive: 'Waive a gate: mark it as satisfied although nothing has passed it',
};

const step = { action: 'session-step' } as const;

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
        callSessionTool('task', { ...(body as JsonObject), ...step, command: 'start' }, tools),
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
  toolRoute(
    'next',
    'task',
    { ...step, command: 'next' },
    Type.Object({ last_step_result: Report, heartbeat, context_usage_pct }, closed),
  ),
  toolRoute('report', 'task', { ...step, command: 'report' }, Type.Object({}, { additionalProperties: true })),
  toolRoute('replay', 'task', { ...step, command: 'replay' }, EmptyObject),
  toolRoute(
    'heartbeat',
    'task',
    { ...step, command: 'heartbeat' },
    Type.Object({ context_usage_pct, estimated_tokens_used }, closed),
  ),
  toolRoute('verify', 'verification', { action: 'execute' }, Type.Object({ step_id: Id }, closed)),
  toolRoute('review', 'review', { action: 'fidelity-gate' }, Type.Object({ step_id: Id, phase_id: Id }, closed)),
  personRoute('pause', { reason: Type.Optional(Type.String({ maxLength: 400 })) }, (sessions, id, body, requester) =>
    sessions.pause(id, body, requester),
  ),
  personRoute(
    'resume',
    {
      force: Type.Optional(Type.Boolean()),
      acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
    },
    (sessions, id, body, requester) => sessions.resume(id, body, requester),
  ),
  personRoute('end', OverrideBody, (sessions, id, body, requester) =>
    sessions.end(id, body as unknown as Parameters<Sessions['end']>[1], requester),
  ),
  personRoute('waive', { ...OverrideBody, phase_id: Id }, (sessions, id, body, requester) =>
    sessions.waive(id, body as unknown as Parameters<Sessions['waive']>[1], requester),
  ),
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
