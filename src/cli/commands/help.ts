import { COMMON_OPTIONS, type CliCommand, type CommandOption } from '../command.js';
import { table } from '../text/terminal.js';

/** The overview of all commands. */
export function overviewText(commands: readonly CliCommand[]): string {
  const rows = commands.map((command) => [`  ${usageLine(command)}`, command.summary]);
  return [
    'turnpike: lets untrusted agents act through a state machine, and proves afterwards what they did.\n\n',
    'usage: turnpike <command> [options]\n\n',
    alignRows(rows),
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
  alignRows(options.map(({ name, value, help }) => [`  --${name}${value === undefined ? '' : ` ${value}`}`, help]));

const alignRows = (rows: readonly (readonly string[])[]): string =>
  table(
    rows.map((row) => row.map((text) => ({ text }))),
    (text) => text,
  );
