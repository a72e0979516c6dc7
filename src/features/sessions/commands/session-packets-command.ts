import { exitPacket, rejectionWithoutSession } from '../rules/command-answer.js';
import { loopSignal } from '../rules/loop-signal.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { splitOperands, withSession } from './session-options.js';
import { printAnswer } from './session-text.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike session packets`: prints the summary for the end of the loop, an escalation or success (S3-38, S3-40). */
export const sessionPackets: CliCommand = {
  name: 'session packets',
  access: 'read',
  summary: 'Print the exit packet of a session, which the agent passes on when its loop stops, as JSON',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: [],
  notes: [
    'The packet always has the same members. For a paused or failed session it is the escalation packet, for a',
    'completed session the success packet, and for a running session the packet as it would be now. Needs no lock.',
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
