import type { Client } from '../hook-event.js';
import { CLAUDE_CODE_SETTINGS } from './claude-code-settings.js';
import type { ClientSettings } from './client-settings.js';
import { CLINE_SETTINGS } from './cline-settings.js';
import { CODEX_SETTINGS } from './codex-settings.js';
import { CURSOR_SETTINGS } from './cursor-settings.js';
import { GEMINI_CLI_SETTINGS } from './gemini-cli-settings.js';
import { OPENCODE_SETTINGS } from './opencode-settings.js';

/** The settings of each client. */
export const CLIENT_SETTINGS: Readonly<Record<Client, ClientSettings>> = {
  'claude-code': CLAUDE_CODE_SETTINGS,
  codex: CODEX_SETTINGS,
  'gemini-cli': GEMINI_CLI_SETTINGS,
  opencode: OPENCODE_SETTINGS,
  cline: CLINE_SETTINGS,
  cursor: CURSOR_SETTINGS,
};
