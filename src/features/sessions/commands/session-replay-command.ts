import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, callerOptions } from './session-options.js';

/** `turnpike session replay`: prints the outstanding step and its step proof again, for an agent that has lost them. */
export const sessionReplay: CliCommand = {
  name: 'session replay',
  access: 'write',
  summary: 'Print the outstanding step of a session again, with its proof',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: callerOptions('autonomy_runner'),
  run: (args, io) =>
    runSessionCommand(
      { command: sessionReplay, defaultRole: 'autonomy_runner', args, io },
      (sessions, { session_id }, caller) => sessions.replay(session_id, caller),
    ),
};
