import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, OVERRIDE_OPTIONS, parseOverride, callerOptions } from './session-options.js';

/** `turnpike session end`: ends a session permanently. */
export const sessionEnd: CliCommand = {
  name: 'session end',
  access: 'write',
  summary: 'End a session permanently, even if tasks are left',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [...OVERRIDE_OPTIONS, ...callerOptions('maintainer')],
  async run(args, io) {
    const override = parseOverride(sessionEnd, args);
    return runSessionCommand(
      { command: sessionEnd, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) => sessions.end(session_id, override, caller),
    );
  },
};
