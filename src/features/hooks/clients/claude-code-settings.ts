// The settings of Claude Code: settings.json of several levels. A hook that fails stops a call only with `onFailure`.

import type { JsonObject } from '../../../core/contract/json.js';
import {
  type ClientFacts,
  type ClientFinding,
  END,
  findingIf,
  installRemedy,
  isInstalledCommand,
  judgeHooks,
  note,
  opening,
  otherCommand,
  otherMembers,
  OUTCOMES,
  SOME_TOOLS,
  START,
  type HookForm,
  type ReadSettings,
} from './judge-hooks.js';
import { folderIn, type ClientSurroundings } from './client-names.js';
import {
  below,
  managed,
  ofProject,
  ofUser,
  type ClientSettings,
  type FilePlace,
  asCommand,
  BOTH_LEVELS,
  entriesFor,
  hooksEditor,
  jsonEditor,
  serverEditor,
  type Editor,
  type InstallTarget,
} from './client-settings.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords } from './hook-command-line.js';
import { listIn, objectIn, readJsonObject } from './read-settings.js';

/** Next to the folder of the user, or in the folder that the environment names. */
const userServers: FilePlace = (around) => {
  const root = folderIn(around, 'CLAUDE_CONFIG_DIR') ?? around.userHome;
  return { kind: 'servers', level: 'user', path: `${root}/.claude.json`, root };
};

const MANAGED_DARWIN = '/Library/Application Support/ClaudeCode';
const USER_FOLDERS = ['commands', 'skills', 'agents', 'workflows'];

/** Its plugins are named in settings; their folder has copies of whole marketplaces. */
const userItems = ({ platform }: ClientSurroundings, folder: string): readonly string[] => [
  ...below(folder, USER_FOLDERS),
  ...below(`${platform === 'darwin' ? MANAGED_DARWIN : '/etc/claude-code'}/.claude`, USER_FOLDERS),
];

/** The first version with `onFailure`. Older ones ignore it, and execute a call whose hook fails. */
const VERSION_LEAST = '2.1.295';
const COMMAND_MEMBERS = ['type', 'command', 'timeout', 'onFailure', 'statusMessage'];
const HTTP_MEMBERS = ['type', 'url', 'timeout', 'onFailure', 'statusMessage', 'headers', 'allowedEnvVars'];

const isHttp = (handler: JsonObject): boolean => handler['type'] === 'http';

const HTTP_UNCOUNTED = note(
  'claude-code',
  'http_uncounted',
  'Its hook uses HTTP: calls that it denies while the service is away are counted nowhere.',
  'Install the hook as a command, which counts them, where nothing keeps you from it.',
);

const HOOKS: HookForm = {
  client: 'claude-code',
  event: 'PreToolUse',
  checks: [
    SOME_TOOLS,
    ['hook_fails_open', 'has no onFailure "block"', ({ handler }) => handler['onFailure'] !== 'block'],
    otherCommand((found) => isHttp(found.handler) || isInstalledCommand(found)),
    otherMembers(['matcher', 'hooks'], (handler) => (isHttp(handler) ? HTTP_MEMBERS : COMMAND_MEMBERS)),
  ],
  reported: [
    ['PostToolUse', ...OUTCOMES],
    ['PostToolUseFailure', 'failures_unreported', 'outcomes of failed calls stay unknown'],
    ['SessionStart', START[0], `${START[1]}, and never if that uses HTTP`],
    ['SessionEnd', ...END],
  ],
  isManagedOnly: (settings) =>
    settings.some(({ file, settings: found }) => file.level === 'managed' && found['allowManagedHooksOnly'] === true),
  switchedOff: ({ file, settings }) =>
    settings['disableAllHooks'] === undefined || settings['disableAllHooks'] === false
      ? null
      : [`${file.path} has disableAllHooks.`, 'Remove disableAllHooks from it.'],
  notesOf: (own) =>
    findingIf(
      own.some(({ handler }) => isHttp(handler)),
      HTTP_UNCOUNTED,
    ),
  others: 'all',
};

function judgeVersion({ version, profile }: ClientFacts): readonly ClientFinding[] {
  if (profile === 'strong' || (version !== null && isAtLeast(version, VERSION_LEAST))) return [];
  const remedy = `Install Claude Code ${VERSION_LEAST} or later.`;
  return [
    version === null
      ? opening('claude-code', 'version_unknown', 'The version of Claude Code could not be found out.', remedy)
      : opening('claude-code', 'version', `Claude Code ${version} executes a call whose hook fails.`, remedy),
  ];
}

/** Whether a version is at least another one; false for a version that is no three numbers. */
export function isAtLeast(version: string, least: string): boolean {
  const [own, other] = [version, least].map((text) => /^(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number));
  if (own === undefined || other === undefined) return false;
  const at = own.findIndex((number, i) => number !== other[i]);
  // A pre-release of the version itself is older.
  if (at < 0) return !/^\d+\.\d+\.\d+-/.test(version);
  return (own[at] ?? 0) > (other[at] ?? 0);
}

