import type { CliCommand } from '../../command.js';
import { runSessionCommand, parseNote, callerOptions } from '../../session-command.js';

/** `turnpike session pause`: makes the agent's loop stop at its next request. */
export const sessionPause: CliCommand = {
  name: 'session pause',
  summary: 'Pause a session',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'reason', value: 'TEXT', help: 'why, for the audit; up to 400 characters' },
    ...callerOptions('maintainer'),
  ],
  notes: ['The step that is outstanding stays so: after `turnpike session resume` its agent goes on with it.'],
  async run(args, io) {
    const reason = parseNote(sessionPause, args, 'reason');
    return runSessionCommand(
      { command: sessionPause, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) => sessions.pause(session_id, reason === undefined ? {} : { reason }, caller),
    );
  },
};
