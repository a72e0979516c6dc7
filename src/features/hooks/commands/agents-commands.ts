// The commands that install Turnpike into a coding agent, remove it again, and look at what is there.

import { realpathSync } from 'node:fs';
import { alignSequences } from '../../../core/align-sequences.js';
import { usageError } from '../../../core/errors.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import { packageFile } from '../../../system/package-files.js';
import { quoteArgument } from '../../../interfaces/cli/arguments.js';
import {
  defineCommand,
  type ArgumentsOf,
  type CliCommand,
  type CommandArguments,
  type CommandOption,
} from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { PATH_TYPE, wordType } from '../../../interfaces/cli/option-types.js';
import { CASE_DEFAULT } from '../../../interfaces/cli/options/case-default.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { installHookProgram } from '../client-files/client-file.js';
import { CLIENT_NAMES } from '../clients/client-names.js';
import type { InstallTarget } from '../clients/client-settings.js';
import { PROFILES } from '../clients/judge-hooks.js';
import { CLIENTS, type Client } from '../hook-event.js';
import {
  applyInstall,
  applyUninstall,
  planInstall,
  planUninstall,
  SERVER_TOOLS,
  trustInstalled,
  type InstallPlace,
  type FileChange,
} from '../install/install-client.js';
import { hookProgramPath, inspectClient, shippedHook, shippedPlugin } from '../install/inspect-client.js';

export const PROJECT_OPTION = {
  name: 'project',
  value: 'DIR',
  type: PATH_TYPE,
  help: 'the folder of the project (default: this one)',
} as const satisfies CommandOption;
const PROFILE_OPTION = {
  name: 'profile',
  value: 'NAME',
  type: wordType(PROFILES, ' or '),
  default: 'gate',
  help: 'gate: decide its own tools; strong: take them away (default gate)',
} as const satisfies CommandOption;
const LEVEL_OPTION = {
  name: 'level',
  value: 'LEVEL',
  type: wordType(['project', 'user'], ' or '),
  help: 'project or user: whose settings to change (default project; user for codex and cline)',
} as const satisfies CommandOption;
const YES_OPTION = { name: 'yes', help: 'do not ask before the files are changed' } as const satisfies CommandOption;

/** @throws UsageError */
function parseClient({ operands: [text = ''], usageError: error }: CommandArguments): Client {
  const client = CLIENTS.find((name) => name === text);
  if (client !== undefined) return client;
  throw error(`${quoteArgument(text)} is no client: name one of ${CLIENTS.join(', ')}`);
}

type PlaceArguments = ArgumentsOf<readonly [typeof LEVEL_OPTION, typeof PROJECT_OPTION]>;

/** @throws UsageError */
function parsePlace(args: PlaceArguments, io: Io): InstallPlace {
  const client = parseClient(args);
  const { level = CLIENT_NAMES[client].level, project = io.cwd } = args.values;
  return { client, level, project: realpathSync(project), environment: io.environment };
}

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
    const place = parsePlace(args, io);
    const { client, level, project, environment } = place;
    const { profile, json } = args.values;
    const target = targetOf(place, args, io);
    const changes = planInstall(place, profile, target);
    if (!(await confirmChanges(changes, args, io))) return 1;
    const program = target.program.at(-1) ?? '';
    installHookProgram(program, shippedHook(), project);
    applyInstall(changes);
    const trust = client === 'codex' && profile === 'gate' ? await trustInstalled(place, target) : null;
    const { findings } = await inspectClient(client, { project, profile, environment });
    const left = findings.filter(({ severity }) => severity === 'opens');
    const files = changes.map(({ path }) => path);
    const lines = [
      files.length === 0 ? `${client} was installed already` : `installed for ${client}`,
      `the hook program is ${program}`,
      ...(trust === null ? [] : [TRUST_TEXTS[trust]]),
      ...left.map(({ message, remedy }) => `still open: ${message} ${remedy}`),
      `\`turnpike serve --hooks\` decides; \`turnpike agents uninstall ${client}\` restores the files`,
    ];
    await io.stdout.write(json ? jsonLine({ client, level, profile, files, trust, left }) : textOf(lines));
    return 0;
  },
});

const textOf = (lines: readonly string[]): string => lines.map((line) => `${escapeText(line)}\n`).join('');

const TRUST_TEXTS = {
  trusted: 'Codex trusts the hooks',
  no_program: 'codex is not on the path: start it and trust the hooks with /hooks, else it runs none of them',
  failed: 'Codex did not trust the hooks: start it and trust them with /hooks, else it runs none of them',
} as const;

