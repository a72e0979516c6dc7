// Which files of a client change so that Turnpike decides its calls, and how they look then. Everything else in a file
// stays. Pure: the text of a file comes in, the new text goes out.

import type { Editor, InstallTarget } from './editor.js';
import { CLAUDE_CODE_EDITORS } from './claude-code-editors.js';
import { CLINE_EDITORS } from './cline-editors.js';
import { CODEX_EDITORS } from './codex-editors.js';
import { CURSOR_EDITORS } from './cursor-editors.js';
import { GEMINI_CLI_EDITORS } from './gemini-cli-editors.js';
import { OPENCODE_EDITORS } from './opencode-editors.js';
import type { Profile, SettingsLevel } from '../client-facts.js';
import type { Client } from '../../hook-event.js';

const EDITORS: Readonly<Record<Client, Readonly<Record<Profile, readonly Editor[]>>>> = {
  'claude-code': CLAUDE_CODE_EDITORS,
  codex: CODEX_EDITORS,
  'gemini-cli': GEMINI_CLI_EDITORS,
  opencode: OPENCODE_EDITORS,
  cline: CLINE_EDITORS,
  cursor: CURSOR_EDITORS,
};

/** The editors of a client at a level; empty if it has no such profile there. */
export const editorsFor = (client: Client, profile: Profile, level: SettingsLevel): readonly Editor[] => {
  const editors = EDITORS[client][profile];
  return editors.every(({ levels }) => levels.includes(level)) ? editors : [];
};

/** The editors of every file that an installation at this level may have changed. */
export const allEditors = (client: Client, level: SettingsLevel): readonly Editor[] =>
  Object.values(EDITORS[client])
    .flat()
    .filter(({ levels }) => levels.includes(level));

/** Where a file is: below the folder of the user's settings, or below the project. */
export const editedPath = (
  editor: Editor,
  level: SettingsLevel,
  folders: { readonly user: string; readonly project: string },
): string =>
  level === 'user' ? `${folders.user}/${editor.userFile}` : `${folders.project}/${editor.projectFile ?? ''}`;

export type { Editor, InstallTarget };
