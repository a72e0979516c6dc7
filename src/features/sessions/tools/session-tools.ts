// The session tools: translate the arguments of an agent (S3) into a session command, and return its answer. There are
// no arguments for what an agent must not decide: its identity, lane, posture, limits, or the command that runs. The
// details of a refusal name arguments, and never contain text of an agent.

import type { TProperties } from 'typebox';
import type { JsonObject } from '../../../core/contract/json.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { SessionSpec, SpecId } from '../contract/session-spec.js';
import { SESSION_ROLES, type SessionRole } from '../contract/session.js';
import { isConforming } from '../../../core/contract/validators.js';
import { RunError, UsageError } from '../../../core/errors.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { Principal } from '../../../engine/ports/token-book.js';
import { rejectionWithoutSession } from '../rules/command-answer.js';
import { AGENT_DEFAULTS } from '../../../runtime/agents/caller-input.js';
import type { AgentIdentity } from '../../../interfaces/mcp/run-gateway.js';
import type {
  SessionCaller,
  SessionDefaults,
  SessionOptions,
  Sessions,
  SessionSummary,
  TaskDetails,
} from '../sessions.js';
import { callOperation, SESSION_OPERATIONS, type SessionOperation } from '../session-operations.js';
import {
  ReviewArguments,
  TaskArguments,
  VerificationArguments,
  SessionOutput,
  TaskOutput,
} from './session-tool-schemas.js';
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type OpenTools, type AddedToolResult, toToolSchema } from '../../../interfaces/mcp/offer.js';
import { toAnswerResult } from '../../../interfaces/mcp/tool-results.js';

/** @internal */
export interface SessionToolsOptions {
  readonly sessions: Sessions;
  readonly caller: SessionCaller;
  readonly settings: SessionDefaults;
  /** Returns the file of a spec by its id, or null. */
  readonly specFile: (spec_id: string) => string | null;
  /**
   * Whether a spec may be an argument. Danger: the commands in it are executed, so enable it only if agents may run
   * any.
   */
  readonly inlineSpecs: boolean;
}

/** @internal The answer of a session tool: a session's own answer, or another of the same form. */
export type SessionToolAnswer = SessionAnswer | ReturnType<typeof answerOf>;

/** @internal Executes one call of a session tool. Arguments that do not match the schema of the tool are refused. */
export async function callSessionTool(
  tool: SessionToolName,
  args: JsonObject,
  options: SessionToolsOptions,
): Promise<SessionToolAnswer> {
  // C64: a report without proof can never be valid, and must not affect the step.
  if (tool === 'task' && args['command'] === 'report') return rejectionWithoutSession('STEP_PROOF_MISSING');
  const mistakes = findArgumentMistakes(SESSION_TOOLS[tool].input, args);
  if (mistakes.length > 0) return rejectionWithoutSession('VALIDATION_ERROR', mistakes);
  return answerRefusals(runTool(tool, args, options));
}

/** @internal An agent gets the refusal of its call as an answer. */
export async function answerRefusals<T>(answer: Promise<T>): Promise<T | SessionAnswer> {
  try {
    return await answer;
  } catch (error) {
    // The message of such an error is for the operator of the service.
    if (error instanceof UsageError) return rejectionWithoutSession('VALIDATION_ERROR');
    if (error instanceof RunError && error.code === 'AGENT_BUSY') return rejectionWithoutSession('AGENT_BUSY');
    throw error;
  }
}

const NO_HINTS = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };

/** The tools of sessions, with the operation of those that have only one. */
const SESSION_TOOLS = {
  task: {
    title: 'Task',
    description:
      'Work through a spec step by step. start gives a session and its first next_step; do what its instruction says, ' +
      'then report it with next and the whole last_step_result, step_proof unchanged. replay gives the last answer again.',
    input: TaskArguments,
    output: TaskOutput,
    annotations: NO_HINTS,
    operation: null,
  },
  review: {
    title: 'Review',
    description: 'Have the outstanding gate of a phase reviewed. Gives the gate_attempt_id that its report needs.',
    input: ReviewArguments,
    output: SessionOutput,
    annotations: NO_HINTS,
    operation: 'review',
  },
  verification: {
    title: 'Verification',
    description: 'Run the command of the outstanding verification. Gives the receipt that its report needs.',
    input: VerificationArguments,
    output: SessionOutput,
    annotations: { ...NO_HINTS, destructiveHint: true, openWorldHint: true },
    operation: 'verify',
  },
} as const;
type SessionToolName = keyof typeof SESSION_TOOLS;

