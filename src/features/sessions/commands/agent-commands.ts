// The commands of an agent's loop.

import { omitUndefined } from '../../../core/omit-undefined.js';
import type { CliCommand, CommandOption } from '../../../interfaces/cli/command.js';
import { NO_STEP, numberType, operationCommand, parseId, readReport } from './session-options.js';

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
  async readRequest({ args: { values }, io }) {
    const { report, heartbeat, context: context_usage_pct } = values;
    const last_step_result = report === undefined ? undefined : await readReport(report, io);
    return omitUndefined({ heartbeat: heartbeat || undefined, context_usage_pct, last_step_result });
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
  readRequest: async ({ args, io, operands: [file = '-'] }) => ({
    last_step_result: await readReport(file, io),
    ...omitUndefined({ context_usage_pct: args.values.context }),
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
  readRequest({ args: { values } }) {
    const { context: context_usage_pct, tokens } = values;
    const estimated_tokens_used = tokens === undefined ? undefined : Math.floor(tokens);
    return omitUndefined({ context_usage_pct, estimated_tokens_used });
  },
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
  readRequest({ args }) {
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

export const AGENT_COMMANDS: readonly CliCommand[] = [
  sessionNext,
  sessionReport,
  sessionReplay,
  sessionHeartbeat,
  sessionVerify,
  sessionReview,
];
