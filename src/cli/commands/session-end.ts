import type { Command } from '../command.js';
import { askSession, OVERRIDE_OPTIONS, overrideOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session end`: for good. */
export const sessionEnd: Command = {
  name: 'session end',
  summary: 'End a session for good, whatever is left of its spec',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [...OVERRIDE_OPTIONS, ...speakerOptions('maintainer')],
  async run(args, io) {
    const override = overrideOf(sessionEnd, args);
    return askSession({ command: sessionEnd, voice: 'maintainer', args, io }, (sessions, { session_id }, by) =>
      sessions.end(session_id, override, by),
    );
  },
};
