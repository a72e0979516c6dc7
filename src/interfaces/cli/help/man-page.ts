// The manual page turnpike(1), in troff.

import { COMMON_OPTIONS, type CliCommand, type CommandGroup, type CommandOption } from '../command.js';
import { helpOf } from './help-text.js';

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
