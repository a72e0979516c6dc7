import { hookWords } from '../hook-command-line.js';
import { objectIn } from '../hook-handlers.js';
import {
  BOTH_LEVELS,
  EditProblem,
  jsonEditor,
  serverWords,
  SHARED_MODE,
  without,
  withMember,
  type Editor,
} from './editor.js';

/** The plugin, and its options next to it. */
const OPENCODE_GATE: readonly Editor[] = [
  {
    levels: BOTH_LEVELS,
    userFile: 'plugins/turnpike.js',
    projectFile: '.opencode/plugins/turnpike.js',
    mode: SHARED_MODE,
    add: (_text, { plugin }) => plugin,
    remove: () => null,
  },
  {
    levels: BOTH_LEVELS,
    userFile: 'plugins/turnpike.json',
    projectFile: '.opencode/plugins/turnpike.json',
    mode: SHARED_MODE,
    add: (_text, target) => `${JSON.stringify({ home: target.home, hook: hookWords(target) }, null, 2)}\n`,
    remove: () => null,
  },
];

const PERMISSION = { '*': 'deny', 'turnpike_*': 'allow' } as const;

/** Only tools of Turnpike's server. */
const OPENCODE_STRONG: readonly Editor[] = [
  jsonEditor(
    { levels: BOTH_LEVELS, userFile: 'opencode.json', projectFile: 'opencode.json' },
    {
      add: (settings, target) => {
        if (settings['permission'] !== undefined) throw new EditProblem('has permissions already: remove them first');
        const server = { type: 'local', command: serverWords(target), enabled: true };
        return { ...settings, permission: PERMISSION, mcp: { ...objectIn(settings, 'mcp'), turnpike: server } };
      },
      remove: (settings) => {
        const servers = objectIn(settings, 'mcp');
        const isOwn = JSON.stringify(settings['permission']) === JSON.stringify(PERMISSION);
        if (!isOwn && !Object.hasOwn(servers, 'turnpike')) return settings;
        const left = withMember(settings, 'mcp', without(servers, 'turnpike'));
        return isOwn ? without(left, 'permission') : left;
      },
    },
  ),
];

/** The editors of each profile. */
export const OPENCODE_EDITORS = { gate: OPENCODE_GATE, strong: OPENCODE_STRONG } as const;