/** The tools of its own that the strong profile denies. */
const TOOLS: readonly string[] = [
  'Agent',
  'Bash',
  'BashOutput',
  'Edit',
  'Glob',
  'Grep',
  'KillShell',
  'LS',
  'Monitor',
  'MultiEdit',
  'NotebookEdit',
  'NotebookRead',
  'PowerShell',
  'Read',
  'Skill',
  'Task',
  'WebFetch',
  'WebSearch',
  'Write',
];

function judgeStrong({ files }: ClientFacts, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const denied = settings.flatMap(({ settings: found }) => listIn(objectIn(found, 'permissions'), 'deny'));
  const left = TOOLS.filter((tool) => !denied.includes(tool));
  const servers = files.find(({ kind, level, text }) => kind === 'servers' && level === 'project' && text !== null);
  const found = readJsonObject(servers?.text ?? '');
  const remedy = `${installRemedy('claude-code')} Give it --profile strong.`;
  return [
    ...findingIf(
      left.length > 0,
      opening(
        'claude-code',
        'native_tools',
        `The settings deny not every native tool: ${left.join(', ')} are left.`,
        remedy,
      ),
    ),
    ...findingIf(
      !Object.hasOwn(objectIn(found ?? {}, 'mcpServers'), 'turnpike'),
      note('claude-code', 'server_missing', 'No .mcp.json of the project has the server "turnpike".', remedy),
    ),
    note(
      'claude-code',
      'tools_flag',
      'Settings deny tools by their names; a later version may have others.',
      'Start it as `claude --tools "" --strict-mcp-config --mcp-config .mcp.json`, which leaves only tools of that file.',
    ),
  ];
}

const SETTINGS_FILE = { levels: BOTH_LEVELS, userFile: 'settings.json', projectFile: '.claude/settings.json' } as const;
/** Events that HTTP can answer. The client must be checked by a command, on this machine. */
const CALL_EVENTS = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure'] as const;
const SESSION_EVENTS = ['SessionStart', 'SessionEnd', 'SubagentStop'] as const;

const HOOKS_EDITOR = hooksEditor('claude-code', SETTINGS_FILE, (target) => {
  const command = commandHandler(target);
  const call = target.http === undefined ? command : httpHandler(target, target.http);
  return { ...entriesFor(CALL_EVENTS, { hooks: [call] }), ...entriesFor(SESSION_EVENTS, { hooks: [command] }) };
});

const commandHandler = (target: InstallTarget): JsonObject => ({
  type: 'command',
  command: commandLine(hookWords(target)),
  timeout: CLIENT_TIMEOUT_S,
  onFailure: 'block',
});

function httpHandler(target: InstallTarget, { url, tokenVariable }: NonNullable<InstallTarget['http']>): JsonObject {
  const query = [
    ['project', target.project],
    ['case', target.case],
    ['lane', target.lane],
  ].flatMap(([name = '', value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]));
  return {
    type: 'http',
    url: `${url.replace(/\/+$/, '')}/api/v1/hooks/claude-code?${query.join('&')}`,
    timeout: CLIENT_TIMEOUT_S,
    onFailure: 'block',
    headers: { Authorization: `Bearer $${tokenVariable}` },
    allowedEnvVars: [tokenVariable],
  };
}

/** Native tools denied by name. */
const TOOLS_EDITOR: Editor = jsonEditor(
  { ...SETTINGS_FILE, levels: ['project'] },
  {
    add: (settings) => {
      const permissions = objectIn(settings, 'permissions');
      const present = listIn(permissions, 'deny');
      const added = TOOLS.filter((tool) => !present.includes(tool));
      return { ...settings, permissions: { ...permissions, deny: [...present, ...added] } };
    },
    // A tool that is denied by name stays denied: the user may have denied it too.
    remove: (settings) => settings,
  },
);

export const CLAUDE_CODE_SETTINGS: ClientSettings = {
  userFolder: (around) => folderIn(around, 'CLAUDE_CONFIG_DIR') ?? `${around.userHome}/.claude`,
  files: [
    ofUser('settings', 'settings.json'),
    userServers,
    ofProject('settings', '.claude/settings.json'),
    ofProject('servers', '.mcp.json'),
    ofProject('settings', '.claude/settings.local.json', 'local'),
    managed('settings', '/etc/claude-code/managed-settings.json', `${MANAGED_DARWIN}/managed-settings.json`),
    managed('servers', '/etc/claude-code/managed-mcp.json', `${MANAGED_DARWIN}/managed-mcp.json`),
  ],
  unhooked: {
    repository: below('.claude', ['commands', 'skills', 'agents', 'plugins', 'workflows']),
    readsAbove: true,
    user: userItems,
    members: ['mcpServers', 'enabledPlugins'],
  },
  readers: [['settings', readJsonObject]],
  judgeProgram: judgeVersion,
  judgeGate: (_, settings) => judgeHooks(HOOKS, settings),
  judgeStrong,
  editors: {
    gate: [HOOKS_EDITOR],
    strong: [
      TOOLS_EDITOR,
      serverEditor({ levels: ['project'], userFile: '', projectFile: '.mcp.json' }, 'mcpServers', asCommand),
    ],
  },
};
