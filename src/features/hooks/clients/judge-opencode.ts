// opencode: what lets a call pass without a decision. Its hook is a plugin; one that fails to load stops nothing.

import { sha256 } from '../../../core/contract/hash.js';
import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import { noteFinding, bypassFinding, type ClientFacts, type ClientFinding, type SettingsFile } from './client-facts.js';
import { commandLine, findHookCommand } from './hook-command-line.js';
import { installRemedy, readSettings, versionFindings } from './findings.js';
import { objectIn, textIn, type ReadSettings } from './hook-handlers.js';
import { readCommentedObject, readJsonObject } from './read-commented-json.js';

export function judgeOpencode(facts: ClientFacts): readonly ClientFinding[] {
  const files = facts.files.filter(({ kind }) => kind === 'settings');
  const { settings, findings } = readSettings(facts, files, readCommentedObject);
  return [
    ...findings,
    ...(facts.profile === 'gate' ? judgeGate(facts, settings) : judgeStrong(settings)),
    ...versionFindings(facts),
  ];
}

function judgeGate(facts: ClientFacts, settings: readonly ReadSettings[]): readonly ClientFinding[] {
  const plugins = facts.files.filter(({ kind }) => kind === 'plugin').filter(isThere);
  return [
    ...judgePlugins(facts, plugins),
    ...plugins.flatMap((plugin) => [...judgeOptions(facts, plugin), ...judgeDependency(facts, plugin)]),
    ...(facts.environment['OPENCODE_PURE'] === undefined
      ? []
      : [
          bypassFinding(
            'opencode.plugins_disabled',
            'OPENCODE_PURE keeps plugins from loading.',
            'Remove the variable.',
          ),
        ]),
    ...settings
      .filter(({ settings: found }) => Array.isArray(found['plugin']) && found['plugin'].length > 0)
      .map(({ file }) =>
        bypassFinding(
          'opencode.other_plugins',
          `${file.path} loads other plugins: they can change the input of a call after it was decided.`,
          'Remove them: no setting keeps a plugin from changing inputs.',
        ),
      ),
  ];
}

const isThere = ({ text, problem }: SettingsFile): boolean => text !== null || problem !== null;

function judgePlugins({ plugin_sha256 }: ClientFacts, plugins: readonly SettingsFile[]): readonly ClientFinding[] {
  if (plugins.length === 0)
    return [
      bypassFinding(
        'opencode.plugin_missing',
        'The plugin of Turnpike is not there: no call is decided.',
        installRemedy('opencode'),
      ),
    ];
  // Two plugins would decide each call twice, and a changed one may be the one that opencode loads.
  return plugins
    .filter(({ text }) => text === null || sha256(text) !== plugin_sha256)
    .map(({ path, problem }) =>
      bypassFinding(
        'opencode.plugin_changed',
        `${path} ${problem ?? 'is not the plugin of this version of Turnpike'}: it may fail to load, and then stops nothing.`,
        installRemedy('opencode'),
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
      bypassFinding(
        'opencode.hook_command',
        `The command in ${options?.path ?? ''} is not in the form that the installation writes: it may allow every call.`,
        installRemedy('opencode'),
      ),
    ];
  return [
    noteFinding(
      'opencode.plugin_options',
      'The options of the plugin are missing: it denies every call.',
      installRemedy('opencode'),
    ),
  ];
}

const isHook = (words: readonly Json[]): boolean =>
  words.every((word) => typeof word === 'string') && findHookCommand(commandLine(words), 'opencode') !== null;

/** Without its package, opencode waits for the installation of it, without end where there is no network. */
function judgeDependency({ files, version }: ClientFacts, plugin: SettingsFile): readonly ClientFinding[] {
  const dependency = files.find(({ kind, level }) => kind === 'dependency' && level === plugin.level);
  const found = dependency?.text == null ? null : readJsonObject(dependency.text);
  if (found !== null && (version === null || found['version'] === version)) return [];
  return [
    noteFinding(
      'opencode.dependencies',
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
    bypassFinding(
      'opencode.native_tools',
      'permission does not deny everything but tools of Turnpike ("*": "deny", "turnpike_*": "allow"): native tools are left.',
      `${installRemedy('opencode')} Give it --profile strong, and remove permissions and tools of single agents.`,
    ),
  ];
}

const isRight = (permission: Json): boolean =>
  isJsonObject(permission) &&
  permission['*'] === 'deny' &&
  Object.keys(permission).every((key) => isOwnOr(permission, key));

const isOwnOr = (permission: JsonObject, key: string): boolean =>
  permission[key] === 'deny' || key.startsWith('turnpike_');
