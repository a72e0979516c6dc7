import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, NO_STEP, callerOptions } from './session-options.js';

/** `turnpike session review`: runs the review of the outstanding gate, as its phase defines it (S3-29). */
export const sessionReview: CliCommand = {
  name: 'session review',
  access: 'write',
  summary: 'Review the outstanding gate, and print its gate_attempt_id',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: callerOptions('autonomy_runner'),
  notes: [
    'Put the gate_attempt_id (with --json: data.review.gate_attempt_id) into the report of the gate. The session',
    'decides by its gate policy whether the gate has passed.',
  ],
  run: (args, io) =>
    runSessionCommand(
      { command: sessionReview, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id, state }, caller) => {
        const { step_id = NO_STEP, phase_id = null } = state?.outstanding?.step ?? {};
        return sessions.review(session_id, { step_id, phase_id: phase_id ?? NO_STEP }, caller);
      },
    ),
};
