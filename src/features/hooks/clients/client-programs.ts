import type { Client } from '../hook-event.js';

/** The programs of a client, and the packages that have them. */
interface ProgramNames {
  readonly programs: readonly string[];
  readonly packages: readonly string[];
}

/** The programs and the packages of each client. */
export const CLIENT_PROGRAMS: Readonly<Record<Client, ProgramNames>> = {
  'claude-code': { programs: ['claude'], packages: ['@anthropic-ai/claude-code'] },
  codex: { programs: ['codex'], packages: ['@openai/codex'] },
  'gemini-cli': { programs: ['gemini'], packages: ['@google/gemini-cli'] },
  opencode: { programs: ['opencode'], packages: ['opencode-ai', 'opencode'] },
  cline: { programs: ['cline'], packages: ['cline'] },
  cursor: { programs: ['cursor-agent', 'cursor'], packages: [] },
};

/** The variables of the environment that say where a client has its settings, and what it loads of them. */
export const SETTINGS_VARIABLES = [
  'HOME',
  'CLAUDE_CONFIG_DIR',
  'CODEX_HOME',
  'GEMINI_CLI_HOME',
  'GEMINI_CLI_SYSTEM_SETTINGS_PATH',
  'XDG_CONFIG_HOME',
  'OPENCODE_PURE',
] as const;
