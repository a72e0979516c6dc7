import { clineScript, hookWords, mentionsHook } from '../hook-command-line.js';
import { EditProblem, UNSUPPORTED, type Editor } from './editor.js';

const EXECUTABLE_MODE = 0o700;

/** One executable for each event. */
const CLINE_GATE: readonly Editor[] = ['PreToolUse', 'PostToolUse'].map((name) => ({
  levels: ['user'],
  userFile: `hooks/${name}`,
  mode: EXECUTABLE_MODE,
  add: (text, target) => {
    if (text !== null) throw new EditProblem('is a hook of its own, and Cline runs only one: move it away first');
    return clineScript(hookWords(target));
  },
  remove: (text) => (mentionsHook(text, 'cline') ? null : text),
}));

/** The editors of each profile. */
export const CLINE_EDITORS = { gate: CLINE_GATE, strong: UNSUPPORTED } as const;
