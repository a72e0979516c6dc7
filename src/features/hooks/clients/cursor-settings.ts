// The settings of Cursor, which never were measured: hooks.json, whose events have hooks without groups.

import { below, managed, ofProject, ofUser, type ClientSettings, BOTH_LEVELS, hooksEditor } from './client-settings.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords } from './hook-command-line.js';
import { judgeHooks, otherCommand, otherMembers, SOME_TOOLS, type HookForm } from './judge-hooks.js';
import { readJsonObject } from './read-settings.js';

const MEMBERS = ['command', 'timeout', 'failClosed', 'matcher', 'type'];

/** Cursor lets a call pass after a failure, unless the hook has `failClosed`. */
const HOOKS: HookForm = {
  client: 'cursor',
  event: 'preToolUse',
  checks: [
    ['hook_fails_open', 'has no "failClosed": true', ({ handler }) => handler['failClosed'] !== true],
    SOME_TOOLS,
    otherCommand(({ command }) => command !== null),
    otherMembers(MEMBERS, () => MEMBERS),
  ],
  reported: [['postToolUse', 'outcomes_unreported', 'outcomes stay unknown']],
  inNote: (event) => event,
  isFlat: true,
};

const HOOKS_EDITOR = hooksEditor(
  'cursor',
  { levels: BOTH_LEVELS, userFile: 'hooks.json', projectFile: '.cursor/hooks.json' },
  (target) => {
    const entry = { command: commandLine(hookWords(target)), timeout: CLIENT_TIMEOUT_S };
    return { preToolUse: { ...entry, failClosed: true }, postToolUse: entry, sessionStart: entry, sessionEnd: entry };
  },
  { version: 1 },
);

export const CURSOR_SETTINGS: ClientSettings = {
  userFolder: ({ userHome }) => `${userHome}/.cursor`,
  files: [
    ofUser('hooks', 'hooks.json'),
    ofUser('servers', 'mcp.json'),
    ofProject('hooks', '.cursor/hooks.json'),
    ofProject('servers', '.cursor/mcp.json'),
    managed('hooks', '/etc/cursor/hooks.json', '/Library/Application Support/Cursor/hooks.json'),
  ],
  unhooked: {
    repository: [
      ...below('.cursor', ['commands', 'skills', 'agents', 'plugins', 'worktrees.json']),
      ...below('.claude', ['commands', 'skills', 'agents']),
      '.codex/skills',
      '.agents',
    ],
    readsAbove: false,
    user: ({ userHome }, folder) => [
      ...below(folder, ['commands', 'skills', 'agents', 'plugins/local']),
      ...below(userHome, ['.claude/commands', '.claude/skills', '.claude/agents', '.codex/skills', '.codex/agents']),
      `${userHome}/.agents/skills`,
    ],
    members: ['mcpServers'],
  },
  readers: [['hooks', readJsonObject]],
  judgeGate: (_, settings) => judgeHooks(HOOKS, settings),
  editors: { gate: [HOOKS_EDITOR], strong: [] },
};
