// Where a user, or the administrator of a machine, has what clients execute or follow without asking a hook.

import type { Client } from '../hook-event.js';
import { settingsPlaces, userFolder, type ClientSurroundings } from './settings-places.js';

const below = (folder: string, names: readonly string[]): readonly string[] => names.map((name) => `${folder}/${name}`);

const OPENCODE_FOLDERS = ['command', 'agent', 'skill', 'mode', 'plugin', 'tool'].flatMap((name) => [name, `${name}s`]);
const CLAUDE_FOLDERS = ['commands', 'skills', 'agents', 'workflows'];

const PLACES: Readonly<Record<Client, (around: ClientSurroundings, folder: string) => readonly string[]>> = {
  // Its plugins are named in settings; their folder has copies of whole marketplaces.
  'claude-code': ({ platform }, folder) => [
    ...below(folder, CLAUDE_FOLDERS),
    ...below(
      platform === 'darwin' ? '/Library/Application Support/ClaudeCode/.claude' : '/etc/claude-code/.claude',
      CLAUDE_FOLDERS,
    ),
  ],
  codex: ({ userHome }, folder) => [
    ...below(folder, ['prompts', 'skills', 'agents']),
    `${userHome}/.agents/skills`,
    '/etc/codex/skills',
  ],
  'gemini-cli': ({ userHome }, folder) => [
    ...below(folder, ['commands', 'skills', 'agents', 'extensions']),
    `${userHome}/.agents/skills`,
  ],
  opencode: ({ userHome }, folder) => [
    ...below(folder, OPENCODE_FOLDERS),
    ...below(`${userHome}/.opencode`, OPENCODE_FOLDERS),
    ...below(userHome, ['.claude/skills', '.agents/skills']),
  ],
  cline: ({ userHome }, folder) => [
    ...below(folder, ['skills', 'agents', 'plugins', 'cron', 'hooks', 'data/workflows']),
    ...below(`${userHome}/Documents/Cline`, ['Hooks', 'Workflows']),
    `${userHome}/.agents/skills`,
  ],
  cursor: ({ userHome }, folder) => [
    ...below(folder, ['commands', 'skills', 'agents', 'plugins/local']),
    ...below(userHome, ['.claude/commands', '.claude/skills', '.claude/agents', '.codex/skills', '.codex/agents']),
    `${userHome}/.agents/skills`,
  ],
};

/** Files and folders outside of the project, as absolute paths. */
export const userPlaces = (client: Client, around: ClientSurroundings): readonly string[] =>
  PLACES[client](around, userFolder(client, around));

/** What an installation writes into these folders, and the skills that Codex itself writes at each start. */
const INSTALLED = /(?:\.before-turnpike|\.turnpike-install\.json)$/;
const CODEX_OWN = /\/skills\/\.system\//;

/** Whether a path is not what the user has added. The judgement of the client is about its hooks. */
export const isKnownUserFile = (client: Client, around: ClientSurroundings, path: string): boolean =>
  CODEX_OWN.test(path) || settingsPlaces(client, around).some((place) => place.path === path.replace(INSTALLED, ''));
