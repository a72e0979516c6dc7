import { commandUsageError, quoteArgument } from '../arguments.js';
import type { CliCommand } from '../command.js';
import { completionScript, SHELLS } from '../help/completion-script.js';

/** `turnpike completion SHELL`: prints the script that completes commands and options. */
export const completion = (commands: () => readonly CliCommand[]): CliCommand => {
  const command: CliCommand = {
    name: 'completion',
    access: 'none',
    summary: 'Print the completion script of a shell',
    operands: { usage: SHELLS.join('|'), min: 1, max: 1 },
    options: [],
    notes: ['For example in ~/.bashrc: eval "$(turnpike completion bash)"'],
    async run(args, io) {
      const [given = ''] = args.operands;
      const shell = SHELLS.find((name) => name === given);
      if (shell === undefined)
        throw commandUsageError(command, `${quoteArgument(given)} is not one of ${SHELLS.join(', ')}`);
      await io.stdout.write(completionScript(shell, commands()));
      return 0;
    },
  };
  return command;
};
