// Shared by the session commands: the caller, the session, and the input of reports and specs. Also the options of
// `turnpike mcp` and `turnpike serve` for the sessions of their agents.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { findTextProblem, type TextRule } from '../../../core/contract/text-rule.js';
import { usageError } from '../../../core/errors.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { AddedToolOptions } from '../../../runtime/host-feature.js';
import { ContentReader } from '../../../runtime/content/content-reader.js';
import { systemClock } from '../../../system/system-clock.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import type {
  CliCommand,
  CommandArguments,
  CommandOption,
  ExitCode,
  OptionValues,
  ToolCommandOptions,
} from '../../../interfaces/cli/command.js';
import { withHomeAccess, type HomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { PATH_TYPE, wordType, type OptionType } from '../../../interfaces/cli/option-types.js';
import { withLedger } from '../../../interfaces/cli/options/folders.js';
import { parseJsonArgument } from '../../../interfaces/cli/payloads.js';
import { readBeginning } from '../../../interfaces/cli/payloads.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { countText, createPainter, table } from '../../../interfaces/cli/text/terminal.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { SpecId, SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { POSTURES, SESSION_ROLES, type SessionRole } from '../contract/session.js';
import { redactAnswer } from '../redact-session.js';
import { rejectionWithoutSession } from '../rules/command-answer.js';
import type { SessionState } from '../rules/session-state.js';
import {
  callOperation,
  SESSION_OPERATIONS,
  type RequestOf,
  type SessionOperation,
  type SessionOperationName,
} from '../session-operations.js';
import { listCommittedSessions, loadCommittedSession, toSummary } from '../session-reader.js';
import type { SessionCaller, SessionSummary } from '../sessions.js';
import { readSpec } from '../spec/read-spec.js';
import { printAnswer, sessionRows } from './session-text.js';

/** Loop commands act as an agent, all others as a person, unless `--role` says otherwise. */
type CommandRole = SessionOperation['role'];

const ACTORS: Readonly<Record<SessionRole, string>> = {
  autonomy_runner: 'agent',
  maintainer: 'operator',
  observer: 'observer',
};

export const callerOptions = (defaultRole: CommandRole) =>
  [
    {
      name: 'actor',
      value: 'NAME',
      help: `your name, for the audit; 3 to 120 characters (default ${ACTORS[defaultRole]})`,
    },
    {
      name: 'role',
      value: 'ROLE',
      type: wordType(SESSION_ROLES),
      help: `your role: ${SESSION_ROLES.join(', ')} (default ${defaultRole})`,
    },
  ] as const satisfies readonly CommandOption[];
type CallerValues = OptionValues<ReturnType<typeof callerOptions>>;

export const callerOf = ({ actor, role }: CallerValues, defaultRole: CommandRole): SessionCaller => ({
  actor: actor ?? ACTORS[role ?? defaultRole],
  role: role ?? defaultRole,
});

const NOTE_CHARS_MAX = 400;

/** A text that the ledger accepts as a note. */
export const NOTE_TYPE: OptionType<string> = {
  takes: `up to ${NOTE_CHARS_MAX} characters`,
  parse: (text) => (text.length <= NOTE_CHARS_MAX && text.isWellFormed() ? text : undefined),
};

export const numberType = (max: number): OptionType<number> => ({
  takes: `a number up to ${max}`,
  quotes: true,
  parse: (text) => (/^\d{1,15}(?:\.\d{1,6})?$/u.test(text) && Number(text) <= max ? Number(text) : undefined),
});

const MCP_OPTIONS = [
  {
    name: 'specs',
    value: 'DIR',
    type: PATH_TYPE,
    help: 'a folder of specs that agents may work through, named by their ids',
  },
  { name: 'inline-specs', help: 'accept specs from agents; danger: the commands in them are executed' },
  {
    name: 'session-role',
    value: 'ROLE',
    type: wordType(SESSION_ROLES),
    help: `the session role of agents (default ${SESSION_ROLES[0]})`,
  },
] as const satisfies readonly CommandOption[];
const POSTURE_OPTION = {
  name: 'posture',
  value: 'HOW',
  type: wordType(POSTURES),
  help: `the posture of sessions that agents start: ${POSTURES.join(', ')}`,
} as const satisfies CommandOption;

export const SESSION_TOOL_OPTIONS: ToolCommandOptions = {
  mcp: { middle: MCP_OPTIONS, end: [POSTURE_OPTION] },
  serve: [
    { name: 'specs', value: 'DIR', type: PATH_TYPE, help: 'a folder of specs for new sessions, named by their ids' },
    { name: 'inline-specs', help: 'accept specs in requests; danger: the commands in them are executed' },
  ],
  parse(args): AddedToolOptions {
    // `serve` has not all of these options.
    const values = args.values as Partial<OptionValues<[...typeof MCP_OPTIONS, typeof POSTURE_OPTION]>>;
    const { specs, inlineSpecs = false, sessionRole: role, posture } = values;
    const settings = posture === undefined ? undefined : { posture };
    return { sessions: { inlineSpecs, ...omitUndefined({ role, specs, settings }) } };
  },
};

/** Passed as the step id if no step is outstanding; the session then reports that. */
export const NO_STEP = 'none';

const STEP_ID: TextRule = { pattern: '^[A-Za-z0-9_.-]{1,160}$' };
const ID_RULES = {
  phase: SpecId,
  task: SpecId,
  step: STEP_ID,
  'gate attempt': STEP_ID,
  session: { pattern: '^ses_[A-Za-z0-9]{1,100}$' },
} as const;

/** @throws UsageError for an invalid id */
export function parseId(
  { usageError: createError }: Pick<CommandArguments, 'usageError'>,
  what: keyof typeof ID_RULES,
  text: string,
): string {
  const problem = findTextProblem(ID_RULES[what], text, `a ${what} id`);
  if (problem === null) return text;
  throw createError(`${quoteArgument(text)} is not a valid ${what} id: it ${problem}`);
}

/** The session id at the start of the operands, if there is one, and the other operands. */
export function splitOperands(command: CliCommand, args: CommandArguments) {
  const { operands } = args;
  const [first = ''] = operands;
  if (operands.length < command.operands.max) return { session: undefined, rest: operands };
  return { session: parseId(args, 'session', first), rest: operands.slice(1) };
}

/** One session and its state as a reader sees it. Null if the ledger has no such session. */
export interface SessionTarget {
  readonly session_id: string;
  readonly state: SessionState | null;
}

/** A command that requests an operation of one session. */
interface OperationCommand<Name extends SessionOperationName, Options extends readonly CommandOption[]> extends Pick<
  CliCommand,
  'summary' | 'notes'
> {
  readonly operation: Name;
  /** The word after `session`. Default: the name of the operation. */
  readonly name?: string;
  /** The operands after the session, as the usage line shows them. */
  readonly operands?: readonly string[];
  /** Its options besides those of the caller. */
  readonly options?: Options;
  /**
   * Reads the request before the session is looked for. What depends on the session is a function of it.
   * @throws UsageError
   */
  readonly readRequest: (
    args: CommandArguments<OptionValues<Options>>,
    io: Io,
  ) => ReadRequest<RequestOf<Name>> | Promise<ReadRequest<RequestOf<Name>>>;
}

type ReadRequest<Request> = Request | ((target: SessionTarget) => Request);

/** The operand of a command that takes only a session. */
export const SESSION_OPERAND = { usage: '[SESSION]', min: 0, max: 1 } as const;

/**
 * The command of an operation. It requests the operation and prints the answer; it returns 0 on success, and 1 if the
 * session refused. `readRequest` gets the operands after the session.
 */
export function operationCommand<
  Name extends SessionOperationName,
  const Options extends readonly CommandOption[] = readonly [],
>({
  operation: operationName,
  name = operationName,
  summary,
  operands = [],
  options,
  notes,
  readRequest,
}: OperationCommand<Name, Options>): CliCommand {
  const { role }: SessionOperation = SESSION_OPERATIONS[operationName];
  const command: CliCommand = {
    name: `session ${name}`,
    access: 'write',
    summary,
    operands: {
      usage: [SESSION_OPERAND.usage, ...operands].join(' '),
      min: operands.length,
      max: operands.length + 1,
    },
    options: [...(options ?? []), ...callerOptions(role)],
    ...omitUndefined({ notes }),
    async run(args, io) {
      const { session, rest } = splitOperands(command, args);
      // Its options are those of `command`.
      const { values } = args as CommandArguments<OptionValues<Options> & CallerValues>;
      const read: ReadRequest<object> = await readRequest({ ...args, values, operands: rest }, io);
      const caller = callerOf(values, role);
      return withSession(session, args, io, (target) =>
        withHomeAccess(args, io, async (home) => {
          progressFor(args, io).begin({ label: command.name, unit: 'entries', total: null });
          const request = read instanceof Function ? read(target) : read;
          const requested = callOperation(home.turnpike.sessions, operationName, target.session_id, request, caller);
          const answer = await releaseOnStop(home, io, requested);
          return printAnswer(role === 'autonomy_runner' ? answer : await redactFor(answer, args, io), args, io);
        }),
      );
    },
  };
  return command;
}

/**
 * Answers to loop commands go to the agent of the session, unredacted; other answers contain what any reader may see.
 */
const redactFor = (answer: SessionAnswer, args: CommandArguments, io: Io): Promise<SessionAnswer> =>
  withLedger(args, io, ({ store }) => redactAnswer(answer, new ContentReader(store)));

/**
 * A check may take an hour. If the command is stopped, it closes the home: running checks are killed and recorded as
 * unknown. A signal alone would leave an unsandboxed program running.
 */
async function releaseOnStop<T>(home: HomeAccess, io: Io, target: Promise<T>): Promise<T> {
  const stop = io.stop();
  const closing: Promise<void>[] = [];
  const closeHome = (): void => void closing.push(home.close());
  if (stop.aborted) closeHome();
  else stop.addEventListener('abort', closeHome, { once: true });
  try {
    return await target;
  } finally {
    stop.removeEventListener('abort', closeHome);
    await Promise.all(closing);
  }
}

/**
 * Finds the session: the named one, or the only active one.
 * @returns 2 if that is ambiguous
 */
export async function withSession(
  sessionName: string | undefined,
  args: CommandArguments,
  io: Io,
  work: (target: SessionTarget) => Promise<ExitCode>,
): Promise<ExitCode> {
  if (sessionName !== undefined) {
    return work({
      session_id: sessionName,
      state: await withLedger(args, io, ({ store }) => loadCommittedSession(store, sessionName)),
    });
  }
  const active = await listSessions({ active: true }, args, io);
  const [state, other] = active;
  if (state === undefined)
    return printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION', ['none is active']), args, io);
  if (other === undefined) return work({ session_id: state.session_id, state });
  await io.stderr.writeLine(
    `AMBIGUOUS_ACTIVE_SESSION: ${countText(active.length, 'session')} are active: name one of them`,
  );
  await io.stderr.write(table(sessionRows(active.map(toPresentSummary)), createPainter(false)));
  return 2;
}

/** The sessions as a reader sees them, in the order of their start. */
export const listSessions = (
  which: { readonly active: boolean },
  args: CommandArguments,
  io: Io,
): Promise<readonly SessionState[]> =>
  withLedger(args, io, async ({ store }) => {
    const found: SessionState[] = [];
    for await (const state of listCommittedSessions(store, which)) found.push(state);
    return found;
  });

/** The present state of a session as one line. */
export const toPresentSummary = (state: SessionState): SessionSummary =>
  toSummary(state, new Date(systemClock().now()).toISOString());

/** Twice the limit of a session, because the input may contain white space. */
const REPORT_BYTES_MAX = 262_144;
const FINDINGS_SHOWN = 5;

/**
 * A report in a file (`-`: stdin). The session checks its content.
 * @throws UsageError if it is not a JSON object; such a text never reaches the session as a report
 */
export async function readReport(name: string, io: Io): Promise<JsonObject> {
  const bytes = await readBeginning(name, REPORT_BYTES_MAX + 1, io);
  if (bytes.byteLength > REPORT_BYTES_MAX)
    throw usageError(`${quoteArgument(name)} has more than ${REPORT_BYTES_MAX} bytes`);
  if (!isUtf8(bytes)) throw usageError('the report is not UTF-8');
  const report = parseJsonArgument(Buffer.from(bytes).toString('utf8'), 'the report');
  if (isJsonObject(report)) return report;
  throw usageError('the report is not a JSON object');
}

/**
 * The spec on stdin.
 * @throws UsageError for an invalid spec, with its mistakes
 */
export async function readSpecFromStdin(io: Io): Promise<SessionSpec> {
  const { spec, findings } = readSpec(await readBeginning('-', SPEC_BYTES_MAX + 1, io), null);
  if (spec !== null) return spec;
  const shown = findings
    .slice(0, FINDINGS_SHOWN)
    .map(({ line, rule, message }) => `line ${line}: ${message} (${rule})`);
  throw usageError(`the spec is invalid:\n${shown.join('\n')}`);
}
