// The settings of opencode: opencode.json with comments, and a plugin. A plugin that fails to load stops nothing.

import { sha256 } from '../../../core/contract/hash.js';
import { isJsonObject, type Json } from '../../../core/contract/json.js';
import {
  type ClientFacts,
  type ClientFinding,
  type SettingsFile,
  type SettingsKind,
  findingIf,
  installRemedy,
  note,
  opening,
  type ReadSettings,
} from './judge-hooks.js';
import { folderIn } from './client-names.js';
import {
  below,
  ofProject,
  ofUser,
  type ClientSettings,
  BOTH_LEVELS,
  EditProblem,
  serverEditor,
  SHARED_MODE,
  without,
  type Editor,
} from './client-settings.js';
import { commandLine, findHookCommand, hookWords } from './hook-command-line.js';
import { listIn, objectIn, readCommentedObject, readJsonObject, textIn } from './read-settings.js';

function judgeGate(facts: ClientFacts, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const plugins = facts.files.filter(({ kind }) => kind === 'plugin').filter(isThere);
  return [
    ...judgePlugins(facts, plugins),
    ...plugins.flatMap((plugin) => [...judgeOptions(facts, plugin), ...judgeDependency(facts, plugin)]),
    ...findingIf(
      facts.environment['OPENCODE_PURE'] !== undefined,
      opening('opencode', 'plugins_disabled', 'OPENCODE_PURE keeps plugins from loading.', 'Remove the variable.'),
    ),
    ...settings
      .filter(({ settings: found }) => listIn(found, 'plugin').length > 0)
      .map(({ file }) =>
        opening(
          'opencode',
          'other_plugins',
          `${file.path} loads other plugins: they can change the input of a call after it was decided.`,
          'Remove them: no setting keeps a plugin from changing inputs.',
        ),
      ),
  ];
}

const isThere = ({ text, problem }: SettingsFile): boolean => text !== null || problem !== null;

function judgePlugins({ plugin_sha256 }: ClientFacts, plugins: readonly SettingsFile[]): readonly ClientFinding[] {
  if (plugins.length === 0)
    return [opening('opencode', 'plugin_missing', 'The plugin of Turnpike is not there: no call is decided.')];
  // Two plugins would decide each call twice, and a changed one may be the one that opencode loads.
  return plugins
    .filter(({ text }) => text === null || sha256(text) !== plugin_sha256)
    .map(({ path, problem }) =>
      opening(
        'opencode',
        'plugin_changed',
        `${path} ${problem ?? 'is not the plugin of this version of Turnpike'}: it may fail to load, and then stops nothing.`,
      ),
    );
}

/** The plugin runs the command that its options name, and believes it. */
function judgeOptions({ files }: ClientFacts, plugin: SettingsFile): readonly ClientFinding[] {
  const options = files.find(({ kind, level }) => kind === 'plugin_options' && level === plugin.level);
  const found = options?.text == null ? null : readJsonObject(options.text);
  const words = found?.['hook'];
  if (found !== null && Array.isArray(words) && textIn(found, 'home') !== '' && isHook(words)) return [];
  if (Array.isArray(words))
    return [
      opening(
        'opencode',
        'hook_command',
        `The command in ${options?.path ?? ''} is not in the form that the installation writes: it may allow every call.`,
      ),
    ];
  return [note('opencode', 'plugin_options', 'The options of the plugin are missing: it denies every call.')];
}

const isHook = (words: readonly Json[]): boolean =>
  words.every((word) => typeof word === 'string') && findHookCommand(commandLine(words), 'opencode') !== null;

/** Without its package, opencode waits for the installation of it, without end where there is no network. */
function judgeDependency({ files, version }: ClientFacts, plugin: SettingsFile): readonly ClientFinding[] {
  const dependency = files.find(({ kind, level }) => kind === 'dependency' && level === plugin.level);
  const found = dependency?.text == null ? null : readJsonObject(dependency.text);
  if (found !== null && (version === null || found['version'] === version)) return [];
  return [
    note(
      'opencode',
      'dependencies',
      `The package @opencode-ai/plugin${version === null ? '' : ` ${version}`} is not in the folder of the plugin: opencode waits for it at its start.`,
      'Start opencode once with a network, or install the package there.',
    ),
  ];
}

