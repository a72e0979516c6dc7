import { exitPacket, rejectionWithoutSession } from '../../../session/session-answer.js';
import { loopSignal } from '../../../session/loop-signal.js';
import type { CliCommand } from '../../command.js';
import { splitOperands, withSession } from '../../session-command.js';
import { printAnswer } from '../../text/session-text.js';
import { escapeText, jsonLine } from '../../text/terminal.js';

/** `turnpike session packets`: prints the summary for the end of the loop, an escalation or success (S3-38, S3-40). */
export const sessionPackets: CliCommand = {
  name: 'session packets',
  summary: 'Show the packet that is handed on when the loop of a session stops, as JSON',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [],
  notes: [
    'The packet always has the same members: of a session that has paused or failed it is the escalation packet, of one',
    'that has completed the success packet, of one that runs what it would be now. Needs no lock.',
  ],
  async run(args, io) {
    const { session } = splitOperands(sessionPackets, args);
    return withSession(session, args, io, async ({ state }) => {
      if (state === null) return printAnswer(rejectionWithoutSession('NO_ACTIVE_SESSION'), args, io);
      const packet = exitPacket(state, loopSignal(state, null), null);
      const lines = JSON.stringify(packet, null, 2).split('\n').map(escapeText);
      await io.stdout.write(args.flag('json') ? jsonLine(packet) : `${lines.join('\n')}\n`);
      return 0;
    });
  },
};
