import { sessionAnswer, rejectionWithoutSession } from '../rules/command-answer.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { splitOperands, toSessionSummary, withSession } from './session-options.js';
import { statusText, printAnswer } from './session-text.js';
import { createPainter } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike session status`: prints the status of a session. */
export const sessionStatus: CliCommand = {
  name: 'session status',
  access: 'read',
  summary: 'Print the status of a session',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [],
  notes: [
    'Needs no lock, changes nothing and is not recorded. `turnpike session replay` prints the outstanding step with',
    'its proof; `turnpike runs` prints the runs of the session.',
  ],
  async run(args, io) {
    const { session } = splitOperands(sessionStatus, args);
    return withSession(session, args, io, async ({ state }) => {
      if (state === null) return printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION'), args, io);
      if (args.flag('json')) return printAnswer(sessionAnswer(state), args, io);
      await io.stdout.write(statusText(state, toSessionSummary(state).effective_status, createPainter(io.colours)));
      return 0;
    });
  },
};
