import type { CliCommand } from '../../../interfaces/cli/command.js';
import { usageError } from '../../../core/errors.js';
import { EmptyResult } from '../../../host/control/control-messages.js';
import { withHomeAccess, type HomeAccess } from '../../../interfaces/cli/home-access.js';
import type { HookReopening } from '../gate/hook-gate.js';
import { parsePerson, PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike agents reopen`: lets a session of a coding agent go on that policy has ended. */
export const agentsReopen: CliCommand = {
  name: 'agents reopen',
  access: 'write',
  summary: 'Let a session of a coding agent go on that was ended after too many denials',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: PERSON_OPTIONS,
  notes: [
    'RUN_ID is the run that the denials of the session name. The role must be one of people. The session goes on in a new',
    'run tree, whose scope has your name; budgets and counts of denials start anew.',
  ],
  async run(args, io) {
    const reopening = { run: args.operands[0] ?? '', ...parsePerson(agentsReopen, args) };
    await withHomeAccess(args, io, (home) => reopenSession(home, reopening), { hooks: true });
    const text = `the session of ${reopening.run} goes on`;
    await io.stdout.write(args.flag('json') ? jsonLine(reopening) : `${escapeText(text)}\n`);
    return 0;
  },
};

/** @throws what `HookGate.reopen` throws; UsageError if the process decides no calls of coding agents */
async function reopenSession({ hooks, owner }: HomeAccess, reopening: HookReopening): Promise<void> {
  if (owner !== null) await owner.request({ op: 'reopen_hooks', reopening }, EmptyResult);
  else if (hooks !== null) await hooks.reopen(reopening);
  else throw usageError('this process decides no calls of coding agents');
}
