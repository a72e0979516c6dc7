import { inspectClient } from '../install/inspect-client.js';
import { defineCommand } from '../../../interfaces/cli/command.js';
import { CLIENTS } from '../hook-event.js';
import { parseClient, PROFILE_OPTION, PROJECT_OPTION } from './client-options.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike agents doctor`: whether a coding agent could act without a decision. */
export const agentsDoctor = defineCommand({
  name: 'agents doctor',
  access: 'none',
  summary: 'Find settings of coding agents by which calls could pass without a decision, and what to do about them',
  operands: { usage: '[CLIENT]', min: 0, max: 1 },
  options: [PROJECT_OPTION, PROFILE_OPTION],
  notes: [
    `CLIENT is one of ${CLIENTS.join(', ')}.`,
    'Without it: every client whose program is on the path. Exits 1 if a finding opens the gate. `turnpike hook` does',
    'the same once for each session, and denies every call then. It cannot see the arguments that a client was started',
    'with: docs/trust.md names those that switch hooks off.',
  ],
  async run(args, io) {
    const { profile, project, json } = args.values;
    const [named] = args.operands;
    const options = { project, profile, environment: io.environment };
    const inspected = [];
    for (const client of named === undefined ? CLIENTS : [parseClient(args, named)])
      inspected.push({ client, ...(await inspectClient(client, options)) });
    const shown = inspected.filter(({ version }) => named !== undefined || version !== null);
    for (const { client, version, findings } of shown) {
      if (json) {
        await io.stdout.write(jsonLine({ client, version, profile, findings }));
        continue;
      }
      await io.stdout.write(`${escapeText(`${client} ${version ?? '(unknown version)'}`)}\n`);
      if (findings.length === 0) await io.stdout.write('  ok\n');
      for (const { id, severity, message, remedy } of findings)
        await io.stdout.write(
          escapeText(`  ${severity}  ${id}: ${message}`) + `\n${escapeText(`         ${remedy}`)}\n`,
        );
    }
    if (shown.length === 0 && !json) await io.stdout.write('no coding agent is on the path\n');
    return shown.some(({ findings }) => findings.some(({ severity }) => severity === 'opens')) ? 1 : 0;
  },
});
