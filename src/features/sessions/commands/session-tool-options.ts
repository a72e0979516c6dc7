// The options of `turnpike mcp` and `turnpike serve` for the sessions of their agents.

import { resolve } from 'node:path';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { AddedToolOptions } from '../../../runtime/host-feature.js';
import type {
  CliCommand,
  CommandArguments,
  CommandOption,
  ToolCommandOptions,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { POSTURES, SESSION_ROLES } from '../contract/session.js';
import { parseChoice } from './session-options.js';

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
      ...omitUndefined({
        role,
        specs: specs === undefined ? undefined : resolve(io.cwd, specs),
        settings: posture === undefined ? undefined : { posture },
      }),
    },
  };
}

export const SESSION_TOOL_OPTIONS: ToolCommandOptions = {
  mcp: { middle: MCP_OPTIONS, end: [POSTURE_OPTION] },
  serve: SERVE_OPTIONS,
  parse: parseSessionOptions,
};
