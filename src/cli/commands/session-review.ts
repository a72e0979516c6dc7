import type { Command } from '../command.js';
import { askSession, NO_STEP, speakerOptions } from '../session-speaker.js';

/** `turnpike session review`: the outstanding gate is reviewed, as its phase wants it (S3-29). */
export const sessionReview: Command = {
  name: 'session review',
  summary: 'Have the outstanding gate reviewed, and tell its gate_attempt_id',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: speakerOptions('autonomy_runner'),
  notes: [
    'The gate_attempt_id (with --json: data.review.gate_attempt_id) goes into the report of the gate; whether the gate',
    'has passed, the session decides by its gate policy.',
  ],
  run: (args, io) =>
    askSession(
      { command: sessionReview, voice: 'autonomy_runner', args, io },
      (sessions, { session_id, state }, by) => {
        const { step_id = NO_STEP, phase_id = null } = state?.outstanding?.step ?? {};
        return sessions.review(session_id, { step_id, phase_id: phase_id ?? NO_STEP }, by);
      },
    ),
};
