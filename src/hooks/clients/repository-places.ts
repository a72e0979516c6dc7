// Where a repository has what its clients execute, start or follow without asking a hook: commands, skills, agents,
// plugins and servers. Below these folders each file counts; a client may know further ones in other folders.

import { isJsonObject } from '../../contract/json.js';
import type { Client } from '../hook-event.js';
import type { SettingsFile } from './client-facts.js';
import { objectIn } from './hook-handlers.js';
import { readCommentedObject } from './read-json.js';
import { readToml } from './read-toml.js';

const below = (folder: string, names: readonly string[]): readonly string[] => names.map((name) => `${folder}/${name}`);

/** Files and folders below the project. Several clients read those of others. */
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

/** The members of settings that name what a client starts. */
const STARTED: Readonly<Record<Client, readonly string[]>> = {
  'claude-code': ['mcpServers'],
  codex: ['mcp_servers'],
  'gemini-cli': ['mcpServers'],
  opencode: ['mcp', 'command', 'agent', 'formatter', 'lsp'],
  cline: ['mcpServers'],
  cursor: ['mcpServers'],
};
const OWN_SERVER = 'turnpike';

/** The servers and commands in settings of the project, by file and name. A file without a reading counts as one. */
export const startedBySettings = (client: Client, project: string, files: readonly SettingsFile[]): readonly string[] =>
  files
    .filter(({ level, kind }) => ['project', 'local'].includes(level) && ['settings', 'servers'].includes(kind))
    .flatMap(({ path, text, problem }) => {
      const name = path.slice(project.length + 1);
      if (text === null) return problem === null ? [] : [name];
      const found = path.endsWith('.toml') ? readToml(text) : readCommentedObject(text);
      if (found === null) return [name];
      return STARTED[client].flatMap((member) =>
        isJsonObject(found[member])
          ? Object.keys(objectIn(found, member))
              .filter((one) => one !== OWN_SERVER)
              .map((one) => `${name}: ${one}`)
          : found[member] === undefined
            ? []
            : [`${name}: ${member}`],
      );
    });
