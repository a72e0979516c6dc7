import { COMMON_OPTIONS, type CliCommand, type CommandGroup, type CommandOption } from '../command.js';
import { table } from '../text/terminal.js';

/** The overview of all commands. */
export function overviewText(groups: readonly CommandGroup[]): string {
  const width = Math.max(...groups.flatMap(({ commands }) => commands.map((command) => usageLine(command).length)));
  const rowsOf = ({ commands }: CommandGroup): string =>
    commands.map((command) => `  ${usageLine(command).padEnd(width)}  ${command.summary}\n`).join('');
  return [
    'turnpike: lets untrusted agents act through a state machine, and proves afterwards what they did.\n\n',
    'usage: turnpike <command> [options]\n\n',
    groups.map((group) => `${group.title}:\n${rowsOf(group)}`).join('\n'),
    '\noptions of every command:\n',
    optionLines(COMMON_OPTIONS),
    '\n`turnpike help <command>` explains one command. Exit codes: 0 done, 1 the check failed or the run did not\n',
    'complete, 2 wrong usage, 3 the system is broken, 4 nothing is wrong but not everything could be checked.\n',
  ].join('');
}

/** The help of one command. */
export function helpText(command: CliCommand): string {
  const ownOptions = command.options.length === 0 ? '' : `\noptions:\n${optionLines(command.options)}`;
  const notes = command.notes === undefined ? '' : `\n${command.notes.join('\n')}\n`;
  return [
    `usage: turnpike ${usageLine(command)} [options]\n\n${command.summary}.\n${notes}${ownOptions}`,
    `\noptions of every command:\n${optionLines(COMMON_OPTIONS)}`,
  ].join('');
}

const usageLine = ({ name, operands }: CliCommand): string => `${name} ${operands.usage}`.trim();

const optionLines = (options: readonly CommandOption[]): string =>
  alignRows(
    options.map((option) => [
      `  --${option.name}${option.value === undefined ? '' : ` ${option.value}`}`,
      helpOf(option),
    ]),
  );

/** What an option is for, and whether the command needs it. */
export const helpOf = ({ help, required }: Pick<CommandOption, 'help' | 'required'>): string =>
  required === true ? `${help} (required)` : help;

const alignRows = (rows: readonly (readonly string[])[]): string =>
  table(
    rows.map((row) => row.map((text) => ({ text }))),
    (text) => text,
  );
