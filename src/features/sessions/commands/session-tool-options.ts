// The options of `turnpike mcp` and `turnpike serve` for the sessions of their agents.

import { omitUndefined } from '../../../core/omit-undefined.js';
import { valuesOf, type CommandOption, type ToolCommandOptions } from '../../../interfaces/cli/command.js';
import { PATH_TYPE, wordType } from '../../../interfaces/cli/option-types.js';
import { POSTURES, SESSION_ROLES } from '../contract/session.js';

const SPECS = { name: 'specs', value: 'DIR', type: PATH_TYPE } as const;
const MCP_OPTIONS = [
  { ...SPECS, help: 'a folder of specs that agents may work through, named by their ids' },
  { name: 'inline-specs', help: 'accept specs from agents; danger: the commands in them are executed' },
  {
    name: 'session-role',
    value: 'ROLE',
    type: wordType(SESSION_ROLES),
    help: `the session role of agents (default ${SESSION_ROLES[0]})`,
  },
] as const satisfies readonly CommandOption[];
const POSTURE_OPTION = {
  name: 'posture',
  value: 'HOW',
  type: wordType(POSTURES),
  help: `the posture of sessions that agents start: ${POSTURES.join(', ')}`,
} as const satisfies CommandOption;
const SERVE_OPTIONS: readonly CommandOption[] = [
  { ...SPECS, help: 'a folder of specs for new sessions, named by their ids' },
  { name: 'inline-specs', help: 'accept specs in requests; danger: the commands in them are executed' },
];

export const SESSION_TOOL_OPTIONS: ToolCommandOptions = {
  mcp: { middle: MCP_OPTIONS, end: [POSTURE_OPTION] },
  serve: SERVE_OPTIONS,
  parse(args) {
    // `serve` has not all of these options.
    const { specs, inlineSpecs, sessionRole: role, posture } = valuesOf([...MCP_OPTIONS, POSTURE_OPTION], args);
    const settings = posture === undefined ? undefined : { posture };
    return { sessions: { inlineSpecs, ...omitUndefined({ role, specs, settings }) } };
  },
};
