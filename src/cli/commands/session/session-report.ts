import type { CliCommand } from '../../command.js';
import { readReport, runSessionCommand, parseNumber, splitOperands, callerOptions } from '../../session-command.js';

/** `turnpike session report`: submits a complete last_step_result, as the step loop requires (S3-04, S3-06). */
export const sessionReport: CliCommand = {
  name: 'session report',
  summary: 'Report the outstanding step of a session, and tell the next one',
  operands: { usage: '[SESSION] FILE', min: 1, max: 2 },
  options: [
    { name: 'context', value: 'PCT', help: "how full the agent's context is, in per cent" },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'FILE (-: stdin) holds last_step_result as one JSON object: step_id, step_type, outcome (success, failure, skipped)',
    'and step_proof, as `turnpike session next` told them; task_id of a task or verification, phase_id of a gate or its',
    'feedback, gate_attempt_id of a gate, verification_receipt of a verification; note and files_touched where wanted.',
    'A report that is refused costs nothing: the step stays open, and its proof good.',
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
