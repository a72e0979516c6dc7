import { CLAUDE_CODE } from './dialects/claude-code.js';
import { CLINE } from './dialects/cline.js';
import { CODEX } from './dialects/codex.js';
import { CURSOR } from './dialects/cursor.js';
import type { Dialect } from './dialects/dialect.js';
import { GEMINI_CLI } from './dialects/gemini-cli.js';
import { OPENCODE } from './dialects/opencode.js';
import type { Client } from './hook-event.js';

/** The dialect of each client. */
export const DIALECTS: Readonly<Record<Client, Dialect>> = {
  'claude-code': CLAUDE_CODE,
  codex: CODEX,
  'gemini-cli': GEMINI_CLI,
  opencode: OPENCODE,
  cline: CLINE,
  cursor: CURSOR,
};
