import { realpathSync } from 'node:fs';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { installHookProgram } from '../client-files/install-file.js';
import type { InstallTarget } from '../clients/editor.js';
import type { Client } from '../hook-event.js';
import {
  applyInstall,
  applyUninstall,
  planInstall,
  planUninstall,
  SERVER_TOOLS,
  trustInstalled,
  type InstallPlace,
} from '../install/install-client.js';
import { hookProgramPath, inspectClient, shippedHook, shippedPlugin } from '../install/inspect-client.js';
import { packageFile } from '../../../system/package-files.js';
import { commandUsageError } from '../../../interfaces/cli/arguments.js';
import type { CliCommand, CommandArguments } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import {
  LEVEL_OPTION,
  parseClient,
  parseLevel,
  parseProfile,
  PROFILE_OPTION,
  projectOf,
  PROJECT_OPTION,
  YES_OPTION,
} from './client-options.js';
import { confirmChanges } from './confirm-changes.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

/** `turnpike agents install`: writes the hooks of a coding agent into its settings. */
export const agentsInstall: CliCommand = {
  name: 'agents install',
  access: 'none',
  summary: 'Write the settings of a coding agent so that Turnpike decides its calls; shows them first',
  operands: { usage: 'CLIENT', min: 1, max: 1 },
  options: [
    PROFILE_OPTION,
    LEVEL_OPTION,
    PROJECT_OPTION,
    { name: 'case', value: 'ID', help: `the case of its sessions (default ${CASE_DEFAULT})` },
    { name: 'actor', value: 'NAME', help: 'the actor of its sessions (default: the name of the client)' },
    { name: 'lane', value: 'ID', help: 'the lane of its sessions (default CODING)' },
    { name: 'role', value: 'ID', help: 'the role of its sessions (default CODING_AGENT)' },
    { name: 'http', value: 'URL', help: 'send calls to a service by HTTP; claude-code only' },
    { name: 'token-env', value: 'NAME', help: 'with --http: the variable that has the token' },
    YES_OPTION,
  ],
  notes: [
    'Copies the hook program into a folder of yours outside of the project, where no agent may write. Keeps everything',
    'else in a file, and a copy next to it: `turnpike agents uninstall` restores that. With --http',
    'the actor of the token must be the one of --actor: a command still reports when sessions begin. Codex runs no hook',
    'that is not trusted: if its program is on the path, it is asked to trust these.',
  ],
  async run(args, io) {
    const client = parseClient(agentsInstall, args.operands[0] ?? '');
    const level = parseLevel(agentsInstall, args, client);
    const profile = parseProfile(agentsInstall, args);
    const place: InstallPlace = { client, level, project: realProject(args, io), environment: io.environment };
    const target = targetOf(place, args, io);
    const changes = planInstall(place, profile, target);
    if (changes.length > 0 && !(await confirmChanges(changes, args, io))) {
      await io.stderr.writeLine('nothing was changed');
      return 1;
    }
    installHookProgram(target.program.at(-1) ?? '', shippedHook(), place.project);
    applyInstall(changes);
    const trust = client === 'codex' && profile === 'gate' ? await trustInstalled(place, target) : null;
    const { findings } = await inspectClient(client, { project: place.project, profile, environment: io.environment });
    const left = findings.filter(({ severity }) => severity === 'opens');
    if (args.flag('json')) {
      await io.stdout.write(jsonLine({ client, level, profile, files: changes.map(({ path }) => path), trust, left }));
      return 0;
    }
    const lines = [
      changes.length === 0 ? `${client} was installed already` : `installed for ${client}`,
      `the hook program is ${target.program.at(-1) ?? ''}`,
      ...(trust === null ? [] : [TRUST_TEXTS[trust]]),
      ...left.map(({ message, remedy }) => `still open: ${message} ${remedy}`),
      `\`turnpike serve --hooks\` decides; \`turnpike agents uninstall ${client}\` restores the files`,
    ];
    await io.stdout.write(lines.map((line) => `${escapeText(line)}\n`).join(''));
    return 0;
  },
};

const TRUST_TEXTS = {
  trusted: 'Codex trusts the hooks',
  no_program: 'codex is not on the path: start it and trust the hooks with /hooks, else it runs none of them',
  failed: 'Codex did not trust the hooks: start it and trust them with /hooks, else it runs none of them',
} as const;

const realProject = (args: CommandArguments, io: Io): string => realpathSync(projectOf(args, io));

/** @throws UsageError */
function targetOf(
  { client, level, project, environment }: InstallPlace,
  args: CommandArguments,
  io: Io,
): InstallTarget {
  const [actor, lane, role] = [args.text('actor'), args.text('lane'), args.text('role')];
  const http = httpOf(client, args);
  return {
    client,
    program: [process.execPath, hookProgramPath(environment)],
    server: [process.execPath, realpathSync(packageFile('dist/src/interfaces/cli/main.js'))],
    home: homeOf(args, io).home,
    // The settings of the user are for every project.
    ...(level === 'project' ? { project } : {}),
    case: args.text('case') ?? CASE_DEFAULT,
    ...omitUndefined({ actor, lane, role, http: http ?? undefined }),
    tools: SERVER_TOOLS,
    plugin: shippedPlugin(),
  };
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** @throws UsageError */
function httpOf(client: Client, args: CommandArguments): NonNullable<InstallTarget['http']> | null {
  const [url, tokenVariable] = [args.text('http'), args.text('token-env')];
  if (url === undefined && tokenVariable === undefined) return null;
  if (url === undefined || tokenVariable === undefined)
    throw commandUsageError(agentsInstall, '--http and --token-env go together');
  if (client !== 'claude-code') throw commandUsageError(agentsInstall, `${client} has no hooks by HTTP: omit --http`);
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw commandUsageError(agentsInstall, '--http takes an address that begins with http:// or https://');
  if (!VARIABLE.test(tokenVariable))
    throw commandUsageError(agentsInstall, '--token-env takes the name of a variable, and never a token');
  if (args.text('level') === 'user')
    throw commandUsageError(agentsInstall, '--http needs --level project, because it names the folder of the project');
  return { url, tokenVariable };
}

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
    const project = realProject(args, io);
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
