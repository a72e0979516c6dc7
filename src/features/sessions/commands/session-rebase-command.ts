import { resolve } from 'node:path';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { readSpecFromStdin, runSessionCommand, splitOperands, callerOptions } from './session-options.js';

/** `turnpike session rebase`: continues a paused or failed session with a changed spec. */
export const sessionRebase: CliCommand = {
  name: 'session rebase',
  access: 'write',
  summary: 'Continue a paused or failed session with another version of its spec',
  operands: { usage: '[SESSION] SPEC', min: 1, max: 2 },
  options: [
    { name: 'force', help: 'continue even if the new version lacks completed tasks' },
    ...callerOptions('maintainer'),
  ],
  notes: [
    'SPEC is as in `turnpike session start`. Completed tasks stay completed. Gates keep their result if their phase',
    'has not changed. Skipped tasks are issued again.',
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
