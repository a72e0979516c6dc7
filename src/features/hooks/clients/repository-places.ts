// Where a repository has what its clients execute, start or follow without asking a hook: commands, skills, agents,
// plugins and servers. Each folder of the repository may have them, because a client may be started in it or work on
// its files. Below these folders each file counts; a client may know further ones in other folders.

import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';
import type { Client } from '../hook-event.js';
import type { SettingsFile, SettingsPlace } from './client-facts.js';
import { objectIn } from './hook-handlers.js';
import { readCommentedObject } from './read-commented-json.js';
import { readToml } from './read-toml.js';

const below = (folder: string, names: readonly string[]): readonly string[] => names.map((name) => `${folder}/${name}`);

/** Files and folders below a folder of the project. Several clients read those of others. */
export const REPOSITORY_PLACES: Readonly<Record<Client, readonly string[]>> = {
  'claude-code': below('.claude', ['commands', 'skills', 'agents', 'plugins', 'workflows']),
  codex: [...below('.codex', ['prompts', 'skills', 'agents']), '.agents'],
  'gemini-cli': [...below('.gemini', ['commands', 'skills', 'agents', 'extensions']), '.agents'],
  opencode: [
    ...below('.opencode', ['command', 'commands', 'agent', 'agents', 'skill', 'skills', 'mode', 'modes']),
    ...below('.opencode', ['plugin', 'plugins', 'tool', 'tools']),
    '.claude/skills',
    '.agents',
  ],
  cline: [...below('.clinerules', ['workflows', 'hooks', 'skills']), '.cline', '.claude/skills', '.agents'],
  cursor: [
    ...below('.cursor', ['commands', 'skills', 'agents', 'plugins', 'worktrees.json']),
    ...below('.claude', ['commands', 'skills', 'agents']),
    '.codex/skills',
    '.agents',
  ],
};

/** What an installation puts into the folder of plugins. */
const OWN_FILE = /^\.opencode\/plugins\/turnpike\.js(?:on)?(?:\.before-turnpike|\.turnpike-install\.json)?$/;
export const isOwnFile = (path: string): boolean => OWN_FILE.test(path);

/** Clients that also read the folders above, up to that of the repository. */
export const READS_ABOVE: ReadonlySet<Client> = new Set(['claude-code', 'codex', 'opencode']);

/** The members of settings that name what a client starts. */
const STARTED: Readonly<Record<Client, readonly string[]>> = {
  'claude-code': ['mcpServers', 'enabledPlugins'],
  codex: ['mcp_servers', 'plugins'],
  'gemini-cli': ['mcpServers'],
  opencode: ['mcp', 'command', 'agent', 'formatter', 'lsp'],
  cline: ['mcpServers'],
  cursor: ['mcpServers'],
};
const OWN_SERVER = 'turnpike';

/** Whether a file can name what its client starts. */
export const namesStarted = ({ kind }: Pick<SettingsPlace, 'kind'>): boolean => ['settings', 'servers'].includes(kind);

/**
 * The servers, plugins and commands that a file of settings names, each after the name of the file. A file without a
 * reading counts as one.
 * @param project the settings of a user may have some for a project
 */
export function startedByFile(
  client: Client,
  name: string,
  { text, problem }: Pick<SettingsFile, 'text' | 'problem'>,
  project: string,
): readonly string[] {
  if (text === null) return problem === null ? [] : [name];
  const found = name.endsWith('.toml') ? readToml(text) : readCommentedObject(text);
  if (found === null) return [name];
  const ofProject = objectIn(objectIn(found, 'projects'), project);
  return [...new Set([found, ofProject].flatMap((settings) => startedIn(client, settings)))].map(
    (one) => `${name}: ${one}`,
  );
}

const startedIn = (client: Client, settings: JsonObject): readonly string[] =>
  STARTED[client].flatMap((member) => {
    const value = settings[member];
    if (!isJsonObject(value)) return value === undefined ? [] : [member];
    return Object.keys(value).filter((one) => one !== OWN_SERVER && !isOff(value[one]));
  });

const isOff = (value: Json | undefined): boolean =>
  value === false || (isJsonObject(value) && value['enabled'] === false);
