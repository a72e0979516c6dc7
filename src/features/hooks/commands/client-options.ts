// Options and operands of the commands that work on a coding agent.

import { resolve } from 'node:path';
import { PROFILES, type Profile } from '../clients/client-facts.js';
import { CLIENT_NAMES } from '../clients/client-names.js';
import { CLIENTS, type Client } from '../hook-event.js';
import { commandUsageError, quoteArgument } from '../../../interfaces/cli/arguments.js';
import type { CliCommand, CommandArguments, CommandOption } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';

export const PROJECT_OPTION: CommandOption = {
  name: 'project',
  value: 'DIR',
  help: 'the folder of the project (default: this one)',
};
export const PROFILE_OPTION: CommandOption = {
  name: 'profile',
  value: 'NAME',
  help: 'gate: decide its own tools; strong: take them away (default gate)',
};
export const LEVEL_OPTION: CommandOption = {
  name: 'level',
  value: 'LEVEL',
  help: 'project or user: whose settings to change (default project; user for codex and cline)',
};
export const YES_OPTION: CommandOption = { name: 'yes', help: 'do not ask before the files are changed' };

/** @throws UsageError */
export function parseClient(command: CliCommand, text: string): Client {
  const client = CLIENTS.find((name) => name === text);
  if (client !== undefined) return client;
  throw commandUsageError(command, `${quoteArgument(text)} is no client: name one of ${CLIENTS.join(', ')}`);
}

/** @throws UsageError */
export function parseProfile(command: CliCommand, args: CommandArguments): Profile {
  const text = args.text('profile') ?? 'gate';
  const profile = PROFILES.find((name) => name === text);
  if (profile !== undefined) return profile;
  throw commandUsageError(command, `--profile takes ${PROFILES.join(' or ')}, not ${quoteArgument(text)}`);
}

/** @throws UsageError */
export function parseLevel(command: CliCommand, args: CommandArguments, client: Client): 'user' | 'project' {
  const level = args.text('level') ?? CLIENT_NAMES[client].level;
  if (level === 'user' || level === 'project') return level;
  throw commandUsageError(command, `--level takes project or user, not ${quoteArgument(level)}`);
}

export const projectOf = (args: CommandArguments, io: Io): string => resolve(io.cwd, args.text('project') ?? '.');
