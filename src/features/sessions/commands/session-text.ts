// Formats sessions for people. Text from a spec, an agent or a reviewer is escaped. Text of several lines is indented,
// so that none of its lines can look like a line of this command.

import { REPORTED_STEP_TYPES, type GateFinding, type SessionStatus } from '../contract/session.js';
import type { NextStep, RecommendedAction, SessionAnswer, SessionData } from '../contract/session-answer.js';
import type { SessionSummary, TaskDetails } from '../sessions.js';
import { activePhase, summarizeGates } from '../rules/task-progress.js';
import { loopSignal, recommendedActions } from '../rules/loop-signal.js';
import type { SessionState } from '../rules/session-state.js';
import type {} from '../tree/session-of.js';
import type { CommandArguments, ExitCode, StateTable } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import {
  escapeText,
  jsonLine,
  createPainter,
  table,
  type TextCell,
  type Colour,
  type Paint,
} from '../../../interfaces/cli/text/terminal.js';

const STATUS_COLOURS: Readonly<Record<SessionStatus, Colour>> = {
  running: 'cyan',
  paused: 'yellow',
  completed: 'green',
  failed: 'red',
  ended: 'magenta',
};

/**
 * Prints an answer: success to stdout, a refusal to stderr; with --json as one line of JSON.
 * @returns 1 for a refusal
 */
export async function printAnswer(answer: SessionAnswer, args: CommandArguments, io: Io): Promise<ExitCode> {
  if (args.values.json) await io.stdout.write(jsonLine(answer));
  else if (answer.success) await io.stdout.write(answerText(answer.data, createPainter(io.colours)));
  else for (const line of refusalLines(answer)) await io.stderr.writeLine(escapeText(line));
  return answer.success ? 0 : 1;
}

function refusalLines({ error, data }: Extract<SessionAnswer, { success: false }>): readonly string[] {
  const details = error.details.length === 0 ? '' : ` (${error.details.join(', ')})`;
  const signal = data?.loop_signal ?? null;
  return [
    `${error.code}: ${error.message}${details}`,
    ...(signal === null ? [] : [`  loop signal: ${signal}`]),
    ...(data?.recommended_actions ?? []).map((action) => `  ${adviceText(action)}`),
  ];
}

/** The text of a successful answer. */
export function answerText(data: SessionData, paint: Paint): string {
  const { next_step: step, review, verification_receipt: receipt, output } = data;
  const facts: Fact[] = [
    ['phase', step?.phase_id ?? data.active_phase_id],
    ...(step !== null && isReportable(step) ? stepFacts(step) : []),
    ['gates', gatesText(data.required_phase_gates, data.missing_required_gates)],
    ['receipt', receipt === null ? null : JSON.stringify(receipt)],
    ['review', review === null ? null : `${review.gate_attempt_id} ${review.verdict} (policy ${review.gate_policy})`],
    ['signal', data.loop_signal],
    ...data.warnings.map((warning) => ['warning', warning, 'yellow'] as const),
    ...data.recommended_actions.map((action) => ['then', adviceText(action)] as const),
  ];
  return [
    statusLine(data, paint),
    factTable(facts, paint),
    step === null ? '' : indentBlock(step.instruction),
    findingsText(review?.findings ?? step?.findings ?? [], paint),
    output === null ? '' : indentBlock(output, '| '),
  ].join('');
}

/** The status of a session as a reader sees it, without step proofs. */
export function sessionStatusText(state: SessionState, effective: SessionStatus, paint: Paint): string {
  const { spec, settings, outstanding, check, ack, counters } = state;
  const tasks = Object.values(state.tasks);
  const all = spec.phases.reduce((sum, phase) => sum + phase.tasks.length, 0);
  const skipped = tasks.filter((status) => status === 'skipped').length;
  const { required, missing } = summarizeGates(state);
  const facts: Fact[] = [
    ['spec', `${spec.id}: ${spec.title}`],
    ['file', state.spec_file],
    ['tasks', `${tasks.length - skipped} of ${all} completed${skipped === 0 ? '' : `, ${skipped} skipped`}`],
    ['steps', `${counters.steps_executed} reported, activation ${state.activation}`],
    ['phase', activePhase(state)?.id ?? null],
    ['gates', gatesText(required, missing)],
    ...(outstanding === null ? [] : stepFacts(outstanding.step)),
    ['since', outstanding?.issued_at ?? null],
    ['checking', check === null ? null : `${check.kind} ${check.run_id}`],
    ['asks', ack === null ? null : `pass or fail ${ack.gate_attempt_id}, by \`turnpike session ack\``],
    ['policy', `${settings.posture}, gates ${settings.gate_policy}${settings.enforce_gates ? '' : ' (not enforced)'}`],
    ['silent', effective === state.status ? null : `since ${state.heartbeat_at}`, 'yellow'],
    ['signal', loopSignal(state, null)],
    ...recommendedActions(state, null).map((action) => ['then', adviceText(action)] as const),
  ];
  return statusLine(state, paint) + factTable(facts, paint);
}

