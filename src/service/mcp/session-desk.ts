// The tools of sessions: arguments as an agent writes them (S3), the question that they put to a session, its answer.
// What an agent may not decide is not among the arguments: who it is, its lane, posture, limits, what command runs.

import type { TSchema } from 'typebox';
import type { JsonObject } from '../../contract/json.js';
import {
  SESSION_ERRORS,
  type SessionAnswer,
  type SessionError,
  type SessionErrorCode,
} from '../../contract/session-answer.js';
import { SessionSpec } from '../../contract/session-spec.js';
import { conforms } from '../../contract/validators.js';
import { RunError, UsageError } from '../../errors.js';
import type {
  Sessions,
  SessionCaller,
  SessionSummary,
  StartSessionOptions,
  TaskDetails,
} from '../../runtime/sessions/sessions.js';
import { ReviewArguments, TaskArguments, VerificationArguments } from './schemas.js';

/** What every session is started with, whatever its agent asks for. */
export type SessionSettings = Omit<StartSessionOptions, 'spec' | 'idempotencyKey' | 'force' | 'by'>;

export interface SessionDeskOptions {
  readonly sessions: Sessions;
  readonly caller: SessionCaller;
  readonly settings: SessionSettings;
  /** The file of a spec by its id, or null. */
  readonly specFile: (spec_id: string) => string | null;
  /** Whether a spec may be an argument. What a spec tells to run is run: only where agents may run anything. */
  readonly inlineSpecs: boolean;
}

/** What a tool answers: a session's own answer, or another that has its form. */
export type DeskAnswer =
  | SessionAnswer
  | {
      readonly success: true;
      readonly data: TaskDetails | { readonly sessions: readonly SessionSummary[] };
      readonly error: null;
    };

type Refused = Extract<SessionAnswer, { success: false }>;

/** A refusal in the words of sessions. `details` names arguments, and nothing that an agent has written. */
export function refused(code: SessionErrorCode, details: readonly string[] = []): Refused {
  const { type, message } = SESSION_ERRORS[code];
  const error: SessionError = { code, error_type: type, message, details };
  return { success: false, data: null, error };
}

/** Puts one call to the sessions. What has another form than the tool's schema gets no further. */
export async function ask(
  tool: 'task' | 'review' | 'verification',
  args: JsonObject,
  options: SessionDeskOptions,
): Promise<DeskAnswer> {
  // C64: the simple report cannot be right, and must not cost the step anything.
  if (tool === 'task' && args['command'] === 'report') return refused('STEP_PROOF_MISSING');
  const mistakes = mistakesOf(SCHEMAS[tool], args);
  if (mistakes.length > 0) return refused('VALIDATION_ERROR', mistakes);
  try {
    return await asked(tool, args, options);
  } catch (error) {
    // The words of such an error are for whoever runs the service.
    if (error instanceof UsageError) return refused('VALIDATION_ERROR');
    if (error instanceof RunError && error.code === 'AGENT_BUSY') return refused('AGENT_BUSY');
    throw error;
  }
}

const SCHEMAS = { task: TaskArguments, review: ReviewArguments, verification: VerificationArguments } as const;

/** Which arguments are wrong. Of the report nothing is said here: the session names everything in it at once. */
function mistakesOf(schema: (typeof SCHEMAS)[keyof typeof SCHEMAS], args: JsonObject): readonly string[] {
  const { required }: { readonly required: readonly string[] } = schema;
  const properties: Readonly<Record<string, TSchema>> = schema.properties;
  const strange = Object.keys(args).some((name) => !Object.hasOwn(properties, name));
  return [
    ...required.filter((name) => args[name] === undefined),
    ...Object.entries(properties).flatMap(([name, schema]) =>
      args[name] === undefined || name === 'last_step_result' || conforms(schema, args[name]) ? [] : [name],
    ),
    ...(strange ? ['an argument that this tool does not have'] : []),
  ];
}

interface Question {
  readonly args: JsonObject;
  readonly text: (name: string) => string | undefined;
  readonly number: (name: string) => number | undefined;
}