/** The names of the invalid arguments. The report is not checked here: the session reports all its mistakes at once. */
function findArgumentMistakes(
  { required, properties }: { readonly required: readonly string[]; readonly properties: TProperties },
  args: JsonObject,
): readonly string[] {
  const hasUnknownArgument = Object.keys(args).some((name) => !Object.hasOwn(properties, name));
  return [
    ...required.filter((name) => args[name] === undefined),
    ...Object.entries(properties).flatMap(([name, schema]) =>
      args[name] === undefined || name === 'last_step_result' || isConforming(schema, args[name]) ? [] : [name],
    ),
    ...(hasUnknownArgument ? ['an argument that this tool does not have'] : []),
  ];
}

async function runTool(
  tool: SessionToolName,
  args: JsonObject,
  options: SessionToolsOptions,
): Promise<SessionToolAnswer> {
  const { sessions, caller } = options;
  const command = SESSION_TOOLS[tool].operation ?? parseCommand(args);
  if (command === null) return rejectionWithoutSession('VALIDATION_ERROR', ['command']);
  if (command === 'start') return startSession(args, options);
  if (command === 'list') return answerOf({ sessions: await sessions.list(textOf(args, 'spec_id')) });
  const session_id = await findSession(args, command, sessions);
  if (typeof session_id !== 'string') return session_id;
  if (command === 'status') return sessions.status(session_id);
  if (command !== 'prepare') {
    // The arguments that the request of the operation has. Their schema in the tool is as strict as there.
    const { properties }: SessionOperation['request'] = SESSION_OPERATIONS[command].request;
    const request = Object.entries(args).filter(([name]) => Object.hasOwn(properties, name));
    return callOperation(sessions, command, session_id, Object.fromEntries(request), caller);
  }
  const task = await sessions.prepare(session_id, textOf(args, 'task_id'));
  return task === null ? rejectionWithoutSession('NOT_FOUND', ['task_id']) : answerOf(task);
}

const TOOL_COMMANDS = {
  'session-step': ['start', 'next', 'replay', 'heartbeat', 'status'],
  session: ['start', 'resume', 'heartbeat', 'status', 'list'],
} as const;
type ToolCommand = (typeof TOOL_COMMANDS)[keyof typeof TOOL_COMMANDS][number] | 'prepare';

/** @returns null if the action does not have this command */
function parseCommand({ action, command }: JsonObject): ToolCommand | null {
  if (action === 'prepare') return command === undefined ? 'prepare' : null;
  const commands: readonly ToolCommand[] = action === 'session' ? TOOL_COMMANDS.session : TOOL_COMMANDS['session-step'];
  return commands.find((name) => name === command) ?? null;
}

const textOf = (args: JsonObject, name: string): string | undefined => {
  const value = args[name];
  return typeof value === 'string' ? value : undefined;
};

async function startSession(args: JsonObject, options: SessionToolsOptions): Promise<SessionToolAnswer> {
  const { sessions, caller, settings, specFile, inlineSpecs } = options;
  // An observer may not start a session, and there is no session yet that could refuse it.
  if (caller.role === 'observer') return rejectionWithoutSession('AUTHORIZATION');
  const [spec_id, inline] = [textOf(args, 'spec_id'), args['spec']];
  if ((spec_id === undefined) === (inline === undefined))
    return rejectionWithoutSession('VALIDATION_ERROR', ['spec_id', 'spec']);
  if (inline !== undefined && !(inlineSpecs && isConforming(SessionSpec, inline))) {
    return rejectionWithoutSession('VALIDATION_ERROR', ['spec']);
  }
  const spec = spec_id === undefined ? (inline as unknown as SessionSpec) : specFile(spec_id);
  if (spec === null) return rejectionWithoutSession('NOT_FOUND', ['spec_id']);
  const [key, case_id = settings.case] = [textOf(args, 'idempotency_key'), textOf(args, 'case')];
  if (settings.case !== undefined && case_id !== settings.case)
    return rejectionWithoutSession('AUTHORIZATION', ['case']);
  return sessions.start({
    ...{ ...settings, spec, by: caller },
    ...omitUndefined({ case: case_id, idempotencyKey: key }),
  });
}

