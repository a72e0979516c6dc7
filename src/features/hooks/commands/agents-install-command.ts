import { realpathSync } from 'node:fs';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { installHookProgram } from '../client-files/install-file.js';
import type { InstallTarget } from '../clients/editor.js';
import { CLIENT_NAMES } from '../clients/client-names.js';
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
import {
  defineCommand,
  type ArgumentsOf,
  type CliCommand,
  type CommandOption,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import { LEVEL_OPTION, parseClient, PROFILE_OPTION, PROJECT_OPTION, YES_OPTION } from './client-options.js';
import { confirmChanges } from './confirm-changes.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const INSTALL_OPTIONS = [
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
] as const satisfies readonly CommandOption[];

type InstallArguments = ArgumentsOf<typeof INSTALL_OPTIONS>;

/** `turnpike agents install`: writes the hooks of a coding agent into its settings. */
export const agentsInstall: CliCommand = defineCommand({
  name: 'agents install',
  access: 'none',
  summary: 'Write the settings of a coding agent so that Turnpike decides its calls; shows them first',
  operands: { usage: 'CLIENT', min: 1, max: 1 },
  options: INSTALL_OPTIONS,
  notes: [
    'Copies the hook program into a folder of yours outside of the project, where no agent may write. Keeps everything',
    'else in a file, and a copy next to it: `turnpike agents uninstall` restores that. With --http',
    'the actor of the token must be the one of --actor: a command still reports when sessions begin. Codex runs no hook',
    'that is not trusted: if its program is on the path, it is asked to trust these.',
  ],
  async run(args, io) {
    const { profile, json } = args.values;
    const place = placeOf(args, io);
    const { client, level } = place;
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
    if (json) {
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
});

const TRUST_TEXTS = {
  trusted: 'Codex trusts the hooks',
  no_program: 'codex is not on the path: start it and trust the hooks with /hooks, else it runs none of them',
  failed: 'Codex did not trust the hooks: start it and trust them with /hooks, else it runs none of them',
} as const;

/** @throws UsageError for an unknown client */
function placeOf(args: ArgumentsOf<readonly [typeof LEVEL_OPTION, typeof PROJECT_OPTION]>, io: Io): InstallPlace {
  const client = parseClient(args, args.operands[0] ?? '');
  const { level = CLIENT_NAMES[client].level, project } = args.values;
  return { client, level, project: realpathSync(project), environment: io.environment };
}

/** @throws UsageError */
function targetOf(
  { client, level, project, environment }: InstallPlace,
  args: InstallArguments,
  io: Io,
): InstallTarget {
  const { case: case_id = CASE_DEFAULT, actor, lane, role } = args.values;
  const http = httpOf(client, args);
  return {
    client,
    program: [process.execPath, hookProgramPath(environment)],
    server: [process.execPath, realpathSync(packageFile('dist/src/interfaces/cli/main.js'))],
    home: homeOf(args, io).home,
    // The settings of the user are for every project.
    ...(level === 'project' ? { project } : {}),
    case: case_id,
    ...omitUndefined({ actor, lane, role, http: http ?? undefined }),
    tools: SERVER_TOOLS,
    plugin: shippedPlugin(),
  };
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** @throws UsageError */
function httpOf(client: Client, { values, usageError }: InstallArguments): NonNullable<InstallTarget['http']> | null {
  const { http: url, tokenEnv: tokenVariable } = values;
  if (url === undefined && tokenVariable === undefined) return null;
  if (url === undefined || tokenVariable === undefined) throw usageError('--http and --token-env go together');
  if (client !== 'claude-code') throw usageError(`${client} has no hooks by HTTP: omit --http`);
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw usageError('--http takes an address that begins with http:// or https://');
  if (!VARIABLE.test(tokenVariable)) throw usageError('--token-env takes the name of a variable, and never a token');
  if (values.level === 'user')
    throw usageError('--http needs --level project, because it names the folder of the project');
  return { url, tokenVariable };
}

/** `turnpike agents uninstall`: removes what `turnpike agents install` has written. */
export const agentsUninstall: CliCommand = defineCommand({
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
    const place = placeOf(args, io);
    const { client, level } = place;
    const changes = planUninstall(place);
    if (changes.length > 0 && !(await confirmChanges(changes, args, io))) {
      await io.stderr.writeLine('nothing was changed');
      return 1;
    }
    applyUninstall(changes);
    const done = changes.length === 0 ? `${client} has nothing of Turnpike at this level` : `restored ${client}`;
    const files = changes.map(({ path }) => path);
    await io.stdout.write(args.values.json ? jsonLine({ client, level, files }) : `${escapeText(done)}\n`);
    return 0;
  },
});
