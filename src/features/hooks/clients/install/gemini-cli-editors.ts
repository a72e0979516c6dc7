import type { JsonObject } from '../../../../core/contract/json.js';
import { CLIENT_TIMEOUT_S, commandLine, hookWords, wrappedLine } from '../hook-command-line.js';
import { objectIn } from '../hook-handlers.js';
import { BOTH_LEVELS, EditProblem, jsonEditor, serverWords, without, withMember, type Editor } from './editor.js';
import { addEntries, removeEntries } from './hook-entries.js';

const SETTINGS = { levels: BOTH_LEVELS, userFile: 'settings.json', projectFile: '.gemini/settings.json' } as const;

/** The hooks of all events. */
const GEMINI_GATE: readonly Editor[] = [
  jsonEditor(SETTINGS, {
    add: (settings, target) => {
      const group = (command: string, matcher?: string): JsonObject => ({
        ...(matcher === undefined ? {} : { matcher }),
        hooks: [{ type: 'command', command, timeout: CLIENT_TIMEOUT_S * 1_000 }],
      });
      const plain = commandLine(hookWords(target));
      return addEntries(settings, {
        BeforeTool: group(wrappedLine(hookWords(target)), '*'),
        AfterTool: group(plain, '*'),
        SessionStart: group(plain),
        SessionEnd: group(plain),
      });
    },
    remove: (settings) => removeEntries(settings, 'gemini-cli'),
  }),
];

const TOOL_PREFIX = 'mcp_turnpike_';

/** Only tools of Turnpike's server. */
const GEMINI_STRONG: readonly Editor[] = [
  jsonEditor(SETTINGS, {
    add: (settings, target) => {
      const tools = objectIn(settings, 'tools');
      if (tools['core'] !== undefined) throw new EditProblem('has tools.core already: remove it first');
      const [command = '', ...args] = serverWords(target);
      return {
        ...settings,
        tools: { ...tools, core: target.tools.map((name) => `${TOOL_PREFIX}${name}`) },
        mcpServers: { ...objectIn(settings, 'mcpServers'), turnpike: { command, args } },
      };
    },
    remove: (settings) => {
      const [tools, servers] = [objectIn(settings, 'tools'), objectIn(settings, 'mcpServers')];
      const { core } = tools;
      const isOwn = Array.isArray(core) && core.every((name) => String(name).startsWith(TOOL_PREFIX));
      if (!isOwn && !Object.hasOwn(servers, 'turnpike')) return settings;
      const left = withMember(settings, 'mcpServers', without(servers, 'turnpike'));
      return isOwn ? withMember(left, 'tools', without(tools, 'core')) : left;
    },
  }),
];

/** The editors of each profile. */
export const GEMINI_CLI_EDITORS = { gate: GEMINI_GATE, strong: GEMINI_STRONG } as const;
