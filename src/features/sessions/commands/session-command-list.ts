// The session commands, in the order of the help: the agent's loop, status, and the decisions of operators.

import { resolve } from 'node:path';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type CommandArguments,
  type CommandGroup,
  type CommandOption,
  type ExitCode,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { wordType } from '../../../interfaces/cli/option-types.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  requireValidPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { readBeginning } from '../../../interfaces/cli/payloads.js';
import { countText, createPainter, escapeText, jsonLine, table } from '../../../interfaces/cli/text/terminal.js';
import { isVerifyTask, SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { OVERRIDE_REASONS } from '../contract/session.js';
import { exitPacket, rejectionWithoutSession, sessionAnswer } from '../rules/command-answer.js';
import { loopSignal } from '../rules/loop-signal.js';
import type { SessionState } from '../rules/session-state.js';
import { structureHash } from '../rules/spec/spec-structure.js';
import { findTaskDetails } from '../session-reader.js';
import { readSpec, type SpecFileFinding } from '../spec/read-spec.js';
import {
  listSessions,
  NO_STEP,
  NOTE_TYPE,
  numberType,
  operationCommand,
  parseId,
  readReport,
  readSpecFromStdin,
  SESSION_OPERAND,
  splitOperands,
  toPresentSummary,
  withSession,
} from './session-options.js';
import { sessionStart } from './session-start-command.js';
import { printAnswer, sessionRows, sessionStatusText, taskText } from './session-text.js';

/** `turnpike session check`: checks whether a session can work through this spec to its end. */
const sessionCheck: CliCommand = {
  name: 'session check',
  access: 'none',
  summary: 'Lint a spec: print each finding with file, line and rule',
  operands: { usage: 'SPEC', min: 1, max: 1 },
  options: [REGISTRATIONS_OPTION],
  notes: [
    'SPEC is a YAML file, or JSON if it begins with {; - reads stdin. The lanes are those of the contract folder.',
    'Needs no home directory and changes nothing. Exits 1 if the spec has an error; warnings do not count.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const registrations = await readRegistrations(args, io);
    const { lanes } = requireValidPolicy(
      (await loadContract(findContractFolder(args, io), io, { registrations })).check,
    );
    const { findings, spec } = readSpec(await readBeginning(name, SPEC_BYTES_MAX + 1, io), new Set(lanes.keys()));
    const file = name === '-' ? 'stdin' : name;
    const json = args.values.json;
    for (const finding of findings) {
      await io.stdout.write(json ? jsonLine({ file, ...finding }) : `${escapeText(findingLine(file, finding))}\n`);
    }
    if (spec !== null && !json) await io.stdout.write(`${specText(spec)}\n`);
    return spec === null ? 1 : 0;
  },
};

const findingLine = (file: string, { line, severity, rule, message }: SpecFileFinding): string =>
  `${file}:${line} ${severity === 'warning' ? 'warning: ' : ''}${rule}: ${message}`;

/** Ids of a valid spec contain no characters that affect a terminal. */
function specText(spec: SessionSpec): string {
  const tasks = spec.phases.flatMap((phase) => phase.tasks);
  const verifications = tasks.filter(isVerifyTask).length;
  const gates = spec.phases.filter(({ gate }) => gate !== undefined).length;
  const phases = countText(spec.phases.length, 'phase');
  const kinds = `${tasks.length - verifications} to implement, ${verifications} to verify`;
  return `ok: ${spec.id} has ${phases}, ${countText(tasks.length, 'task')} (${kinds}) and ${countText(gates, 'gate')}\nstructure ${structureHash(spec)}`;
}

const CONTEXT_OPTION = {
  name: 'context',
  value: 'PCT',
  type: numberType(100),
  help: 'how full the context of the agent is, in percent',
} as const satisfies CommandOption;

/** `turnpike session next`: reports the previous step and prints the next one (S3-06). */
const sessionNext = operationCommand({
  operation: 'next',
  summary: 'Print the next step of a session, and report the previous one',
  options: [
    { name: 'report', value: 'FILE', help: 'last_step_result as JSON (-: stdin), as in `session report`' },
    { name: 'heartbeat', help: 'also record a heartbeat of the agent' },
    CONTEXT_OPTION,
  ],
  notes: [
    'SESSION may be omitted if exactly one session is active. While a step is outstanding, its report is required;',
    '`turnpike session replay` prints the step again. The exit code is 0 for every answer that is not a refusal,',
    'including a pause: a loop with --json reads data.loop_signal, and continues while it is null.',
  ],
  async readRequest({ values: { report, heartbeat, context } }, io) {
    const last_step_result = report === undefined ? undefined : await readReport(report, io);
    return { heartbeat, ...omitUndefined({ last_step_result, context_usage_pct: context }) };
  },
});

/** `turnpike session report`: submits a complete last_step_result, as the step loop requires (S3-04, S3-06). */
const sessionReport = operationCommand({
  name: 'report',
  operation: 'next',
  summary: 'Report the outstanding step of a session, and print the next one',
  operands: ['FILE'],
  options: [CONTEXT_OPTION],
  notes: [
    'FILE (-: stdin) contains last_step_result as one JSON object: step_id, step_type, outcome (success, failure,',
    'skipped) and step_proof as `turnpike session next` printed them; task_id for a task or verification; phase_id for',
    'a gate or its feedback; gate_attempt_id for a gate; verification_receipt for a verification; optionally note and',
    'files_touched. A refused report has no effect: the step stays outstanding, and its proof stays valid.',
  ],
  readRequest: async ({ operands: [file = '-'], values: { context } }, io) => ({
    last_step_result: await readReport(file, io),
    ...omitUndefined({ context_usage_pct: context }),
  }),
});

/** `turnpike session replay`: prints the outstanding step and its step proof again, for an agent that has lost them. */
const sessionReplay = operationCommand({
  operation: 'replay',
  summary: 'Print the outstanding step of a session again, with its proof',
  readRequest: () => ({}),
});

/** `turnpike session heartbeat`: records that the agent is still working on a long step. */
const sessionHeartbeat = operationCommand({
  operation: 'heartbeat',
  summary: 'Record that the agent of a session is alive',
  options: [
    CONTEXT_OPTION,
    {
      name: 'tokens',
      value: 'N',
      type: numberType(Number.MAX_SAFE_INTEGER),
      help: 'how many tokens the agent has used, for the audit',
    },
  ],
  readRequest: ({ values: { context, tokens } }) =>
    omitUndefined({
      context_usage_pct: context,
      estimated_tokens_used: tokens === undefined ? undefined : Math.floor(tokens),
    }),
});

/** `turnpike session verify`: the platform runs the command of the outstanding verification (S3-23, C68). */
const sessionVerify = operationCommand({
  operation: 'verify',
  summary: 'Run the command of the outstanding verification, and print its receipt',
  options: [{ name: 'step', value: 'ID', help: 'the step to verify (default: the outstanding one)' }],
  notes: [
    'The spec determines the command; no option changes it. Put the receipt (with --json: data.verification_receipt)',
    'unchanged into the report, whatever the exit code of the command was; you may correct the work and verify again',
    'before that.',
  ],
  readRequest(args) {
    const { step: named } = args.values;
    const step = named === undefined ? undefined : parseId(args, 'step', named);
    return ({ state }) => ({ step_id: step ?? state?.outstanding?.step.step_id ?? NO_STEP });
  },
});

/** `turnpike session review`: runs the review of the outstanding gate, as its phase defines it (S3-29). */
const sessionReview = operationCommand({
  operation: 'review',
  summary: 'Review the outstanding gate, and print its gate_attempt_id',
  notes: [
    'Put the gate_attempt_id (with --json: data.review.gate_attempt_id) into the report of the gate. The session',
    'decides by its gate policy whether the gate has passed.',
  ],
  readRequest:
    () =>
    ({ state }) => {
      const { step_id = NO_STEP, phase_id = null } = state?.outstanding?.step ?? {};
      return { step_id, phase_id: phase_id ?? NO_STEP };
    },
});

/** Prints something of one session. @returns 1 if it does not exist. Needs no lock, and records nothing. */
function printSession(
  command: CliCommand,
  args: CommandArguments,
  io: Io,
  print: (state: SessionState) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { session } = splitOperands(command, args);
  return withSession(session, args, io, ({ state }) =>
    state === null ? printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION'), args, io) : print(state),
  );
}

/** `turnpike session prepare`: prints all that the spec says about a task (S3-20). */
const sessionPrepare: CliCommand = defineCommand({
  name: 'session prepare',
  access: 'write',
  summary: 'Print everything that the spec says about a task',
  operands: SESSION_OPERAND,
  options: [{ name: 'task', value: 'ID', help: 'the task (default: the task of the outstanding step)' }],
  notes: ['Needs no lock.'],
  async run(args, io) {
    const { task: named } = args.values;
    const task_id = named === undefined ? undefined : parseId(args, 'task', named);
    return printSession(sessionPrepare, args, io, async (state) => {
      const task = findTaskDetails(state, task_id);
      if (task === null) return printAnswer(rejectionWithoutSession('NOT_FOUND', ['task']), args, io);
      await io.stdout.write(args.values.json ? jsonLine(task) : taskText(task, createPainter(io.colours)));
      return 0;
    });
  },
});

/** `turnpike session status`: prints the status of a session. */
const sessionStatus: CliCommand = {
  name: 'session status',
  access: 'read',
  summary: 'Print the status of a session',
  operands: SESSION_OPERAND,
  options: [],
  notes: [
    'Needs no lock, changes nothing and is not recorded. `turnpike session replay` prints the outstanding step with',
    'its proof; `turnpike runs` prints the runs of the session.',
  ],
  run: async (args, io) =>
    printSession(sessionStatus, args, io, async (state) => {
      if (args.values.json) return printAnswer(sessionAnswer(state), args, io);
      await io.stdout.write(
        sessionStatusText(state, toPresentSummary(state).effective_status, createPainter(io.colours)),
      );
      return 0;
    }),
};

/** `turnpike session list`: lists sessions. */
const sessionList = defineCommand({
  name: 'session list',
  access: 'read',
  summary: 'List the sessions with their specs and status',
  operands: NO_OPERANDS,
  options: [
    { name: 'active', help: 'only sessions that are neither completed nor ended' },
    { name: 'spec', value: 'ID', help: 'only sessions of this spec' },
  ],
  notes: ['The newest session comes last. Needs no lock. With --json: one session per line.'],
  async run(args, io) {
    const { active, spec } = args.values;
    const found = await listSessions({ active }, args, io);
    const sessions = found.map(toPresentSummary).filter(({ spec_id }) => spec === undefined || spec_id === spec);
    if (args.values.json) for (const session of sessions) await io.stdout.write(jsonLine(session));
    else await io.stdout.write(table(sessionRows(sessions), createPainter(io.colours)));
    if (sessions.length === 0) await io.stderr.writeLine('no sessions: `turnpike session start SPEC` starts one');
    return 0;
  },
});

/** `turnpike session packets`: prints the summary for the end of the loop, an escalation or success (S3-38, S3-40). */
const sessionPackets: CliCommand = {
  name: 'session packets',
  access: 'read',
  summary: 'Print the exit packet of a session, which the agent passes on when its loop stops, as JSON',
  operands: SESSION_OPERAND,
  options: [],
  notes: [
    'The packet always has the same members. For a paused or failed session it is the escalation packet, for a',
    'completed session the success packet, and for a running session the packet as it would be now. Needs no lock.',
  ],
  run: async (args, io) =>
    printSession(sessionPackets, args, io, async (state) => {
      const packet = exitPacket(state, loopSignal(state, null), null);
      const lines = JSON.stringify(packet, null, 2).split('\n').map(escapeText);
      await io.stdout.write(args.values.json ? jsonLine(packet) : `${lines.join('\n')}\n`);
      return 0;
    }),
};

/** `turnpike session pause`: makes the agent's loop stop at its next request. */
const sessionPause = operationCommand({
  operation: 'pause',
  summary: 'Pause a session',
  options: [
    { name: 'reason', value: 'TEXT', type: NOTE_TYPE, help: 'the reason, for the audit; up to 400 characters' },
  ],
  notes: ['An outstanding step stays outstanding: after `turnpike session resume` its agent continues with it.'],
  readRequest: ({ values: { reason } }) => omitUndefined({ reason }),
});

/** `turnpike session resume`: resumes a paused session; with --force, a failed one (C74). */
const sessionResume = operationCommand({
  operation: 'resume',
  summary: 'Resume a paused session, or with --force a failed one',
  options: [{ name: 'force', help: 'also resume a failed session' }],
  notes: [
    'The limit that stopped the session counts from zero again. If the spec has changed, use `turnpike session',
    'rebase`; if a gate waits for a person, use `turnpike session ack`. The role autonomy_runner may resume only after',
    'pauses that need no decision of a person.',
  ],
  readRequest: ({ values: { force } }) => ({ force }),
});

/** `turnpike session ack`: records a person's decision on the pending gate; the session continues from it (C72). */
const sessionAck = operationCommand({
  name: 'ack',
  operation: 'resume',
  summary: 'Pass or fail a gate that waits for a person, and resume its session',
  operands: ['ATTEMPT', 'pass|fail'],
  notes: ['`turnpike session status` prints the ATTEMPT that waits for a decision.'],
  readRequest(args) {
    const [attempt = '', text = ''] = args.operands;
    const gate_attempt_id = parseId(args, 'gate attempt', attempt);
    const decision = (['pass', 'fail'] as const).find((known) => known === text);
    if (decision === undefined) throw args.usageError(`the decision must be pass or fail, not ${quoteArgument(text)}`);
    return { acknowledge: { gate_attempt_id, decision } };
  },
});

/** The reason for an override of the rules. */
const OVERRIDE_OPTIONS = [
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

/** `turnpike session waive`: marks a gate as satisfied although nothing has passed it. */
const sessionWaive = operationCommand({
  operation: 'waive',
  summary: 'Waive the gate of a phase',
  operands: ['PHASE'],
  options: OVERRIDE_OPTIONS,
  notes: [
    'Works only if the session allows waivers (by its posture, or `turnpike session start --waivers`). The waiver',
    'stays in the ledger permanently.',
  ],
  readRequest(args) {
    const {
      operands: [phase = ''],
      values: { reason, detail },
    } = args;
    const phase_id = parseId(args, 'phase', phase);
    return { reason_code: reason, ...omitUndefined({ reason_detail: detail }), phase_id };
  },
});

/** `turnpike session rebase`: continues a paused or failed session with a changed spec. */
const sessionRebase = operationCommand({
  operation: 'rebase',
  summary: 'Continue a paused or failed session with another version of its spec',
  operands: ['SPEC'],
  options: [{ name: 'force', help: 'continue even if the new version lacks completed tasks' }],
  notes: [
    'SPEC is as in `turnpike session start`. Completed tasks stay completed. Gates keep their result if their phase',
    'has not changed. Skipped tasks are issued again.',
  ],
  readRequest: async ({ operands: [name = ''], values: { force } }, io) => ({
    spec: name === '-' ? await readSpecFromStdin(io) : resolve(io.cwd, name),
    force,
  }),
});

/** `turnpike session end`: ends a session permanently. */
const sessionEnd = operationCommand({
  operation: 'end',
  summary: 'End a session permanently, even if tasks are left',
  options: OVERRIDE_OPTIONS,
  readRequest: ({ values: { reason, detail } }) => ({
    reason_code: reason,
    ...omitUndefined({ reason_detail: detail }),
  }),
});

export const SESSION_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'sessions',
    commands: [
      sessionCheck,
      sessionStart,
      sessionNext,
      sessionReport,
      sessionReplay,
      sessionHeartbeat,
      sessionVerify,
      sessionReview,
      sessionPrepare,
      sessionStatus,
      sessionList,
      sessionPackets,
      sessionPause,
      sessionResume,
      sessionAck,
      sessionWaive,
      sessionRebase,
      sessionEnd,
    ],
  },
];