async function asked(tool: keyof typeof SCHEMAS, args: JsonObject, options: SessionDeskOptions): Promise<DeskAnswer> {
  const question: Question = {
    args,
    text: (name) => (typeof args[name] === 'string' ? args[name] : undefined),
    number: (name) => (typeof args[name] === 'number' ? args[name] : undefined),
  };
  const { text } = question;
  const { sessions, caller } = options;
  const command = tool === 'task' ? commandOf(question) : tool;
  if (command === null) return refused('VALIDATION_ERROR', ['command']);
  if (command === 'start') return start(question, options);
  if (command === 'list') return listed(await sessions.list(text('spec_id')));
  const session_id = await sessionOf(question, command, sessions);
  if (typeof session_id !== 'string') return session_id;
  const [step_id = '', phase_id = ''] = [text('step_id'), text('phase_id')];
  switch (command) {
    case 'review':
      return sessions.review(session_id, { phase_id, step_id }, caller);
    case 'verification':
      return sessions.verify(session_id, { step_id }, caller);
    case 'next':
      return sessions.next(session_id, nextRequest(question), caller);
    case 'replay':
      return sessions.replay(session_id, caller);
    case 'heartbeat':
      return sessions.heartbeat(session_id, { ...usage(question), ...tokens(question) }, caller);
    case 'resume':
      return sessions.resume(session_id, {}, caller);
    case 'status':
      return sessions.status(session_id);
    case 'prepare': {
      const task = await sessions.prepare(session_id, text('task_id'));
      return task === null ? refused('NOT_FOUND', ['task_id']) : { success: true, data: task, error: null };
    }
  }
}

const COMMANDS = {
  'session-step': ['start', 'next', 'replay', 'heartbeat', 'status'],
  session: ['start', 'resume', 'heartbeat', 'status', 'list'],
} as const;
type Command = (typeof COMMANDS)[keyof typeof COMMANDS][number] | 'prepare';

/** @returns null for a command that the action does not have */
function commandOf({ text }: Question): Command | null {
  const [action, command] = [text('action'), text('command')];
  if (action === 'prepare') return command === undefined ? 'prepare' : null;
  const commands: readonly Command[] = action === 'session' ? COMMANDS.session : COMMANDS['session-step'];
  return commands.find((name) => name === command) ?? null;
}

async function start({ args, text }: Question, options: SessionDeskOptions): Promise<DeskAnswer> {
  const { sessions, caller, settings, specFile, inlineSpecs } = options;
  // Who only looks, begins nothing; there is no session yet that could say so.
  if (caller.role === 'observer') return refused('AUTHORIZATION');
  const [spec_id, inline] = [text('spec_id'), args['spec']];
  if ((spec_id === undefined) === (inline === undefined)) return refused('VALIDATION_ERROR', ['spec_id', 'spec']);
  if (inline !== undefined && !(inlineSpecs && conforms(SessionSpec, inline))) {
    return refused('VALIDATION_ERROR', ['spec']);
  }
  const spec = spec_id === undefined ? (inline as unknown as SessionSpec) : specFile(spec_id);
  if (spec === null) return refused('NOT_FOUND', ['spec_id']);
  const key = text('idempotency_key');
  return sessions.start({ ...settings, spec, by: caller, ...(key === undefined ? {} : { idempotencyKey: key }) });
}

/** The session that is meant. Only what changes nothing may be asked for by the spec alone. */
async function sessionOf({ text }: Question, command: string, sessions: Sessions): Promise<string | Refused> {
  const [session_id, spec_id] = [text('session_id'), text('spec_id')];
  if (session_id === undefined) {
    if (spec_id === undefined || (command !== 'prepare' && command !== 'status'))
      return refused('VALIDATION_ERROR', ['session_id']);
    const live = (await sessions.list(spec_id)).find(({ status }) => status !== 'completed' && status !== 'ended');
    return live?.session_id ?? refused('NO_ACTIVE_SESSION');
  }
  if (spec_id === undefined) return session_id;
  const { data } = await sessions.status(session_id);
  return data === null || data.spec_id === spec_id ? session_id : refused('VALIDATION_ERROR', ['spec_id']);
}

const listed = (sessions: readonly SessionSummary[]): DeskAnswer => ({
  success: true,
  data: { sessions },
  error: null,
});

function nextRequest(question: Question): Parameters<Sessions['next']>[1] {
  const { last_step_result: report, heartbeat } = question.args;
  return {
    ...(report === undefined ? {} : { last_step_result: report }),
    ...(typeof heartbeat === 'boolean' ? { heartbeat } : {}),
    ...usage(question),
  };
}

function usage({ number }: Question): { readonly context_usage_pct?: number } {
  const context_usage_pct = number('context_usage_pct');
  return context_usage_pct === undefined ? {} : { context_usage_pct };
}

function tokens({ number }: Question): { readonly estimated_tokens_used?: number } {
  const estimated_tokens_used = number('estimated_tokens_used');
  return estimated_tokens_used === undefined ? {} : { estimated_tokens_used };
}
