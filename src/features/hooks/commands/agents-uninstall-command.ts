import { realpathSync } from 'node:fs';
import { applyUninstall, planUninstall, type InstallPlace } from '../install/install-client.js';
import type { CliCommand } from '../../../interfaces/cli/command.js';
import { LEVEL_OPTION, parseClient, parseLevel, projectOf, PROJECT_OPTION, YES_OPTION } from './client-options.js';
import { confirmChanges } from './confirm-changes.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike agents uninstall`: removes what `turnpike agents install` has written. */
export const agentsUninstall: CliCommand = {
  name: 'agents uninstall',
  access: 'none',
  summary: 'Restore the settings of a coding agent as they were before `turnpike agents install`',
  operands: { usage: 'CLIENT', min: 1, max: 1 },
  options: [LEVEL_OPTION, PROJECT_OPTION, YES_OPTION],
  notes: [
    'Restores the copy if the file has not changed since, and else removes the entries of Turnpike alone. Tools that',
    'the strong profile has denied by name then stay denied, and Codex keeps the hashes of hooks that it trusted.',
  ],
  async run(args, io) {
    const client = parseClient(agentsUninstall, args.operands[0] ?? '');
    const level = parseLevel(agentsUninstall, args, client);
    const project = realpathSync(projectOf(args, io));
    const place: InstallPlace = { client, level, project, environment: io.environment };
    const changes = planUninstall(place);
    if (changes.length > 0 && !(await confirmChanges(changes, args, io))) {
      await io.stderr.writeLine('nothing was changed');
      return 1;
    }
    applyUninstall(changes);
    const done = changes.length === 0 ? `${client} has nothing of Turnpike at this level` : `restored ${client}`;
    const files = changes.map(({ path }) => path);
    await io.stdout.write(args.flag('json') ? jsonLine({ client, level, files }) : `${escapeText(done)}\n`);
    return 0;
  },
};