/** Finds the session of a call. Only commands that change nothing may name a session by its spec alone. */
async function findSession(args: JsonObject, command: string, sessions: Sessions): Promise<string | SessionAnswer> {
  const [session_id, spec_id] = [textOf(args, 'session_id'), textOf(args, 'spec_id')];
  if (session_id === undefined) {
    if (spec_id === undefined || (command !== 'prepare' && command !== 'status'))
      return rejectionWithoutSession('VALIDATION_ERROR', ['session_id']);
    const live = (await sessions.list(spec_id)).find(({ status }) => status !== 'completed' && status !== 'ended');
    return live?.session_id ?? rejectionWithoutSession('NO_ACTIVE_SESSION');
  }
  if (spec_id === undefined) return session_id;
  const { data } = await sessions.status(session_id);
  return data === null || data.spec_id === spec_id
    ? session_id
    : rejectionWithoutSession('VALIDATION_ERROR', ['spec_id']);
}

const answerOf = (data: TaskDetails | { readonly sessions: readonly SessionSummary[] }) =>
  ({ success: true, data, error: null }) as const;

/** A role that is a session role as such; else `autonomy_runner`, which has the fewest rights. */
const toSessionRole = (role: string): SessionRole => SESSION_ROLES.find((known) => known === role) ?? 'autonomy_runner';

/** The session caller of a token. */
export const toSessionCaller = ({ actor, role }: Principal) => ({ actor, role: toSessionRole(role) });

/** @internal The session tools of one agent. */
export function createSessionTools(
  sessions: Sessions,
  options: SessionOptions,
  agent: AgentIdentity,
): SessionToolsOptions {
  const { role = 'autonomy_runner', specs, inlineSpecs = false, settings = {} } = options;
  const folder = specs === undefined ? null : requireFolder(specs);
  return {
    sessions,
    caller: { actor: agent.actor ?? AGENT_DEFAULTS.actor, role },
    settings: { ...settings, ...sessionDefaultsOf(agent) },
    specFile: (spec_id) => (folder === null ? null : findSpecFile(folder, spec_id)),
    inlineSpecs,
  };
}

const sessionDefaultsOf = ({
  actor,
  person,
  role,
  lane,
  case: case_id,
  scope,
  exposure,
  correlation,
}: AgentIdentity): SessionDefaults =>
  omitUndefined({ actor, person, agentRole: role, lane, case: case_id, scope, exposure, correlation });

function requireFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    throw new UsageError({ code: 'USAGE', message: `${folder} is not a folder of specs`, cause });
  }
}

const ENDINGS = ['.yaml', '.yml', '.json'];

/**
 * The file of the spec with this id, directly in the folder, or null. Symbolic links are not followed: only a user who
 * can write to the folder may decide what agents work on.
 */
export function findSpecFile(folder: string, spec_id: string): string | null {
  if (!isConforming(SpecId, spec_id)) return null;
  const paths = ENDINGS.map((ending) => join(folder, `${spec_id}${ending}`));
  return paths.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true) ?? null;
}

/** Opens the session tools for the agents of one server. A token needs the right `sessions`. */
export const openSessionTools: OpenTools = ({ turnpike, agent, principal, options: { sessions = {} } }) => {
  if (sessions === null || principal?.rights.has('sessions') === false) return [];
  const role = principal === null ? {} : { role: toSessionCaller(principal).role };
  const tools = createSessionTools(turnpike.sessions, { ...sessions, ...role }, agent);
  return OFFERED_TOOLS.map((offered) => ({ offered, call: (args) => callTool(offered.name, args, tools) }));
};

/** The commands whose answer may contain a step for the agent. Commands that only read give it no run. */
const STEP_COMMANDS: readonly string[] = ['start', 'next', 'replay', 'resume'];

async function callTool(tool: SessionToolName, args: JsonObject, tools: SessionToolsOptions): Promise<AddedToolResult> {
  const answer = await callSessionTool(tool, args, tools);
  const run = tool === 'task' && STEP_COMMANDS.some((name) => name === args['command']) ? runOf(answer) : undefined;
  return { result: toAnswerResult(answer), ...(run === undefined ? {} : { run }) };
}

/** The run of the step in an answer; undefined if the answer does not say which step is outstanding. */
function runOf({ success, data }: SessionToolAnswer): string | null | undefined {
  if (data === null || !('next_step' in data)) return undefined;
  const run_id = data.next_step?.run_id ?? null;
  return success || run_id !== null ? run_id : undefined;
}

const OFFERED_TOOLS = (Object.keys(SESSION_TOOLS) as SessionToolName[]).map((name) => {
  const { title, description, input, output, annotations } = SESSION_TOOLS[name];
  return {
    name,
    title,
    description,
    inputSchema: toToolSchema(input),
    outputSchema: toToolSchema(output),
    annotations,
  };
});
