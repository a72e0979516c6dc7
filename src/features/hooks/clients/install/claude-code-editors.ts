import type { Json, JsonObject } from '../../../../core/contract/json.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords } from '../hook-command-line.js';
import { objectIn } from '../hook-handlers.js';
import { CLAUDE_TOOLS } from '../judge-claude-code.js';
import {
  BOTH_LEVELS,
  jsonEditor,
  serverWords,
  without,
  withMember,
  type Editor,
  type InstallTarget,
} from './editor.js';
import { addEntries, removeEntries } from './hook-entries.js';

const SETTINGS = { levels: BOTH_LEVELS, userFile: 'settings.json', projectFile: '.claude/settings.json' } as const;
/** Events that HTTP can answer. The client must be checked by a command, on this machine. */
const CALL_EVENTS = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure'] as const;
const SESSION_EVENTS = ['SessionStart', 'SessionEnd', 'SubagentStop'] as const;

/** The hooks of all events. */
const CLAUDE_GATE: readonly Editor[] = [
  jsonEditor(SETTINGS, {
    add: (settings, target) =>
      addEntries(settings, {
        ...entriesOf(
          CALL_EVENTS,
          target.http === undefined ? commandHandler(target) : httpHandler(target, target.http),
        ),
        ...entriesOf(SESSION_EVENTS, commandHandler(target)),
      }),
    remove: (settings) => removeEntries(settings, 'claude-code'),
  }),
];

const entriesOf = (events: readonly string[], handler: JsonObject): Record<string, JsonObject> =>
  Object.fromEntries(events.map((event) => [event, { hooks: [handler] }]));

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

/** Native tools denied by name, and the server of Turnpike. */
const CLAUDE_STRONG: readonly Editor[] = [
  jsonEditor(
    { ...SETTINGS, levels: ['project'] },
    {
      add: (settings) => {
        const permissions = objectIn(settings, 'permissions');
        const { deny } = permissions;
        const present = Array.isArray(deny) ? (deny as readonly Json[]) : [];
        const added = CLAUDE_TOOLS.filter((tool) => !present.includes(tool));
        return { ...settings, permissions: { ...permissions, deny: [...present, ...added] } };
      },
      // A tool that is denied by name stays denied: the user may have denied it too.
      remove: (settings) => settings,
    },
  ),
  jsonEditor(
    { levels: ['project'], userFile: '', projectFile: '.mcp.json' },
    {
      add: (settings, target) => {
        const [command = '', ...args] = serverWords(target);
        const servers = objectIn(settings, 'mcpServers');
        return { ...settings, mcpServers: { ...servers, turnpike: { command, args } } };
      },
      remove: (settings) => {
        const servers = objectIn(settings, 'mcpServers');
        if (!Object.hasOwn(servers, 'turnpike')) return settings;
        return withMember(settings, 'mcpServers', without(servers, 'turnpike'));
      },
    },
  ),
];

/** The editors of each profile. */
export const CLAUDE_CODE_EDITORS = { gate: CLAUDE_GATE, strong: CLAUDE_STRONG } as const;
