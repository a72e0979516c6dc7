// Shared by the session commands: the caller, the session, and the input of reports and specs.

import { usageError } from '../../../core/errors.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { OVERRIDE_REASONS, SESSION_ROLES, type SessionRole } from '../contract/session.js';
import type { SessionAnswer } from '../contract/session-answer.js';
import { SpecId, SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { findTextProblem, type TextRule, type TextSchema } from '../../../core/contract/text-rule.js';
import { effectiveStatus } from '../rules/agent-activity.js';
import { rejectionWithoutSession } from '../rules/command-answer.js';
import type { SessionState } from '../rules/session-state.js';
import { systemClock } from '../../../system/system-clock.js';
import { ContentReader } from '../../../runtime/content/content-reader.js';
import { redactAnswer } from '../redact-session.js';
import { loadCommittedSession, listCommittedSessions } from '../session-reader.js';
import {
  SESSION_OPERATIONS,
  type RequestOf,
  type SessionOperation,
  type SessionOperationName,
} from '../session-operations.js';
import type { OverrideRequest, SessionCaller, SessionSummary } from '../sessions.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import {
  valuesOf,
  type ArgumentsOf,
  type CliCommand,
  type CommandArguments,
  type CommandOption,
  type ExitCode,
  type OptionValues,
} from '../../../interfaces/cli/command.js';
import { withLedger } from '../../../interfaces/cli/options/folders.js';
import { withHomeAccess, type HomeAccess } from '../../../interfaces/cli/home-access.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { wordType, type OptionType } from '../../../interfaces/cli/option-types.js';
import { sessionRows, printAnswer } from './session-text.js';
import { countText, createPainter, table } from '../../../interfaces/cli/text/terminal.js';
import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { readSpec } from '../spec/read-spec.js';
import { parseJsonArgument, readBeginning } from '../../../interfaces/cli/payloads.js';

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
      default: defaultRole,
      help: `your role: ${SESSION_ROLES.join(', ')} (default ${defaultRole})`,
    },
  ] as const satisfies readonly CommandOption[];

type CallerValues = OptionValues<ReturnType<typeof callerOptions>>;

export const callerOf = ({ actor, role }: CallerValues): SessionCaller => ({ actor: actor ?? ACTORS[role], role });

const NOTE_CHARS_MAX = 400;

/** A text that the ledger accepts. */
export const NOTE_TYPE: OptionType<string> = {
  takes: `up to ${NOTE_CHARS_MAX} characters`,
  parse: (text) => (text.length <= NOTE_CHARS_MAX && text.isWellFormed() ? text : undefined),
};

/** A number, which need not be whole. */
export const numberType = (max: number): OptionType<number> => ({
  takes: `a number up to ${max}`,
  quotes: true,
  parse: (text) => (/^\d{1,15}(?:\.\d{1,6})?$/u.test(text) && Number(text) <= max ? Number(text) : undefined),
});

/** The reason for an override of the rules. */
export const OVERRIDE_OPTIONS = [
  {
    name: 'reason',
    value: 'CODE',
    type: wordType(OVERRIDE_REASONS),
    required: true,
    help: `the reason: ${OVERRIDE_REASONS.join(', ')}`,
  },
  {
    name: 'detail',
    value: 'TEXT',
    type: NOTE_TYPE,
    help: 'details of the reason, for the audit; up to 400 characters',
  },
] as const satisfies readonly CommandOption[];

export const overrideOf = ({ reason, detail }: OptionValues<typeof OVERRIDE_OPTIONS>): OverrideRequest => ({
  reason_code: reason,
  ...omitUndefined({ reason_detail: detail }),
});

/** Passed as the step id if no step is outstanding; the session then reports that. */
export const NO_STEP = 'none';

const STEP_ID: TextRule = { pattern: '^[A-Za-z0-9_.-]{1,160}$' };
const SESSION_ID: TextRule = { pattern: '^ses_[A-Za-z0-9]{1,100}$' };

type UsageErrors = Pick<CommandArguments, 'usageError'>;

function checkId({ usageError: error }: UsageErrors, rule: TextSchema, what: string, text: string): string {
  const problem = findTextProblem(rule, text, `a ${what}`);
  if (problem === null) return text;
  throw error(`${quoteArgument(text)} is not a valid ${what}: it ${problem}`);
}

/**
 * The id of a phase, task, step or gate attempt.
 * @throws UsageError for an invalid id
 */
export function parseId(args: UsageErrors, what: 'phase' | 'task' | 'step' | 'gate attempt', text: string): string {
  return checkId(args, what === 'phase' || what === 'task' ? SpecId : STEP_ID, `${what} id`, text);
}

/** The session id at the start of the operands, if there is one, and the other operands. */
export function splitOperands(args: CommandArguments, countMax: number) {
  const { operands } = args;
  const [first = ''] = operands;
  if (operands.length < countMax) return { session: undefined, rest: operands };
  return { session: checkId(args, SESSION_ID, 'session id', first), rest: operands.slice(1) };
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
    call: OperationCall<Options>,
  ) => ReadRequest<RequestOf<Name>> | Promise<ReadRequest<RequestOf<Name>>>;
}

type ReadRequest<Request> = Request | ((target: SessionTarget) => Request);

interface OperationCall<Options extends readonly CommandOption[]> {
  readonly args: ArgumentsOf<Options>;
  /** The operands after the session. */
  readonly operands: readonly string[];
  readonly io: Io;
}

/** The operand of a command that takes only a session. */
export const SESSION_OPERAND = { usage: '[SESSION]', min: 0, max: 1 } as const;

/**
 * The command of an operation. It requests the operation and prints the answer; it returns 0 on success, and 1 if the
 * session refused.
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
  const operation: SessionOperation = SESSION_OPERATIONS[operationName];
  const caller = callerOptions(operation.role);
  const label = `session ${name}`;
  return {
    name: label,
    access: 'write',
    summary,
    operands: {
      usage: [SESSION_OPERAND.usage, ...operands].join(' '),
      min: operands.length,
      max: operands.length + 1,
    },
    options: [...(options ?? []), ...caller],
    ...omitUndefined({ notes }),
    async run(args, io) {
      const { session, rest } = splitOperands(args, operands.length + 1);
      const own = args as ArgumentsOf<Options>;
      const read: ReadRequest<object> = await readRequest({ args: own, operands: rest, io });
      const by = callerOf(valuesOf(caller, args));
      return withSession(session, args, io, (target) =>
        withHomeAccess(args, io, async (home) => {
          progressFor(args, io).begin({ label, unit: 'entries', total: null });
          const request = read instanceof Function ? read(target) : read;
          const requested = operation.call(home.sessions, target.session_id, request, by);
          const answer = await releaseOnStop(home, io, requested);
          const isAgents = operation.role === 'autonomy_runner';
          return printAnswer(isAgents ? answer : await redactFor(answer, args, io), args, io);
        }),
      );
    },
  };
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
  await io.stderr.write(table(sessionRows(active.map(toSessionSummary)), createPainter(false)));
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
export function toSessionSummary(state: SessionState): SessionSummary {
  const { session_id, spec, status, created_at } = state;
  const now = new Date(systemClock().now()).toISOString();
  const effective_status = effectiveStatus(state, now);
  return { session_id, spec_id: spec.id, status, effective_status, created_at_utc: created_at };
}

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
