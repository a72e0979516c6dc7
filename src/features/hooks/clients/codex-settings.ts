// The settings of Codex: config.toml and hooks.json. It runs no hook that its user has not trusted, without a word
// about it; and no hook sees what a model types into a shell that a call has opened.

import { sha256 } from '../../../core/contract/hash.js';
import { type Json, type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import {
  type ClientFacts,
  type ClientFinding,
  findingIf,
  installRemedy,
  isInstalledCommand,
  judgeHooks,
  lateTimeout,
  NOT_WRAPPED,
  note,
  opening,
  otherCommand,
  otherMembers,
  OUTCOMES,
  SOME_TOOLS,
  START,
  type HookForm,
  type HookHandler,
  type ReadSettings,
} from './judge-hooks.js';
import { folderIn } from './client-names.js';
import {
  below,
  managed,
  ofProject,
  ofUser,
  type ClientSettings,
  BOTH_LEVELS,
  EditProblem,
  entriesFor,
  hooksEditor,
  serverWords,
  type Editor,
  type InstallTarget,
} from './client-settings.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords, wrappedLine } from './hook-command-line.js';
import { objectIn, readJsonObject, readToml } from './read-settings.js';

/** The time limit of a hook that states none, in seconds. */
const TIMEOUT_DEFAULT_S = 600;

const HOOKS: HookForm = {
  client: 'codex',
  event: 'PreToolUse',
  checks: [
    SOME_TOOLS,
    otherCommand(isInstalledCommand),
    NOT_WRAPPED,
    lateTimeout(TIMEOUT_DEFAULT_S, 1),
    otherMembers(
      ['matcher', 'hooks'],
      () => ['type', 'command', 'timeout', 'async', 'statusMessage'],
      (handler) => handler['async'] === true,
    ),
  ],
  judgeFurther: judgeTrust,
  reported: [
    ['PostToolUse', ...OUTCOMES],
    ['SessionStart', ...START],
  ],
  switchedOff: ({ file, settings }) =>
    file.kind === 'settings' && objectIn(settings, 'features')['hooks'] === false
      ? [`${file.path} has hooks = false in [features].`, 'Remove it.']
      : null,
  others: 'run',
};

/** What is wrong with the trust in a hook. That of the administrator needs none. */
function judgeTrust(found: HookHandler, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const { file, group, handler, place } = found;
  if (file.level === 'managed') return [];
  const state = settings
    .filter((one) => one.file.kind === 'settings' && one.file.level === 'user')
    .map((one) => objectIn(objectIn(one.settings, 'hooks'), 'state'))
    .map((one) => objectIn(one, codexTrustKey(file.path, 'PreToolUse', place)));
  const hash = state.map((one) => one['trusted_hash']).find((one) => one !== undefined);
  const remedy = `${installRemedy('codex')} Or trust the hook in Codex with /hooks.`;
  if (state.some((one) => one['enabled'] === false))
    return [opening('codex', 'hooks_disabled', `The hook in ${file.path} is switched off in config.toml.`, remedy)];
  if (hash === undefined)
    return [
      opening('codex', 'hook_untrusted', `Codex does not run the hook in ${file.path}: it is not trusted.`, remedy),
    ];
  if (hash !== codexTrustHash('PreToolUse', group['matcher'], handler))
    return [opening('codex', 'hook_edited', `The hook in ${file.path} was changed after it was trusted.`, remedy)];
  return [];
}

/**
 * The key of a hook in `hooks.state` of config.toml: its file, its event, and its place in that file. Compared with the
 * answers of the app-server of Codex 0.169, like the hash.
 */
export const codexTrustKey = (path: string, event: string, [group, handler]: readonly [number, number]): string =>
  `${path}:${snake(event)}:${group}:${handler}`;

/** The hash that Codex compares with `trusted_hash` before it runs a hook. */
export function codexTrustHash(event: string, matcher: Json | undefined, handler: JsonObject): string {
  const hook = { ...handler, async: handler['async'] ?? false, timeout: handler['timeout'] ?? TIMEOUT_DEFAULT_S };
  const group = { event_name: snake(event), hooks: [hook], ...(typeof matcher === 'string' ? { matcher } : {}) };
  return `sha256:${sha256(canonicalJson(group))}`;
}

const snake = (event: string): string => event.replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();

function judgeGate({ project }: ClientFacts, read: readonly ReadSettings[]): readonly ClientFinding[] {
  const settings = settingsFor(project, read);
  const isManagedOnly = (): boolean =>
    read.some(
      ({ file, settings: found }) => file.kind === 'requirements' && found['allow_managed_hooks_only'] === true,
    );
  const withHooks = settings.filter(({ file }) => file.kind !== 'requirements');
  return [...judgeShell(settings), ...judgeHooks({ ...HOOKS, isManagedOnly }, withHooks)];
}

/** Codex ignores the settings of a project that its user has not trusted. */
function settingsFor(project: string, read: readonly ReadSettings[]): readonly ReadSettings[] {
  const isTrusted = read.some(
    ({ file, settings }) =>
      file.kind === 'settings' &&
      file.level === 'user' &&
      objectIn(objectIn(settings, 'projects'), project)['trust_level'] === 'trusted',
  );
  return read.filter(({ file }) => file.level !== 'project' || isTrusted);
}

const configsIn = (settings: readonly ReadSettings[]): readonly JsonObject[] =>
  settings.filter(({ file }) => file.kind === 'settings').map(({ settings: found }) => found);

function judgeShell(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const values = configsIn(settings).flatMap((config) => {
    const profiles = objectIn(config, 'profiles');
    return [config, ...Object.keys(profiles).map((name) => objectIn(profiles, name))].map(
      (one) => objectIn(one, 'features')['shell_tool'],
    );
  });
  if (values.includes(false) && values.every((value) => value === false || value === undefined)) return [];
  return [
    opening(
      'codex',
      'shell_tool',
      'The shell tool is on: no hook sees what the model writes into a shell that it has opened (write_stdin).',
      'Set `shell_tool = false` in [features] of config.toml, and start Codex without `--enable shell_tool`.',
    ),
  ];
}

function judgeStrong({ project }: ClientFacts, read: readonly ReadSettings[]): readonly ClientFinding[] {
  const settings = settingsFor(project, read);
  const modes = configsIn(settings).flatMap((config) => config['sandbox_mode'] ?? []);
  const isReadOnly = modes.length > 0 && modes.every((mode) => mode === 'read-only');
  return [
    ...judgeShell(settings),
    ...findingIf(
      !isReadOnly,
      opening(
        'codex',
        'native_tools',
        'The sandbox is not read-only: apply_patch can change files.',
        'Set `sandbox_mode = "read-only"` in config.toml.',
      ),
    ),
    note(
      'codex',
      'not_wholly',
      'Codex cannot switch off all of its own tools: view_image and tool_search stay, and apply_patch is offered and fails.',
      'Use the profile gate with it, or accept that it reads images.',
    ),
  ];
}

const LATER_EVENTS = ['PostToolUse', 'SessionStart', 'SessionEnd', 'SubagentStop'] as const;

const HOOKS_EDITOR = hooksEditor(
  'codex',
  { levels: BOTH_LEVELS, userFile: 'hooks.json', projectFile: '.codex/hooks.json' },
  (target) => {
    const group = (command: string): JsonObject => ({
      hooks: [{ type: 'command', command, timeout: CLIENT_TIMEOUT_S }],
    });
    const [call, later] = codexCommands(target);
    return { PreToolUse: group(call), ...entriesFor(LATER_EVENTS, group(later)) };
  },
);

/** The commands that Codex must trust: that of a call, and that of the other events. */
export const codexCommands = (target: InstallTarget): readonly [call: string, later: string] => [
  wrappedLine(hookWords(target)),
  commandLine(hookWords(target)),
];

/** What is added to config.toml besides `shell_tool = false` in `[features]`. */
interface TomlLines {
  /** A line before the first table. */
  readonly top: string | null;
  /** A table of its own. */
  readonly block: string | null;
}

const MARK = ' # turnpike';
const BLOCK = /\n?# turnpike: begin\n(?:[^\n]*\n)*?# turnpike: end\n/g;

const tomlEditor = (linesOf: (target: InstallTarget) => TomlLines): Editor => ({
  levels: BOTH_LEVELS,
  userFile: 'config.toml',
  projectFile: '.codex/config.toml',
  mode: 0o600,
  add: (text, target) => addToml(text ?? '', linesOf(target)),
  remove: (text) => {
    const left = text
      .replace(BLOCK, '')
      .split('\n')
      .filter((line) => !line.endsWith(MARK))
      .join('\n');
    return left.trim() === '' ? null : left;
  },
});

/** No shell tool: no hook sees what is written into a shell that a call has opened. */
const SHELL_EDITOR = tomlEditor(() => ({ top: null, block: null }));

/** A read-only sandbox too, and the server of Turnpike. */
const SERVER_EDITOR = tomlEditor((target) => ({
  top: 'sandbox_mode = "read-only"',
  block: serverTable(serverWords(target)),
}));

function serverTable([command = '', ...args]: readonly string[]): string {
  const list = args.map(tomlString).join(', ');
  return `[mcp_servers.turnpike]\ncommand = ${tomlString(command)}\nargs = [${list}]`;
}

/** JSON and TOML escape these characters in the same way. */
const tomlString = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007F');

const SHELL_OFF = 'shell_tool = false';
const FEATURES_HEADER = /^[ \t]*\[[ \t]*features[ \t]*\][ \t]*(?:#[^\n]*)?$/m;

/**
 * Adds lines as text, so that the rest keeps its form, and verifies what they mean.
 * @throws EditProblem if the file is not understood, or has other values already
 */
function addToml(text: string, { top, block }: TomlLines): string {
  const before = readToml(text);
  if (before === null) throw new EditProblem('is not TOML that this version understands: correct or simplify it');
  const features = objectIn(before, 'features');
  const topName = top?.split(' ')[0] ?? '';
  if (features['shell_tool'] !== undefined && features['shell_tool'] !== false)
    throw new EditProblem('switches the shell tool on: set `shell_tool = false` in [features] yourself');
  const present = before[topName];
  if (top !== null && present !== undefined && (typeof present !== 'string' || `${topName} = "${present}"` !== top))
    throw new EditProblem(`has another ${topName}: set \`${top}\` yourself`);
  if (block !== null && Object.hasOwn(objectIn(before, 'mcp_servers'), 'turnpike'))
    throw new EditProblem('has a server "turnpike" already: remove it first');
  const needsShell = features['shell_tool'] === undefined;
  const hasHeader = FEATURES_HEADER.test(text);
  const tables = [needsShell && !hasHeader ? `[features]\n${SHELL_OFF}` : null, block].filter((one) => one !== null);
  let after = text;
  if (needsShell && hasHeader) after = after.replace(FEATURES_HEADER, (header) => `${header}\n${SHELL_OFF}${MARK}`);
  if (top !== null && present === undefined) after = `${top}${MARK}\n${after}`;
  if (tables.length > 0) {
    const gap = after === '' ? '' : after.endsWith('\n') ? '\n' : '\n\n';
    after = `${after}${gap}# turnpike: begin\n${tables.join('\n')}\n# turnpike: end\n`;
  }
  verifyToml(before, after);
  return after;
}

/** @throws EditProblem if the lines do not mean what they should, as after a header that is part of a text */
function verifyToml(before: JsonObject, text: string): void {
  const after = readToml(text);
  const isRight = after !== null && objectIn(after, 'features')['shell_tool'] === false;
  const others = (config: JsonObject): string =>
    canonicalJson(
      Object.fromEntries(
        Object.entries(config).filter(([name]) => !['features', 'mcp_servers', 'sandbox_mode'].includes(name)),
      ),
    );
  if (!isRight || others(after) !== others(before))
    throw new EditProblem('has a form in which lines cannot be added: set `shell_tool = false` in [features] yourself');
}

export const CODEX_SETTINGS: ClientSettings = {
  userFolder: (around) => folderIn(around, 'CODEX_HOME') ?? `${around.userHome}/.codex`,
  files: [
    ofUser('settings', 'config.toml'),
    ofUser('hooks', 'hooks.json'),
    ofProject('settings', '.codex/config.toml'),
    ofProject('hooks', '.codex/hooks.json'),
    managed('settings', '/etc/codex/config.toml'),
    managed('requirements', '/etc/codex/requirements.toml'),
  ],
  unhooked: {
    repository: [...below('.codex', ['prompts', 'skills', 'agents']), '.agents'],
    readsAbove: true,
    user: ({ userHome }, folder) => [
      ...below(folder, ['prompts', 'skills', 'agents']),
      `${userHome}/.agents/skills`,
      '/etc/codex/skills',
    ],
    members: ['mcp_servers', 'plugins'],
  },
  readers: [
    ['settings', readToml],
    ['hooks', readJsonObject],
    ['requirements', readToml],
  ],
  judgeGate,
  judgeStrong,
  editors: { gate: [HOOKS_EDITOR, SHELL_EDITOR], strong: [SERVER_EDITOR] },
};
