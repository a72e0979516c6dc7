import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, parseId, NO_STEP, callerOptions } from './session-options.js';

/** `turnpike session verify`: the platform runs the command of the outstanding verification (S3-23, C68). */
export const sessionVerify: CliCommand = {
  name: 'session verify',
  access: 'write',
  summary: 'Run the command of the outstanding verification, and print its receipt',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'step', value: 'ID', help: 'the step to verify (default: the outstanding one)' },
    ...callerOptions('autonomy_runner'),
  ],
  notes: [
    'The spec determines the command; no option changes it. Put the receipt (with --json: data.verification_receipt)',
    'unchanged into the report, whatever the exit code of the command was; you may correct the work and verify again',
    'before that.',
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