export const sessionRows = (sessions: readonly SessionSummary[]): readonly (readonly TextCell[])[] =>
  sessions.map(({ session_id, spec_id, status, effective_status, created_at_utc }) => [
    { text: escapeText(session_id) },
    {
      text: status === effective_status ? status : `${status} (silent)`,
      colour: STATUS_COLOURS[effective_status],
    },
    { text: escapeText(spec_id) },
    { text: escapeText(created_at_utc), colour: 'dim' },
  ]);

/** All that an agent gets of a task. */
export function taskText(task: TaskDetails, paint: Paint): string {
  const facts: Fact[] = [
    ['title', task.title],
    ['status', task.status],
    ['phase', task.phase_id],
    ['needs', task.depends_on.length === 0 ? null : task.depends_on.join(', ')],
    ['files', task.files.length === 0 ? null : task.files.join(', ')],
    ...task.acceptance.map((line) => ['accepted', line] as const),
  ];
  return `${paint(escapeText(task.task_id), 'bold')}\n${factTable(facts, paint)}${indentBlock(task.instruction)}`;
}

/** A label and its value; a null value is not printed. */
type Fact = readonly [string, string | null, Colour?];

/** Whether a step is reported; a pause or an end is not. */
const isReportable = ({ type }: NextStep): boolean => REPORTED_STEP_TYPES.some((known) => known === type);

const stepFacts = (step: NextStep): readonly Fact[] => [
  ['step', `${step.step_id} (${step.type})`],
  ['task', step.task_id === null ? null : `${step.task_id}: ${step.task_title ?? ''}`],
  ['run', step.run_id === null ? null : `${step.run_id} in lane ${step.lane_id ?? ''}`],
  ['proof', step.step_proof ?? null],
];

const gatesText = (required: readonly string[], missing: readonly string[]): string | null =>
  required.length === 0
    ? null
    : `${required.length - missing.length} of ${required.length} satisfied` +
      (missing.length === 0 ? '' : `; missing: ${missing.join(', ')}`);

const adviceText = ({ action, description, command }: RecommendedAction): string =>
  `${action}: ${description}${command === null ? '' : ` (turnpike ${command})`}`;

type StatusFields = Pick<SessionData, 'session_id' | 'status' | 'pause_reason' | 'failure_reason'>;

function statusLine({ session_id, status, pause_reason, failure_reason }: StatusFields, paint: Paint): string {
  const why = pause_reason ?? failure_reason;
  const standing = `${status}${why === null ? '' : ` (${why})`}`;
  return `${paint(escapeText(session_id), 'bold')}  ${paint(escapeText(standing), STATUS_COLOURS[status])}\n`;
}

function factTable(facts: readonly Fact[], paint: Paint): string {
  const rows = facts.flatMap(([name, value, colour]): TextCell[][] =>
    value === null
      ? []
      : [
          [
            { text: `  ${name}`, colour: 'dim' },
            { text: escapeText(value), colour },
          ],
        ],
  );
  return table(rows, paint);
}

const SEVERITY_COLOURS = { error: 'red', warning: 'yellow', info: 'dim' } as const;

function findingsText(findings: readonly GateFinding[], paint: Paint): string {
  const rows = findings.map(({ severity, message, file, line }): TextCell[] => [
    { text: `  ${severity}`, colour: SEVERITY_COLOURS[severity] },
    { text: escapeText(`${file ?? ''}${line === undefined ? '' : `:${line}`}`) },
    { text: escapeText(message) },
  ]);
  return rows.length === 0 ? '' : `\n${table(rows, paint)}`;
}

/** A text of several lines, each escaped and indented. */
const indentBlock = (text: string, mark = ''): string =>
  `\n${text
    .replace(/\n+$/u, '')
    .split('\n')
    .map((line) => `  ${mark}${escapeText(line)}`.trimEnd())
    .join('\n')}\n`;

/** The sessions in the output of `turnpike replay --until`. */
export const SESSION_TABLE: StateTable = {
  head: ['session', 'status', 'why', 'outstanding step', 'tasks done'],
  rows: ({ sessions }) =>
    sessions.map(({ session_id, status, pause_reason, failure_reason, outstanding, tasks_done }) => [
      session_id,
      status,
      pause_reason ?? failure_reason ?? '-',
      outstanding === null ? '-' : `${outstanding.step_id} (${outstanding.type})`,
      String(tasks_done),
    ]),
};
