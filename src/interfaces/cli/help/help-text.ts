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
const helpOf = ({ help, required }: Pick<CommandOption, 'help' | 'required'>): string =>
  required === true ? `${help} (required)` : help;

const alignRows = (rows: readonly (readonly string[])[]): string =>
  table(
    rows.map((row) => row.map((text) => ({ text }))),
    (text) => text,
  );

/** The page for a version of the package. */
export function manPage(groups: readonly CommandGroup[], version: string): string {
  return [
    `.TH TURNPIKE 1 "" "turnpike ${version}" "User Commands"`,
    '.SH NAME',
    'turnpike \\- lets untrusted agents act through a state machine, and proves afterwards what they did',
    '.SH SYNOPSIS',
    '.B turnpike\n.I command\n[\\fIoptions\\fR]',
    '.SH OPTIONS OF EVERY COMMAND',
    ...COMMON_OPTIONS.map(optionText),
    ...groups.flatMap(({ title, commands }) => [`.SH ${quote(title.toUpperCase())}`, ...commands.flatMap(commandText)]),
    '.SH EXIT STATUS',
    '0: done. 1: the check failed or the run did not complete. 2: wrong usage. 3: the system is broken. 4: nothing is',
    'wrong, but not everything could be checked.',
    '',
  ].join('\n');
}

const commandText = ({ name, operands, summary, notes = [], options }: CliCommand): readonly string[] => [
  `.SS ${quote(`turnpike ${name} ${operands.usage}`.trim())}`,
  `${escape(summary)}.`,
  ...(notes.length === 0 ? [] : ['.PP', ...notes.map(escape)]),
  ...options.map(optionText),
];

const optionText = ({ name, value, ...rest }: CommandOption): string =>
  `.TP\n\\fB\\-\\-${escape(name)}\\fR${value === undefined ? '' : ` \\fI${escape(value)}\\fR`}\n${escape(helpOf(rest))}`;

/** A line that begins with a dot or an apostrophe would be a request. */
const escape = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/u, '\\&');

const quote = (text: string): string => `"${escape(text).replaceAll('"', '\\(dq')}"`;