/** @throws UsageError */
function targetOf(
  { client, level, project, environment }: InstallPlace,
  args: InstallArguments,
  io: Io,
): InstallTarget {
  const { actor, lane, role, case: case_id = CASE_DEFAULT } = args.values;
  return {
    client,
    program: [process.execPath, hookProgramPath(environment)],
    server: [process.execPath, realpathSync(packageFile('dist/src/interfaces/cli/main.js'))],
    home: homeOf(args, io).home,
    // The settings of the user are for every project.
    ...(level === 'project' ? { project } : {}),
    case: case_id,
    ...omitUndefined({ actor, lane, role, http: httpOf(client, args) }),
    tools: SERVER_TOOLS,
    plugin: shippedPlugin(),
  };
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** @throws UsageError */
function httpOf(client: Client, { values, usageError: error }: InstallArguments): InstallTarget['http'] {
  const { http: url, tokenEnv: tokenVariable, level } = values;
  if (url === undefined && tokenVariable === undefined) return undefined;
  if (url === undefined || tokenVariable === undefined) throw error('--http and --token-env go together');
  if (client !== 'claude-code') throw error(`${client} has no hooks by HTTP: omit --http`);
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
    throw error('--http takes an address that begins with http:// or https://');
  if (!VARIABLE.test(tokenVariable)) throw error('--token-env takes the name of a variable, and never a token');
  if (level === 'user') throw error('--http needs --level project, because it names the folder of the project');
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
    const place = parsePlace(args, io);
    const { client, level } = place;
    const changes = planUninstall(place);
    if (!(await confirmChanges(changes, args, io))) return 1;
    applyUninstall(changes);
    const files = changes.map(({ path }) => path);
    const done = files.length === 0 ? `${client} has nothing of Turnpike at this level` : `restored ${client}`;
    await io.stdout.write(args.values.json ? jsonLine({ client, level, files }) : textOf([done]));
    return 0;
  },
});

const ANSWER_CHARS_MAX = 16;

/**
 * Shows what an installation changes, and asks unless nothing changes or there is `--yes`.
 * @returns whether the files may be written
 * @throws UsageError without a terminal and without `--yes`
 */
async function confirmChanges(
  changes: readonly FileChange[],
  { values: { json, yes } }: ArgumentsOf<readonly [typeof YES_OPTION]>,
  io: Io,
): Promise<boolean> {
  for (const change of changes) await io.stdout.write(json ? jsonLine(changeFacts(change)) : changeText(change));
  if (yes || changes.length === 0) return true;
  if (!io.stdinIsTTY) throw usageError('there is no terminal to ask at, and nothing was changed: give --yes');
  await io.stderr.write('Change these files? [y/N] ');
  const isConfirmed = /^y(?:es)?$/i.test((await readLine(io)).trim());
  if (!isConfirmed) await io.stderr.writeLine('nothing was changed');
  return isConfirmed;
}

const changeFacts = ({ path, current, after }: FileChange) => ({
  path,
  change: after === null ? 'removed' : current === null ? 'created' : 'changed',
  diff: lineDiff(current ?? '', after ?? ''),
});

const changeText = ({ path, current, after }: FileChange): string => {
  const title = after === null ? `remove ${path}` : current === null ? `create ${path}` : `change ${path}`;
  return textOf([title, ...lineDiff(current ?? '', after ?? '').map((line) => `  ${line}`), '']);
};

async function readLine({ stdin }: Io): Promise<string> {
  let text = '';
  for await (const part of stdin as AsyncIterable<Buffer | string>) {
    text += part.toString();
    if (text.includes('\n') || text.length > ANSWER_CHARS_MAX) break;
  }
  return text.split('\n')[0] ?? '';
}

/** The lines that differ between two texts, as `diff -u` shows them, with three lines around them. Empty if none do. */
function lineDiff(before: string, after: string): readonly string[] {
  const [old, next] = [linesOf(before), linesOf(after)];
  const lines = alignSequences(old, next).map(({ a, b }) => {
    if (a === null) return `+${next[b ?? 0] ?? ''}`;
    return `${b === null ? '-' : ' '}${old[a] ?? ''}`;
  });
  return shorten(lines);
}

const linesOf = (text: string): readonly string[] =>
  text === ''
    ? []
    : text.endsWith('\n')
      ? text.slice(0, -1).split('\n')
      : [...text.split('\n'), '\\ no newline at end'];

const CONTEXT = 3;

/** Without the lines that are far from every change; none if there is no change. */
function shorten(lines: readonly string[]): readonly string[] {
  const near = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => !line.startsWith(' '));
  if (lines.every((line) => line.startsWith(' '))) return [];
  const shown: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (near(at)) shown.push(line);
    else if (at === 0 || near(at - 1)) shown.push('@@');
  }
  return shown;
}

/** `turnpike agents doctor`: whether a coding agent could act without a decision. */
export const agentsDoctor: CliCommand = defineCommand({
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
    const { profile, project = io.cwd, json } = args.values;
    const isNamed = args.operands.length > 0;
    const inspected = [];
    for (const client of isNamed ? [parseClient(args)] : CLIENTS)
      inspected.push({ client, ...(await inspectClient(client, { project, profile, environment: io.environment })) });
    const shown = inspected.filter(({ version }) => isNamed || version !== null);
    for (const { client, version, findings } of shown) {
      const lines = findings.flatMap(({ id, severity, message, remedy }) => [
        `  ${severity}  ${id}: ${message}`,
        `         ${remedy}`,
      ]);
      const text = [`${client} ${version ?? '(unknown version)'}`, ...(lines.length === 0 ? ['  ok'] : lines)];
      await io.stdout.write(json ? jsonLine({ client, version, profile, findings }) : textOf(text));
    }
    if (shown.length === 0 && !json) await io.stdout.write('no coding agent is on the path\n');
    return shown.some(({ findings }) => findings.some(({ severity }) => severity === 'opens')) ? 1 : 0;
  },
});
