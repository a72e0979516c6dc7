// Sessions: the same questions, and the same answers, as over MCP and by command. Every answer is 200, a refusal too:
// it is what the session says, and not that it could not be asked.

import Type, { type TObject, type TProperties } from 'typebox';
import type { JsonObject } from '../../contract/json.js';
import { OVERRIDE_REASONS, SESSION_ROLES } from '../../contract/session.js';
import { closed, OneOf } from '../../contract/shapes.js';
import type { Principal } from '../../ports/token-book.js';
import type { SessionCaller, Sessions } from '../../runtime/sessions/sessions.js';
import { SessionOutput, TaskArguments, TaskOutput } from '../mcp/schemas.js';
import { ask, type DeskAnswer, type SessionDeskOptions } from '../mcp/session-desk.js';
import { SessionSpecs } from './ledger-audit.js';
import { Refused } from './refused.js';
import { Nothing, route, type Answer, type Route } from './route.js';
import type { HttpService } from './service.js';
import { json } from './shapes.js';
import { isKeptBack, type ShownLedger } from './shown-content.js';

const SessionId = Type.String({ minLength: 1, maxLength: 160, pattern: '^[A-Za-z0-9_]+$' });
const OfSession = Type.Object({ session_id: SessionId }, closed);
const Id = Type.String({ minLength: 1, maxLength: 160 });
const { spec_id, spec, idempotency_key, heartbeat, context_usage_pct, estimated_tokens_used } =
  TaskArguments.properties;

const OverrideBody = {
  reason_code: OneOf(OVERRIDE_REASONS),
  reason_detail: Type.Optional(Type.String({ maxLength: 1_000 })),
};
/** The session itself checks it, and names everything that is wrong at once. */
const Report = Type.Optional(
  Type.Object({}, { additionalProperties: true, description: 'What became of the outstanding step' }),
);

/** As whom a token speaks: in a role of sessions where its role is one, else as the least that can work. */
export function sessionCaller({ actor, role }: Principal): SessionCaller {
  return { actor, role: SESSION_ROLES.some((known) => known === role) ? role : 'autonomy_runner' };
}

const ANSWERED = { 200: json('What the session says: `success`, `data`, `error`.', SessionOutput) };

/** What MCP has tools for goes to the same desk. */
const asked = (name: string, tool: 'task' | 'review' | 'verification', known: JsonObject, body: TObject): Route =>
  route({
    method: 'POST',
    path: `/api/v1/sessions/{session_id}/${name}`,
    summary: SUMMARIES[name] ?? name,
    rights: ['sessions'],
    params: OfSession,
    body,
    answers: ANSWERED,
    handle: ({ principal, params: { session_id }, body: given }, service) =>
      atDesk(principal, service, (desk) => ask(tool, { ...(given as JsonObject), ...known, session_id }, desk)),
  });

/** What only people may do. The session judges them by their role. */
const told = (
  name: string,
  properties: TProperties,
  tell: (
    sessions: Sessions,
    session_id: string,
    body: Record<string, unknown>,
    by: SessionCaller,
  ) => Promise<DeskAnswer>,
): Route =>
  route({
    method: 'POST',
    path: `/api/v1/sessions/{session_id}/${name}`,
    summary: SUMMARIES[name] ?? name,
    rights: ['sessions'],
    params: OfSession,
    body: Type.Object<TProperties>(properties, closed),
    answers: ANSWERED,
    handle: ({ principal, params: { session_id }, body }, service) =>
      atDesk(principal, service, ({ sessions, caller }) => tell(sessions, session_id, body, caller)),
  });

const SUMMARIES: Readonly<Record<string, string>> = {
  next: 'Report the outstanding step, and ask for the next one',
  report: 'Refused: a report goes with `next`, and with the proof of its step',
  replay: 'The last answer once more',
  heartbeat: 'A sign of life',
  verify: 'Run the command of the outstanding verification',
  review: 'Have the outstanding gate reviewed',
  pause: 'Pause the session',
  resume: 'Go on after a pause',
  end: 'End the session for good',
  waive: 'Let a gate count as satisfied though nothing has passed it',
};

const step = { action: 'session-step' } as const;

