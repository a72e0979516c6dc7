import { COMMON_OPTIONS, type Command, type Option } from '../command.js';
import { table } from '../terminal.js';

/** What there is at all. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map((command) => [`  ${usageOf(command)}`, command.summary]);
  return [
    'turnpike: lets untrusted agents act through gates, and proves afterwards what they did.\n\n',
    'usage: turnpike <command> [options]\n\n',
    aligned(rows),
    '\noptions of every command:\n',
    optionLines(COMMON_OPTIONS),
    '\n`turnpike help <command>` says more. Exit codes: 0 done, 1 the check failed or the run did not complete,\n',
    '2 wrong usage, 3 the system is broken.\n',
  ].join('');
}

/** One command in full. */
export function helpOf(command: Command): string {
  const own = command.options.length === 0 ? '' : `\noptions:\n${optionLines(command.options)}`;
  const notes = command.notes === undefined ? '' : `\n${command.notes.join('\n')}\n`;
  return [
    `usage: turnpike ${usageOf(command)} [options]\n\n${command.summary}.\n${notes}${own}`,
    `\noptions of every command:\n${optionLines(COMMON_OPTIONS)}`,
  ].join('');
}

const usageOf = ({ name, operands }: Command): string => `${name} ${operands.usage}`.trim();

const optionLines = (options: readonly Option[]): string =>
  aligned(options.map(({ name, value, help }) => [`  --${name}${value === undefined ? '' : ` ${value}`}`, help]));

const aligned = (rows: readonly (readonly string[])[]): string =>
  table(
    rows.map((row) => row.map((text) => ({ text }))),
    (text) => text,
  );
