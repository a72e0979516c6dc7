import { resolve } from 'node:path';
import type { CliCommand } from '../../command.js';
import { readSpecFromStdin, runSessionCommand, splitOperands, callerOptions } from '../../session-command.js';

/** `turnpike session rebase`: continues a paused or failed session with a changed spec. */
export const sessionRebase: CliCommand = {
  name: 'session rebase',
  summary: 'Let a paused or failed session go on with another version of its spec',
  operands: { usage: '[SESSION] SPEC', min: 1, max: 2 },
  options: [
    { name: 'force', help: 'also when tasks that are completed are gone from it' },
    ...callerOptions('maintainer'),
  ],
  notes: [
    'SPEC is as in `turnpike session start`. What is completed stays so, gates are kept where their phase has not',
    'changed, and what was skipped gets another chance.',
  ],
  async run(args, io) {
    const [name = ''] = splitOperands(sessionRebase, args).rest;
    const spec = name === '-' ? await readSpecFromStdin(io) : resolve(io.cwd, name);
    const request = { spec, ...(args.flag('force') ? { force: true } : {}) };
    return runSessionCommand(
      { command: sessionRebase, defaultRole: 'maintainer', args, io },
      (sessions, { session_id }, caller) => sessions.rebase(session_id, request, caller),
    );
  },
};
