import type { SessionRole } from './contract/session.js';
import type { StartSessionOptions } from './sessions.js';

/** The options of every session, whatever its agent requests. */
export type SessionDefaults = Omit<StartSessionOptions, 'spec' | 'idempotencyKey' | 'force' | 'by'>;

/** Options of the session tools of an MCP server. */
export interface SessionOptions {
  /** The session role of agents. Default: `autonomy_runner`. */
  readonly role?: SessionRole;
  /** The folder of specs for which agents may start sessions, named by their ids. */
  readonly specs?: string;
  /** Accepts specs from agents. Danger: the commands in a spec are executed. Default: false. */
  readonly inlineSpecs?: boolean;
  /** Posture, gates and limits of the sessions that agents start. */
  readonly settings?: Omit<SessionDefaults, 'actor' | 'agentRole' | 'lane' | 'case' | 'scope' | 'exposure'>;
}
