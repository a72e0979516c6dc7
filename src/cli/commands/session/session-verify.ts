import type { CliCommand } from '../../command.js';
import { runSessionCommand, parseId, NO_STEP, callerOptions } from '../../session-command.js';

/** `turnpike session verify`: the platform runs the command of the outstanding verification (S3-23, C68). */
export const sessionVerify: CliCommand = {
  name: 'session verify',
  summary: 'Run the command of the outstanding verification, and tell its receipt',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'step', value: 'ID', help: 'the step that is meant (default: the outstanding one)' },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'What is run stands in the spec: nothing here can change it. The receipt (with --json: data.verification_receipt)',
    'goes into the report as it is, whatever the exit code was; it may be mended and run again before that.',
  ],
  async run(args, io) {
    const named = args.text('step');
    const step = named === undefined ? undefined : parseId(sessionVerify, 'step', named);
    return runSessionCommand(
      { command: sessionVerify, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id, state }, caller) => {
        const step_id = step ?? state?.outstanding?.step.step_id ?? NO_STEP;
        return sessions.verify(session_id, { step_id }, caller);
      },
    );
  },
};
