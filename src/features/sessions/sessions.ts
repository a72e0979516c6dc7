// The interface of sessions, which the MCP server, the CLI and embedding services share.

import type { Exposure } from '../../core/contract/run/response.js';
import type { GatePolicy, OverrideReason, Posture, SessionLimits, SessionRole } from './contract/session.js';
import type { SessionAnswer, SessionData } from './contract/session-answer.js';
import type { SessionSpec } from './contract/session-spec.js';
import type { ReadControl } from '../../engine/ports/pace.js';

/** The caller. An unknown role counts as observer. */
export interface SessionCaller {
  readonly actor: string;
  /** `autonomy_runner`, `maintainer` or `observer`. */
  readonly role: string;
}

/** Options of a new session. The posture has a default for each setting that is absent. */
export interface StartSessionOptions {
  /** Path of a spec file, or the spec itself. A file is checked for changes at every step. */
  readonly spec: string | SessionSpec;
  readonly case?: string;
  /** The actor of the session's agent. */
  readonly actor?: string;
  /** The person behind the actor, if it has another name. */
  readonly person?: string;
  /** Role and lane of the agent runs; a task's own lane takes precedence. */
  readonly agentRole?: string;
  readonly lane?: string;
  /** Default: `supervised`. */
  readonly posture?: Posture;
  readonly gatePolicy?: GatePolicy;
  readonly limits?: Partial<SessionLimits>;
  readonly enforceGates?: boolean;
  readonly allowGateWaiver?: boolean;
  readonly allowSkipped?: boolean;
  readonly stopOnPhaseCompletion?: boolean;
  readonly autoRetryFidelityGate?: boolean;
  /**
   * A second request with the same key and spec returns the existing session. `[A-Za-z0-9_-]`, up to 128 characters.
   */
  readonly idempotencyKey?: string;
  /** Ends an existing session of this spec first. */
  readonly force?: boolean;
  readonly correlation?: string;
  readonly scope?: Readonly<Record<string, string>>;
  readonly exposure?: Exposure;
  readonly by: SessionCaller;
}

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

declare module '../../runtime/host-feature.js' {
  interface AddedToolMembers {
    readonly sessions: Sessions;
  }
  interface AddedToolOptions {
    /** Default: sessions without a folder of specs. Null: sessions are not offered. */
    readonly sessions?: SessionOptions | null;
  }
}

/** `session-step` command `next` (S3-06). Members from an agent are `unknown` until they are parsed. */
export interface NextRequest {
  readonly last_step_result?: unknown;
  readonly heartbeat?: boolean;
  readonly context_usage_pct?: number;
}

/** One session in a list of sessions. */
export interface SessionSummary {
  readonly session_id: string;
  readonly spec_id: string;
  readonly status: SessionData['status'];
  /** `paused` if a running session has been silent for too long. */
  readonly effective_status: SessionData['status'];
  readonly created_at_utc: string;
}

/** The text of one task of a spec, with its status in the session. */
export interface TaskDetails {
  readonly task_id: string;
  readonly phase_id: string;
  readonly title: string;
  readonly instruction: string;
  readonly acceptance: readonly string[];
  readonly files: readonly string[];
  readonly depends_on: readonly string[];
  readonly status: 'pending' | 'completed' | 'skipped';
}

/**
 * Every answer is a value, including refusals. Methods throw only `LedgerError` for failures and `UsageError` for
 * invalid calls.
 */
export interface Sessions {
  /** Starts a session of a spec, or returns the existing one with the same idempotency key. */
  start(options: StartSessionOptions): Promise<SessionAnswer>;
  /** Records the report of the agent about its step, and returns the next step. */
  next(session_id: string, request: NextRequest, by: SessionCaller): Promise<SessionAnswer>;
  /** Returns the last answer again. */
  replay(session_id: string, by: SessionCaller): Promise<SessionAnswer>;
  /** Reports that the agent is alive. Percentages are 0 to 100. */
  heartbeat(
    session_id: string,
    request: { readonly context_usage_pct?: number; readonly estimated_tokens_used?: number },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Runs the command of the outstanding verification and returns the receipt (C68). */
  verify(session_id: string, request: { readonly step_id: string }, by: SessionCaller): Promise<SessionAnswer>;
  /** Runs the review of the outstanding gate (S3-29). */
  review(
    session_id: string,
    request: { readonly phase_id: string; readonly step_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Pauses a running session. The outstanding step stays outstanding. */
  pause(session_id: string, request: { readonly reason?: string }, by: SessionCaller): Promise<SessionAnswer>;
  /** Resumes a paused session, where needed with the decision of a person about a gate. */
  resume(
    session_id: string,
    request: {
      readonly force?: boolean;
      readonly acknowledge?: { readonly gate_attempt_id: string; readonly decision: 'pass' | 'fail' };
    },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Ends a session before its spec is completed. */
  end(session_id: string, request: OverrideRequest, by: SessionCaller): Promise<SessionAnswer>;
  /** Continues a session with a changed spec. Only a maintainer may do this. */
  rebase(
    session_id: string,
    request: { readonly spec: string | SessionSpec; readonly force?: boolean },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Waives the gate of a phase, where the session allows that. */
  waive(
    session_id: string,
    request: OverrideRequest & { readonly phase_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Changes nothing and is not recorded. */
  status(session_id: string): Promise<SessionAnswer>;
  /** The text of a task, by default that of the outstanding step (S3-20). Null without such a task. */
  prepare(session_id: string, task_id?: string): Promise<TaskDetails | null>;
  /** Sessions of this ledger, newest first; only those of `spec_id` if it is given. */
  list(spec_id?: string, control?: ReadControl): Promise<readonly SessionSummary[]>;
}

declare module '../../runtime/host-feature.js' {
  interface AddedMembers {
    /** Sessions: agents that work through a spec, one step at a time (S3). */
    readonly sessions: Sessions;
  }
}

export interface OverrideRequest {
  readonly reason_code: OverrideReason;
  readonly reason_detail?: string;
}
