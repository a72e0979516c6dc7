// What is known of each client by name. The hook program has this table too, so this file imports nothing large.

import type { Client } from '../hook-event.js';

/** A client, as other programs name what it has. */
export interface ClientNames {
  /** Its programs, and the packages that have them. */
  readonly programs: readonly string[];
  readonly packages: readonly string[];
  /** The beginning of the ids of its findings. */
  readonly prefix: string;
  /** The version with which the behaviour of its hooks was measured; null if they were only read about. */
  readonly measured: string | null;
  /** Whose settings an installation changes if nothing else is asked for. */
  readonly level: 'user' | 'project';
  /** The members by which its events name the session, the first ones first. */
  readonly sessionMembers: readonly string[];
  /** The variable by which it names the folder of the project to its hooks. */
  readonly projectVariable?: string;
}

export const CLIENT_NAMES: Readonly<Record<Client, ClientNames>> = {
  'claude-code': {
    programs: ['claude'],
    packages: ['@anthropic-ai/claude-code'],
    prefix: 'claude',
    measured: '2.1.330',
    level: 'project',
    sessionMembers: ['session_id'],
    projectVariable: 'CLAUDE_PROJECT_DIR',
  },
  codex: {
    programs: ['codex'],
    packages: ['@openai/codex'],
    prefix: 'codex',
    measured: '0.169.0',
    level: 'user',
    sessionMembers: ['session_id'],
  },
  'gemini-cli': {
    programs: ['gemini'],
    packages: ['@google/gemini-cli'],
    prefix: 'gemini',
    measured: '0.61.0',
    level: 'project',
    sessionMembers: ['session_id'],
    projectVariable: 'GEMINI_PROJECT_DIR',
  },
  opencode: {
    programs: ['opencode'],
    packages: ['opencode-ai', 'opencode'],
    prefix: 'opencode',
    measured: '1.18.33',
    level: 'project',
    sessionMembers: ['session_id'],
  },
  cline: {
    programs: ['cline'],
    packages: ['cline'],
    prefix: 'cline',
    measured: '3.0.65',
    level: 'user',
    sessionMembers: ['rootSessionId', 'taskId'],
  },
  cursor: {
    programs: ['cursor-agent', 'cursor'],
    packages: [],
    prefix: 'cursor',
    measured: null,
    level: 'project',
    sessionMembers: ['conversation_id', 'session_id'],
  },
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

/** Where a client runs. */
export interface ClientSurroundings {
  /** The folder of the project, an absolute path. */
  readonly project: string;
  /** The home folder of the user. */
  readonly userHome: string;
  /** The name of the system as Node gives it. */
  readonly platform: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The folder that a variable of the environment names by an absolute path. */
export const folderIn = (
  { environment }: Pick<ClientSurroundings, 'environment'>,
  variable: string,
): string | undefined => (environment[variable]?.startsWith('/') === true ? environment[variable] : undefined);

/** The folder of the user for files of programs, in which the hook program is. */
export const dataFolder = (around: Pick<ClientSurroundings, 'userHome' | 'environment'>): string =>
  `${folderIn(around, 'XDG_DATA_HOME') ?? `${around.userHome}/.local/share`}/turnpike`;
