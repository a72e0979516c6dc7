import type { CommandGroup } from '../../../interfaces/cli/command.js';
import { agentsDoctor } from './agents-doctor-command.js';
import { agentsInstall } from './agents-install-command.js';
import { agentsReopen } from './agents-reopen-command.js';
import { agentsSessions } from './agents-sessions-command.js';
import { agentsUninstall } from './agents-uninstall-command.js';
import { hook } from './hook-command.js';

export const HOOK_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'coding agents',
    commands: [hook, agentsInstall, agentsUninstall, agentsDoctor, agentsSessions, agentsReopen],
  },
];
