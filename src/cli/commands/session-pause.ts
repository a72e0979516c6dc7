import type { Command } from '../command.js';
import { askSession, noteOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session pause`: the agent's loop stops at its next question. */
export const sessionPause: Command = {
  name: 'session pause',
  summary: 'Pause a session',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [
    { name: 'reason', value: 'TEXT', help: 'why, for the audit; up to 400 characters' },
    ...speakerOptions('maintainer'),
  ],
  notes: ['The step that is outstanding stays so: after `turnpike session resume` its agent goes on with it.'],
  async run(args, io) {
    const reason = noteOf(sessionPause, args, 'reason');
    return askSession({ command: sessionPause, voice: 'maintainer', args, io }, (sessions, { session_id }, by) =>
      sessions.pause(session_id, reason === undefined ? {} : { reason }, by),
    );
  },
};
