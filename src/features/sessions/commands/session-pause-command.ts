import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, parseNote, callerOptions } from './session-options.js';

/** `turnpike session pause`: makes the agent's loop stop at its next request. */
export const sessionPause: CliCommand = {
  name: 'session pause',
  access: 'write',
  summary: 'Pause a session',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'reason', value: 'TEXT', help: 'the reason, for the audit; up to 400 characters' },
    ...callerOptions('maintainer'),
  ],
  notes: ['An outstanding step stays outstanding: after `turnpike session resume` its agent continues with it.'],
  async run(args, io) {
    const reason = parseNote(sessionPause, args, 'reason');
    return runSessionCommand(
      { command: sessionPause, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) => sessions.pause(session_id, reason === undefined ? {} : { reason }, caller),
    );
  },
};
