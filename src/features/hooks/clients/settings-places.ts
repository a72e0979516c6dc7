// The files that clients read their settings from, on Linux and macOS.

import type { Client } from '../hook-event.js';
import type { SettingsKind, SettingsLevel, SettingsPlace } from './client-facts.js';

/** Where a client runs. */
export interface ClientSurroundings {
  /** The folder of the project, an absolute path. */
  readonly project: string;
  /** The home folder of the user. */
  readonly userHome: string;
  /** The name of the system as Node gives it. */
  readonly platform: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The files that a client reads, those of a wider level first. */
export const settingsPlaces = (client: Client, around: ClientSurroundings): readonly SettingsPlace[] =>
  PLACES[client](around);

/** The folder of the settings of the user. */
export const userFolder = (client: Client, { userHome, environment: env }: ClientSurroundings): string => {
  switch (client) {
    case 'claude-code':
      return absolute(env['CLAUDE_CONFIG_DIR']) ?? `${userHome}/.claude`;
    case 'codex':
      return absolute(env['CODEX_HOME']) ?? `${userHome}/.codex`;
    case 'gemini-cli':
      return `${absolute(env['GEMINI_CLI_HOME']) ?? userHome}/.gemini`;
    case 'opencode':
      return `${absolute(env['XDG_CONFIG_HOME']) ?? `${userHome}/.config`}/opencode`;
    case 'cline':
      return `${userHome}/.cline`;
    case 'cursor':
      return `${userHome}/.cursor`;
  }
};

/** The folder of the user for files of programs, in which the hook program is. */
export const dataFolder = ({ userHome, environment }: Pick<ClientSurroundings, 'userHome' | 'environment'>): string =>
  `${absolute(environment['XDG_DATA_HOME']) ?? `${userHome}/.local/share`}/turnpike`;

const absolute = (path: string | undefined): string | undefined => (path?.startsWith('/') === true ? path : undefined);

const placesIn = (root: string, level: SettingsLevel, files: readonly (readonly [SettingsKind, string])[]) =>
  files.map(([kind, name]): SettingsPlace => ({ kind, level, path: `${root}/${name}`, root }));

/** Files of the user may be links to anywhere in the home folder. */
const userPlaces = (
  client: Client,
  around: ClientSurroundings,
  files: readonly (readonly [SettingsKind, string])[],
) => {
  const folder = userFolder(client, around);
  const root = folder.startsWith(`${around.userHome}/`) ? around.userHome : folder;
  return placesIn(folder, 'user', files).map((place) => ({ ...place, root }));
};

const managed = (kind: SettingsKind, path: string): SettingsPlace => ({ kind, level: 'managed', path, root: '/' });

/** Next to the folder of the user, or in the folder that the environment names. */
const claudeServers = ({ userHome, environment: env }: ClientSurroundings): SettingsPlace => {
  const root = absolute(env['CLAUDE_CONFIG_DIR']) ?? userHome;
  return { kind: 'servers', level: 'user', path: `${root}/.claude.json`, root };
};

const PLACES: Readonly<Record<Client, (around: ClientSurroundings) => readonly SettingsPlace[]>> = {
  'claude-code': (around) => [
    ...userPlaces('claude-code', around, [['settings', 'settings.json']]),
    claudeServers(around),
    ...placesIn(around.project, 'project', [
      ['settings', '.claude/settings.json'],
      ['servers', '.mcp.json'],
    ]),
    ...placesIn(around.project, 'local', [['settings', '.claude/settings.local.json']]),
    managed(
      'settings',
      around.platform === 'darwin'
        ? '/Library/Application Support/ClaudeCode/managed-settings.json'
        : '/etc/claude-code/managed-settings.json',
    ),
    managed(
      'servers',
      around.platform === 'darwin'
        ? '/Library/Application Support/ClaudeCode/managed-mcp.json'
        : '/etc/claude-code/managed-mcp.json',
    ),
  ],
  codex: (around) => [
    ...userPlaces('codex', around, [
      ['settings', 'config.toml'],
      ['hooks', 'hooks.json'],
    ]),
    ...placesIn(around.project, 'project', [
      ['settings', '.codex/config.toml'],
      ['hooks', '.codex/hooks.json'],
    ]),
    managed('settings', '/etc/codex/config.toml'),
    managed('requirements', '/etc/codex/requirements.toml'),
  ],
  'gemini-cli': (around) => [
    ...userPlaces('gemini-cli', around, [['settings', 'settings.json']]),
    ...placesIn(around.project, 'project', [['settings', '.gemini/settings.json']]),
    managed(
      'settings',
      absolute(around.environment['GEMINI_CLI_SYSTEM_SETTINGS_PATH']) ??
        (around.platform === 'darwin'
          ? '/Library/Application Support/GeminiCli/settings.json'
          : '/etc/gemini-cli/settings.json'),
    ),
  ],
  opencode: (around) => [
    ...userPlaces('opencode', around, OPENCODE_FILES),
    ...placesIn(around.project, 'project', [
      ['settings', 'opencode.json'],
      ['settings', 'opencode.jsonc'],
      ...OPENCODE_FILES.map(([kind, name]) => [kind, `.opencode/${name}`] as const),
    ]),
  ],
  cline: (around) =>
    userPlaces('cline', around, [
      ['script', 'hooks/PreToolUse'],
      ['script', 'hooks/PostToolUse'],
      ['servers', 'data/settings/cline_mcp_settings.json'],
    ]),
  cursor: (around) => [
    ...userPlaces('cursor', around, [
      ['hooks', 'hooks.json'],
      ['servers', 'mcp.json'],
    ]),
    ...placesIn(around.project, 'project', [
      ['hooks', '.cursor/hooks.json'],
      ['servers', '.cursor/mcp.json'],
    ]),
    managed(
      'hooks',
      around.platform === 'darwin' ? '/Library/Application Support/Cursor/hooks.json' : '/etc/cursor/hooks.json',
    ),
  ],
};

const OPENCODE_FILES: readonly (readonly [SettingsKind, string])[] = [
  ['settings', 'opencode.json'],
  ['settings', 'opencode.jsonc'],
  ['plugin', 'plugins/turnpike.js'],
  ['plugin_options', 'plugins/turnpike.json'],
  ['dependency', 'node_modules/@opencode-ai/plugin/package.json'],
];
