import { quoteArgument, commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { runSessionCommand, parseId, splitOperands, callerOptions } from './session-options.js';

/** `turnpike session ack`: records a person's decision on the pending gate; the session continues from it (C72). */
export const sessionAck: CliCommand = {
  name: 'session ack',
  access: 'write',
  summary: 'Pass or fail a gate that waits for a person, and resume its session',
  operands: { usage: '[SESSION] ATTEMPT pass|fail', min: 2, max: 3 },
  options: callerOptions('maintainer'),
  notes: ['`turnpike session status` prints the ATTEMPT that waits for a decision.'],
  async run(args, io) {
    const [attempt = '', decisionText = ''] = splitOperands(sessionAck, args).rest;
    const gate_attempt_id = parseId(sessionAck, 'gate attempt', attempt);
    const decision = (['pass', 'fail'] as const).find((known) => known === decisionText);
    if (decision === undefined)
      throw commandUsageError(sessionAck, `the decision must be pass or fail, not ${quoteArgument(decisionText)}`);
    return runSessionCommand(
      { command: sessionAck, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) =>
        sessions.resume(session_id, { acknowledge: { gate_attempt_id, decision } }, caller),
    );
  },
};
