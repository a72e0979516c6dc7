import type { CliCommand } from '../../command.js';
import { runSessionCommand, callerOptions } from '../../session-command.js';

/** `turnpike session resume`: resumes a paused session; with --force, a failed one (C74). */
export const sessionResume: CliCommand = {
  name: 'session resume',
  summary: 'Let a paused session go on, or a failed one by force',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [{ name: 'force', help: 'a session that has failed' }, ...callerOptions('maintainer')],
  notes: [
    'The limit that had stopped it counts from the start. A session whose spec has changed wants',
    '`turnpike session rebase`, a gate that waits for a person `turnpike session ack`. As autonomy_runner: only after',
    'pauses in which nobody has to decide anything.',
  ],
  run: (args, io) =>
    runSessionCommand(
      { command: sessionResume, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) =>
        sessions.resume(session_id, args.flag('force') ? { force: true } : {}, caller),
    ),
};
