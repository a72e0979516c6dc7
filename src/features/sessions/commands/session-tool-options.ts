// The options of `turnpike mcp` and `turnpike serve` for the sessions of their agents.

import { resolve } from 'node:path';
import type { AddedToolOptions } from '../../../runtime/host-feature.js';
import { commandUsageError, quoteArgument } from '../../../interfaces/cli/arguments.js';
import type {
  CliCommand,
  CommandArguments,
  CommandOption,
  ToolCommandOptions,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { POSTURES, SESSION_ROLES } from '../contract/session.js';

const MCP_OPTIONS: readonly CommandOption[] = [
  { name: 'specs', value: 'DIR', help: 'a folder of specs that agents may work through, named by their ids' },
  { name: 'inline-specs', help: 'accept specs from agents; danger: the commands in them are executed' },
  { name: 'session-role', value: 'ROLE', help: `the session role of agents (default ${SESSION_ROLES[0]})` },
];
const POSTURE_OPTION: CommandOption = {
  name: 'posture',
  value: 'HOW',
  help: `the posture of sessions that agents start: ${POSTURES.join(', ')}`,
};
const SERVE_OPTIONS: readonly CommandOption[] = [
  { name: 'specs', value: 'DIR', help: 'a folder of specs for new sessions, named by their ids' },
  { name: 'inline-specs', help: 'accept specs in requests; danger: the commands in them are executed' },
];

/** `serve` has not all of these options. */
function parseSessionOptions(command: CliCommand, args: CommandArguments, io: Io): AddedToolOptions {
  const role = parseChoice(command, args, 'session-role', SESSION_ROLES);
  const posture = parseChoice(command, args, POSTURE_OPTION.name, POSTURES);
  const specs = args.text('specs');
  return {
    sessions: {
      inlineSpecs: args.flag('inline-specs'),
      ...(role === undefined ? {} : { role }),
      ...(specs === undefined ? {} : { specs: resolve(io.cwd, specs) }),
      ...(posture === undefined ? {} : { settings: { posture } }),
    },
  };
}

function parseChoice<T extends string>(
  command: CliCommand,
  args: CommandArguments,
  name: string,
  known: readonly T[],
): T | undefined {
  const value = args.text(name);
  const found = known.find((one) => one === value);
  if (value !== undefined && found === undefined) {
    throw commandUsageError(command, `--${name} takes ${known.join(', ')}, not ${quoteArgument(value)}`);
  }
  return found;
}

export const SESSION_TOOL_OPTIONS: ToolCommandOptions = {
  mcp: { middle: MCP_OPTIONS, end: [POSTURE_OPTION] },
  serve: SERVE_OPTIONS,
  parse: parseSessionOptions,
};