function judgeStrong(settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const found = settings.map(({ settings: one }) => one);
  const permissions = found.flatMap((one) => one['permission'] ?? []);
  const others = found.flatMap((one) => ['agent', 'mode'].flatMap((name) => Object.values(objectIn(one, name))));
  const overrides = others.filter(
    (agent) => isJsonObject(agent) && (agent['permission'] !== undefined || agent['tools'] !== undefined),
  );
  if (permissions.length > 0 && permissions.every(isRight) && overrides.length === 0) return [];
  return [
    opening(
      'opencode',
      'native_tools',
      'permission does not deny everything but tools of Turnpike ("*": "deny", "turnpike_*": "allow"): native tools are left.',
      `${installRemedy('opencode')} Give it --profile strong, and remove permissions and tools of single agents.`,
    ),
  ];
}

const isRight = (permission: Json): boolean =>
  isJsonObject(permission) &&
  permission['*'] === 'deny' &&
  Object.keys(permission).every((key) => permission[key] === 'deny' || key.startsWith('turnpike_'));

const PERMISSION = { '*': 'deny', 'turnpike_*': 'allow' } as const;

/** Only tools of Turnpike's server. */
const TOOLS_EDITOR = serverEditor(
  { levels: BOTH_LEVELS, userFile: 'opencode.json', projectFile: 'opencode.json' },
  'mcp',
  (words) => ({ type: 'local', command: words, enabled: true }),
  {
    add: (settings) => {
      if (settings['permission'] !== undefined) throw new EditProblem('has permissions already: remove them first');
      return { ...settings, permission: PERMISSION };
    },
    remove: (settings) => {
      const isOwn = JSON.stringify(settings['permission']) === JSON.stringify(PERMISSION);
      return isOwn ? without(settings, 'permission') : settings;
    },
  },
);

/** A file next to the other plugins that has nothing but what an installation writes. */
const pluginEditor = (name: string, textOf: Editor['add']): Editor => ({
  levels: BOTH_LEVELS,
  userFile: `plugins/${name}`,
  projectFile: `.opencode/plugins/${name}`,
  mode: SHARED_MODE,
  add: textOf,
  remove: () => null,
});

const FILES: readonly (readonly [SettingsKind, string])[] = [
  ['settings', 'opencode.json'],
  ['settings', 'opencode.jsonc'],
  ['plugin', 'plugins/turnpike.js'],
  ['plugin_options', 'plugins/turnpike.json'],
  ['dependency', 'node_modules/@opencode-ai/plugin/package.json'],
];
const FOLDERS = ['command', 'agent', 'skill', 'mode', 'plugin', 'tool'].flatMap((name) => [name, `${name}s`]);

export const OPENCODE_SETTINGS: ClientSettings = {
  userFolder: (around) => `${folderIn(around, 'XDG_CONFIG_HOME') ?? `${around.userHome}/.config`}/opencode`,
  files: [
    ...FILES.map(([kind, name]) => ofUser(kind, name)),
    ofProject('settings', 'opencode.json'),
    ofProject('settings', 'opencode.jsonc'),
    ...FILES.map(([kind, name]) => ofProject(kind, `.opencode/${name}`)),
  ],
  unhooked: {
    repository: [...below('.opencode', FOLDERS), '.claude/skills', '.agents'],
    readsAbove: true,
    user: ({ userHome }, folder) => [
      ...below(folder, FOLDERS),
      ...below(`${userHome}/.opencode`, FOLDERS),
      ...below(userHome, ['.claude/skills', '.agents/skills']),
    ],
    members: ['mcp', 'command', 'agent', 'formatter', 'lsp'],
  },
  readers: [['settings', readCommentedObject]],
  judgeGate,
  judgeStrong: (_, settings) => judgeStrong(settings),
  editors: {
    gate: [
      pluginEditor('turnpike.js', (_text, { plugin }) => plugin),
      pluginEditor(
        'turnpike.json',
        (_text, target) => `${JSON.stringify({ home: target.home, hook: hookWords(target) }, null, 2)}\n`,
      ),
    ],
    strong: [TOOLS_EDITOR],
  },
};
