import { quoted, wrong } from '../arguments.js';
import type { Command } from '../command.js';
import { askSession, idOf, operandsOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session ack`: a person's word on a gate that waits for it; the session goes on by it (C72). */
export const sessionAck: Command = {
  name: 'session ack',
  summary: 'Pass or fail a gate that waits for a person, and resume its session',
  operands: { usage: '[SESSION] ATTEMPT pass|fail', min: 2, max: 3 },
  options: speakerOptions('maintainer'),
  notes: ['`turnpike session status` shows the ATTEMPT that waits.'],
  async run(args, io) {
    const [attempt = '', word = ''] = operandsOf(sessionAck, args).rest;
    const gate_attempt_id = idOf(sessionAck, 'gate attempt', attempt);
    const decision = (['pass', 'fail'] as const).find((known) => known === word);
    if (decision === undefined) throw wrong(sessionAck, `say pass or fail, not ${quoted(word)}`);
    return askSession({ command: sessionAck, voice: 'maintainer', args, io }, (sessions, { session_id }, by) =>
      sessions.resume(session_id, { acknowledge: { gate_attempt_id, decision } }, by),
    );
  },
};
