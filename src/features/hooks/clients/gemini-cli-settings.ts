// The settings of Gemini CLI: settings.json, with comments. It stops a call only after code 2 with a message.

import type { Json, JsonObject } from '../../../core/contract/json.js';
import {
  type ClientFinding,
  END,
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
  type ReadSettings,
} from './judge-hooks.js';
import { folderIn } from './client-names.js';
import {
  below,
  managed,
  ofProject,
  ofUser,
  type ClientSettings,
  asCommand,
  BOTH_LEVELS,
  EditProblem,
  hooksEditor,
  serverEditor,
  without,
  withMember,
} from './client-settings.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords, wrappedLine } from './hook-command-line.js';
import { listIn, objectIn, readCommentedObject, textIn } from './read-settings.js';

const TIMEOUT_DEFAULT_MS = 60_000;

const HOOKS: HookForm = {
  client: 'gemini-cli',
  event: 'BeforeTool',
  checks: [
    SOME_TOOLS,
    otherCommand(isInstalledCommand),
    NOT_WRAPPED,
    lateTimeout(TIMEOUT_DEFAULT_MS, 1_000),
    [
      'hooks_disabled',
      'is in the list of disabled hooks',
      ({ handler }, settings) => {
        const names = settings.flatMap(({ settings: found }) => disabledNames(found));
        const command = textIn(handler, 'command');
        return names.includes(command) || names.includes(textIn(handler, 'name') || command);
      },
    ],
    otherMembers(['matcher', 'hooks', 'sequential'], () => ['type', 'command', 'timeout', 'name', 'description']),
  ],
  reported: [
    ['AfterTool', ...OUTCOMES],
    ['SessionStart', ...START],
    ['SessionEnd', ...END],
  ],
  // The switches of several versions: any of them may apply.
  switchedOff: ({ file, settings }) =>
    [
      objectIn(settings, 'hooksConfig')['enabled'],
      objectIn(settings, 'hooks')['enabled'],
      objectIn(settings, 'tools')['enableHooks'],
    ].includes(false)
      ? [`${file.path} switches hooks off.`, 'Remove that setting.']
      : null,
  // Gemini CLI ignores the settings of a folder that its user has not trusted.
  notesOf: (own, settings) =>
    findingIf(
      own.length > 0 && own.every(({ file }) => file.level === 'project') && !settings.some(trustsEveryFolder),
      note(
        'gemini-cli',
        'folder_trust',
        'The hook is in the settings of the project, which Gemini CLI ignores in a folder that is not trusted.',
        'Trust the folder, or run `turnpike agents install gemini-cli --level user`.',
      ),
    ),
  others: 'run',
};

const disabledNames = (settings: JsonObject): readonly Json[] =>
  ['hooksConfig', 'hooks'].flatMap((name) => listIn(objectIn(settings, name), 'disabled'));

const trustsEveryFolder = ({ settings }: ReadSettings): boolean =>
  objectIn(objectIn(settings, 'security'), 'folderTrust')['enabled'] === false;

const TOOL_PREFIX = 'mcp_turnpike_';

function judgeStrong(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const lists = settings
    .map(({ settings: found }) => objectIn(found, 'tools')['core'])
    .filter((core) => core !== undefined);
  const isRight = (core: Json): boolean =>
    Array.isArray(core) &&
    core.length > 0 &&
    (core as readonly Json[]).every((name) => typeof name === 'string' && name.startsWith(TOOL_PREFIX));
  if (lists.length > 0 && lists.every(isRight)) return [];
  return [
    opening(
      'gemini-cli',
      'native_tools',
      'tools.core does not name only tools of Turnpike (mcp_turnpike_...): native tools are left.',
      `${installRemedy('gemini-cli')} Give it --profile strong.`,
    ),
  ];
}

const SETTINGS_FILE = { levels: BOTH_LEVELS, userFile: 'settings.json', projectFile: '.gemini/settings.json' } as const;

const HOOKS_EDITOR = hooksEditor('gemini-cli', SETTINGS_FILE, (target) => {
  const handlers = (command: string): readonly JsonObject[] => [
    { type: 'command', command, timeout: CLIENT_TIMEOUT_S * 1_000 },
  ];
  const plain = handlers(commandLine(hookWords(target)));
  return {
    BeforeTool: { matcher: '*', hooks: handlers(wrappedLine(hookWords(target))) },
    AfterTool: { matcher: '*', hooks: plain },
    SessionStart: { hooks: plain },
    SessionEnd: { hooks: plain },
  };
});

/** Only tools of Turnpike's server. */
const TOOLS_EDITOR = serverEditor(SETTINGS_FILE, 'mcpServers', asCommand, {
  add: (settings, target) => {
    const tools = objectIn(settings, 'tools');
    if (tools['core'] !== undefined) throw new EditProblem('has tools.core already: remove it first');
    return { ...settings, tools: { ...tools, core: target.tools.map((name) => `${TOOL_PREFIX}${name}`) } };
  },
  remove: (settings) => {
    const tools = objectIn(settings, 'tools');
    const { core } = tools;
    const isOwn = Array.isArray(core) && core.every((name) => String(name).startsWith(TOOL_PREFIX));
    return isOwn ? withMember(settings, 'tools', without(tools, 'core')) : settings;
  },
});

export const GEMINI_CLI_SETTINGS: ClientSettings = {
  userFolder: (around) => `${folderIn(around, 'GEMINI_CLI_HOME') ?? around.userHome}/.gemini`,
  files: [
    ofUser('settings', 'settings.json'),
    ofProject('settings', '.gemini/settings.json'),
    managed(
      'settings',
      '/etc/gemini-cli/settings.json',
      '/Library/Application Support/GeminiCli/settings.json',
      'GEMINI_CLI_SYSTEM_SETTINGS_PATH',
    ),
  ],
  unhooked: {
    repository: [...below('.gemini', ['commands', 'skills', 'agents', 'extensions']), '.agents'],
    readsAbove: false,
    user: ({ userHome }, folder) => [
      ...below(folder, ['commands', 'skills', 'agents', 'extensions']),
      `${userHome}/.agents/skills`,
    ],
    members: ['mcpServers'],
  },
  readers: [['settings', readCommentedObject]],
  judgeGate: (_, settings) => judgeHooks(HOOKS, settings),
  judgeStrong: (_, settings) => judgeStrong(settings),
  editors: { gate: [HOOKS_EDITOR], strong: [TOOLS_EDITOR] },
};
