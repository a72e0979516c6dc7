// What help and version print, and the manual page, prepared as a step of the build.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { COMMAND_GROUPS, COMMANDS } from '../../build/compiled/src/interfaces/cli/turnpike-command.js';
import { helpText, manPage, overviewText } from '../../build/compiled/src/interfaces/cli/help/help-text.js';

const file = (path) => new URL(`../../${path}`, import.meta.url);
const { version } = JSON.parse(readFileSync(file('package.json'), 'utf8'));
const commands = Object.fromEntries(COMMANDS.map((command) => [command.name, helpText(command)]));

mkdirSync(file('dist/'), { recursive: true });
writeFileSync(file('dist/help.json'), JSON.stringify({ version, overview: overviewText(COMMAND_GROUPS), commands }));
writeFileSync(file('dist/turnpike.1'), manPage(COMMAND_GROUPS, version));
