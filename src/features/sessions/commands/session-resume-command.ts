import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, callerOptions } from './session-options.js';

/** `turnpike session resume`: resumes a paused session; with --force, a failed one (C74). */
export const sessionResume: CliCommand = {
  name: 'session resume',
  access: 'write',
  summary: 'Resume a paused session, or with --force a failed one',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [{ name: 'force', help: 'also resume a failed session' }, ...callerOptions('maintainer')],
  notes: [
    'The limit that stopped the session counts from zero again. If the spec has changed, use `turnpike session',
    'rebase`; if a gate waits for a person, use `turnpike session ack`. The role autonomy_runner may resume only after',
    'pauses that need no decision of a person.',
  ],
  run: (args, io) =>
    runSessionCommand(
      { command: sessionResume, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) =>
        sessions.resume(session_id, args.flag('force') ? { force: true } : {}, caller),
    ),
};
