import { CLIENT_TIMEOUT_S, commandLine, hookWords } from '../hook-command-line.js';
import { BOTH_LEVELS, jsonEditor, UNSUPPORTED, type Editor } from './editor.js';
import { addEntries, removeEntries } from './hook-entries.js';

/** The hooks of Cursor, which never were measured. */
const CURSOR_GATE: readonly Editor[] = [
  jsonEditor(
    { levels: BOTH_LEVELS, userFile: 'hooks.json', projectFile: '.cursor/hooks.json' },
    {
      add: (settings, target) => {
        const command = commandLine(hookWords(target));
        const entry = { command, timeout: CLIENT_TIMEOUT_S };
        return addEntries(
          { version: 1, ...settings },
          { preToolUse: { ...entry, failClosed: true }, postToolUse: entry, sessionStart: entry, sessionEnd: entry },
        );
      },
      remove: (settings) => {
        const left = removeEntries(settings, 'cursor');
        return Object.keys(left).join() === 'version' ? {} : left;
      },
    },
  ),
];

/** The editors of each profile. */
export const CURSOR_EDITORS = { gate: CURSOR_GATE, strong: UNSUPPORTED } as const;
