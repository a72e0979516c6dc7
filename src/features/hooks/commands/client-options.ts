// Options and operands of the commands that work on a coding agent.

import { PROFILES } from '../clients/client-facts.js';
import { CLIENTS, type Client } from '../hook-event.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import type { CommandArguments, CommandOption } from '../../../interfaces/cli/command.js';
import { PATH_TYPE, wordType } from '../../../interfaces/cli/option-types.js';

export const PROJECT_OPTION = {
  name: 'project',
  value: 'DIR',
  type: PATH_TYPE,
  default: '.',
  help: 'the folder of the project (default: this one)',
} as const satisfies CommandOption;
export const PROFILE_OPTION = {
  name: 'profile',
  value: 'NAME',
  type: wordType(PROFILES, ' or '),
  default: 'gate',
  help: 'gate: decide its own tools; strong: take them away (default gate)',
} as const satisfies CommandOption;
export const LEVEL_OPTION = {
  name: 'level',
  value: 'LEVEL',
  type: wordType(['project', 'user'], ' or '),
  help: 'project or user: whose settings to change (default project; user for codex and cline)',
} as const satisfies CommandOption;
export const YES_OPTION = {
  name: 'yes',
  help: 'do not ask before the files are changed',
} as const satisfies CommandOption;

/** @throws UsageError */
export function parseClient({ usageError }: Pick<CommandArguments, 'usageError'>, text: string): Client {
  const client = CLIENTS.find((name) => name === text);
  if (client !== undefined) return client;
  throw usageError(`${quoteArgument(text)} is no client: name one of ${CLIENTS.join(', ')}`);
}
