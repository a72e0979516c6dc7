// docs/reference/commands.md: the help of every command of `turnpike`.

import { COMMON_OPTIONS } from '../../../src/interfaces/cli/command.js';
import { helpText } from '../../../src/interfaces/cli/help/help-text.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { code, markdownTable } from './schema-fields.js';

export function commandsPage(): string {
  const index = COMMANDS.map(({ name, summary }) => [`[${code(name)}](#turnpike-${anchorOf(name)})`, summary]);
  const options = COMMON_OPTIONS.map(({ name, value, help }) => [
    code(`--${name}${value === undefined ? '' : ` ${value}`}`),
    help,
  ]);
  return [
    '# Commands',
    'The help of every command of `turnpike`. A test generates this page from the command itself.',
    'Every command exits with 0 (done), 1 (the check failed, or the run did not complete), 2 (wrong usage), 3 (the\n' +
      'system is broken) or 4 (nothing is wrong, and not everything could be checked).',
    markdownTable(['Command', 'Purpose'], index),
    '## Options of every command',
    markdownTable(['Option', 'Meaning'], options),
    ...COMMANDS.flatMap((command) => [
      `## turnpike ${command.name}`,
      `\`\`\`text\n${(helpText(command).split('\noptions of every command:')[0] ?? '').trimEnd()}\n\`\`\``,
    ]),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

const anchorOf = (name: string): string => name.replaceAll(' ', '-');
