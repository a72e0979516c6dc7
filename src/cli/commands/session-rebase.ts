import { resolve } from 'node:path';
import type { Command } from '../command.js';
import { specOf } from '../session-input.js';
import { askSession, operandsOf, speakerOptions } from '../session-speaker.js';

/** `turnpike session rebase`: a paused or failed session goes on with a spec that has changed. */
export const sessionRebase: Command = {
  name: 'session rebase',
  summary: 'Let a paused or failed session go on with another version of its spec',
  operands: { usage: '[SESSION] SPEC', min: 1, max: 2 },
  options: [
    { name: 'force', help: 'also when tasks that are completed are gone from it' },
    ...speakerOptions('maintainer'),
  ],
  notes: [
    'SPEC is as in `turnpike session start`. What is completed stays so, gates are kept where their phase has not',
    'changed, and what was skipped gets another chance.',
  ],
  async run(args, io) {
    const [name = ''] = operandsOf(sessionRebase, args).rest;
    const spec = name === '-' ? await specOf(io) : resolve(io.cwd, name);
    const request = { spec, ...(args.flag('force') ? { force: true } : {}) };
    return askSession({ command: sessionRebase, voice: 'maintainer', args, io }, (sessions, { session_id }, by) =>
      sessions.rebase(session_id, request, by),
    );
  },
};
