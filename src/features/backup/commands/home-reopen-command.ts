import { reopenHome } from '../copy/copy-home.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { findLocation } from './home-copy-command.js';

/** `turnpike home reopen`: lets a ledger be written again that was copied. */
export const homeReopen: CliCommand = {
  name: 'home reopen',
  access: 'write',
  summary: 'Let a ledger be written again that was copied',
  operands: { usage: 'FROM', min: 1, max: 1 },
  options: [
    { name: 'from-home', value: 'DIR', help: 'with a URL as FROM: the folder of its keys, local state and sandbox' },
    { name: 'from-schema', value: 'NAME', help: 'with a URL as FROM: the schema of its tables (default turnpike)' },
  ],
  notes: [
    'Removes the mark that `home copy` has left. Use it only if nothing has written to the copy, and nothing ever will:',
    'two ledgers that continue under one key contradict each other, and an auditor who sees both finds a forged log.',
  ],
  async run(args, io) {
    const [name = ''] = args.operands;
    const copy = await reopenHome(await findLocation(name, args, 'from', io));
    const text = copy === null ? `${name} was not copied` : `${name} is open again: never write to ${copy}`;
    await io.stdout.write(args.flag('json') ? jsonLine({ reopened: copy !== null, copy }) : `${escapeText(text)}\n`);
    return 0;
  },
};
