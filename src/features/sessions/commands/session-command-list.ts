// The session commands, in the order of the help: the agent's loop, status, and the decisions of operators.

import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { AGENT_COMMANDS } from './agent-commands.js';
import { PERSON_COMMANDS } from './person-commands.js';
import { READING_COMMANDS } from './reading-commands.js';
import { sessionCheck } from './session-check-command.js';
import { sessionStart } from './session-start-command.js';

export const SESSION_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'sessions',
    commands: [sessionCheck, sessionStart, ...AGENT_COMMANDS, ...READING_COMMANDS, ...PERSON_COMMANDS],
  },
];