export const SESSION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/sessions',
    summary: 'The sessions, the newest first',
    rights: ['sessions', 'observe'],
    query: Type.Object({ spec_id }, closed),
    answers: { 200: json('All of them, or those of one spec.', TaskOutput) },
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
    body: Type.Object({ spec_id, spec, idempotency_key }, closed),
    answers: ANSWERED,
    handle: ({ principal, body }, service) =>
      atDesk(principal, service, (desk) => ask('task', { ...(body as JsonObject), ...step, command: 'start' }, desk)),
  }),
  route({
    method: 'GET',
    path: '/api/v1/sessions/{session_id}',
    summary: 'How a session stands: nothing is changed, or recorded',
    rights: ['sessions', 'observe'],
    params: OfSession,
    answers: ANSWERED,
    handle: async ({ params: { session_id } }, { turnpike }) => ({ json: await turnpike.sessions.status(session_id) }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/sessions/{session_id}/task',
    summary: 'What a task asks for; without a name, that of the outstanding step',
    rights: ['sessions', 'observe'],
    params: OfSession,
    query: Type.Object({ task_id: Type.Optional(Id) }, closed),
    answers: { 200: json('The task.', TaskOutput) },
    async handle({ principal, params: { session_id }, query: { task_id } }, { turnpike, audit }) {
      const task = await turnpike.sessions.prepare(session_id, task_id);
      if (task === null) throw new Refused('NOT_FOUND');
      // Whoever works through it is handed it in any case; others look at it, as they do at what a lane keeps back.
      if (!principal.rights.has('sessions')) await mustBeShown(session_id, turnpike.ledger);
      const { id: token, actor, role } = principal;
      await audit({ token, actor, role, route: '/api/v1/sessions/{session_id}/task', subject: { session_id } });
      return { json: { success: true, data: task, error: null } };
    },
  }),
  asked(
    'next',
    'task',
    { ...step, command: 'next' },
    Type.Object({ last_step_result: Report, heartbeat, context_usage_pct }, closed),
  ),
  asked('report', 'task', { ...step, command: 'report' }, Type.Object({}, { additionalProperties: true })),
  asked('replay', 'task', { ...step, command: 'replay' }, Nothing),
  asked(
    'heartbeat',
    'task',
    { ...step, command: 'heartbeat' },
    Type.Object({ context_usage_pct, estimated_tokens_used }, closed),
  ),
  asked('verify', 'verification', { action: 'execute' }, Type.Object({ step_id: Id }, closed)),
  asked('review', 'review', { action: 'fidelity-gate' }, Type.Object({ step_id: Id, phase_id: Id }, closed)),
  told('pause', { reason: Type.Optional(Type.String({ maxLength: 400 })) }, (sessions, id, body, by) =>
    sessions.pause(id, body, by),
  ),
  told(
    'resume',
    {
      force: Type.Optional(Type.Boolean()),
      acknowledge: Type.Optional(Type.Object({ gate_attempt_id: Id, decision: OneOf(['pass', 'fail']) }, closed)),
    },
    (sessions, id, body, by) => sessions.resume(id, body, by),
  ),
  told('end', OverrideBody, (sessions, id, body, by) =>
    sessions.end(id, body as unknown as Parameters<Sessions['end']>[1], by),
  ),
  told('waive', { ...OverrideBody, phase_id: Id }, (sessions, id, body, by) =>
    sessions.waive(id, body as unknown as Parameters<Sessions['waive']>[1], by),
  ),
];

/** @throws Refused where a lane keeps back what the session was given */
async function mustBeShown(session_id: string, ledger: ShownLedger): Promise<void> {
  for (const spec of await new SessionSpecs(ledger).of(session_id, Infinity)) {
    if (await isKeptBack(spec, ledger)) throw new Refused('LEDGER_ERASED');
  }
}

async function atDesk(
  principal: Principal,
  service: HttpService,
  work: (desk: SessionDeskOptions) => Promise<DeskAnswer>,
): Promise<Answer> {
  const desk = service.desk(principal);
  if (desk === null) throw new Refused('NOT_FOUND');
  return { json: await work(desk) };
}
