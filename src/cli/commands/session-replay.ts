import type { Command } from '../command.js';
import { askSession, speakerOptions } from '../session-speaker.js';

/** `turnpike session replay`: the outstanding step with its proof, for an agent that has lost it. */
export const sessionReplay: Command = {
  name: 'session replay',
  summary: 'Tell the outstanding step of a session once more, with its proof',
  operands: { usage: '[SESSION]', min: 0, max: 1 },
  options: speakerOptions('autonomy_runner'),
  run: (args, io) =>
    askSession({ command: sessionReplay, voice: 'autonomy_runner', args, io }, (sessions, { session_id }, by) =>
      sessions.replay(session_id, by),
    ),
};
