import { usageError } from '../../../core/errors.js';
import { CLIENTS } from '../hook-event.js';
import type { CliCommand, CommandGroup } from '../../../interfaces/cli/command.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import { agentsDoctor, agentsInstall, agentsUninstall } from './agents-commands.js';
import { agentsReopen, agentsSessions } from './agents-sessions-command.js';
import { HOOK_TIMEOUT_MS } from '../clients/hook-command-line.js';

/** `turnpike hook`: its help. `main.ts` runs it without loading the other commands (`run-hook.ts`). */
const hook: CliCommand = {
  name: 'hook',
  access: 'none',
  summary: 'Answer one event of a coding agent, read from standard input',
  operands: { usage: 'CLIENT', min: 1, max: 1 },
  options: [
    { name: 'home', value: 'DIR', help: 'the home directory that `turnpike serve --hooks` has open' },
    { name: 'project', value: 'DIR', help: 'the folder of the project (default: the one that the client names)' },
    { name: 'case', value: 'ID', help: `the case of the session (default ${CASE_DEFAULT})` },
    { name: 'actor', value: 'NAME', help: 'the actor of the session (default: the name of the client)' },
    { name: 'person', value: 'NAME', help: 'the person behind the actor (default: the user of this machine)' },
    { name: 'role', value: 'ID', help: 'the role of the session (default CODING_AGENT)' },
    { name: 'lane', value: 'ID', help: 'the lane of the session (default CODING)' },
    { name: 'timeout', value: 'MS', help: `how long to wait for the decision (default ${HOOK_TIMEOUT_MS})` },
    { name: 'pending', value: 'HOW', help: 'a call that waits for approval: deny (default), or defer for `claude -p`' },
  ],
  notes: [
    `CLIENT is one of ${CLIENTS.join(', ')}.`,
    '`turnpike agents install` writes this command into the configuration of a client.',
    'It denies whatever it cannot decide. A call that is deferred ends `claude -p`; it is asked again when that is resumed.',
  ],
  run: () => Promise.reject(usageError('hook is a program of its own: start it with `turnpike hook CLIENT`')),
};

export const HOOK_COMMANDS: readonly CommandGroup[] = [
  {
    title: 'coding agents',
    commands: [hook, agentsInstall, agentsUninstall, agentsDoctor, agentsSessions, agentsReopen],
  },
];
