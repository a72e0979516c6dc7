import type { CliCommand } from '../../../interfaces/cli/command.js';
import { readReport, runSessionCommand, parseNumber, splitOperands, callerOptions } from './session-options.js';

/** `turnpike session report`: submits a complete last_step_result, as the step loop requires (S3-04, S3-06). */
export const sessionReport: CliCommand = {
  name: 'session report',
  access: 'write',
  summary: 'Report the outstanding step of a session, and print the next one',
  operands: { usage: '[SESSION] FILE', min: 1, max: 2 },
  options: [
    { name: 'context', value: 'PCT', help: 'how full the context of the agent is, in percent' },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'FILE (-: stdin) contains last_step_result as one JSON object: step_id, step_type, outcome (success, failure,',
    'skipped) and step_proof as `turnpike session next` printed them; task_id for a task or verification; phase_id for',
    'a gate or its feedback; gate_attempt_id for a gate; verification_receipt for a verification; optionally note and',
    'files_touched. A refused report has no effect: the step stays outstanding, and its proof stays valid.',
  ],
  async run(args, io) {
    const { rest } = splitOperands(sessionReport, args);
    const context_usage_pct = parseNumber(sessionReport, args, 'context', 100);
    const last_step_result = await readReport(rest[0] ?? '-', io);
    const request = { last_step_result, ...(context_usage_pct === undefined ? {} : { context_usage_pct }) };
    return runSessionCommand(
      { command: sessionReport, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id }, caller) => sessions.next(session_id, request, caller),
    );
  },
};
