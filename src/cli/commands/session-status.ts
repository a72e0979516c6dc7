import { answerOf, refusalWithout } from '../../session/answer.js';
import type { Command } from '../command.js';
import { operandsOf, summaryOf, withSession } from '../session-speaker.js';
import { statusText, tellAnswer } from '../session-text.js';
import { painter } from '../terminal.js';

/** `turnpike session status`: where a session stands. */
export const sessionStatus: Command = {
  name: 'session status',
  summary: 'Show where a session stands',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [],
  notes: [
    'Needs no lock, changes nothing and is not recorded. `turnpike session replay` tells the outstanding step with its',
    'proof, `turnpike runs` what was done in it.',
  ],
  async run(args, io) {
    const { session } = operandsOf(sessionStatus, args);
    return withSession(session, args, io, async ({ state }) => {
      if (state === null) return tellAnswer(refusalWithout('NO_ACTIVE_SESSION'), args, io);
      if (args.flag('json')) return tellAnswer(answerOf(state), args, io);
      await io.stdout.write(statusText(state, summaryOf(state).effective_status, painter(io.colours)));
      return 0;
    });
  },
};
