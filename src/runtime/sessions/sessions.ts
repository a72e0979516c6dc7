// Sessions as their callers hold them: the MCP server, the command and embedding services all speak through this.

import type { Exposure } from '../../contract/run/response.js';
import type { GatePolicy, OverrideReason, Posture, SessionLimits } from '../../contract/session/session.js';
import type { SessionAnswer, SessionData } from '../../contract/session/session-answer.js';
import type { SessionSpec } from '../../contract/session/session-spec.js';
import type { ReadControl } from '../../ports/pace.js';

/** Who speaks. An unknown role is an observer. */
export interface SessionCaller {
  readonly actor: string;
  /** `autonomy_runner`, `maintainer` or `observer`. */
  readonly role: string;
}

export interface StartSessionOptions {
  /** Path of a spec file, or the spec itself; of a file it is checked at every step whether it has changed. */
  readonly spec: string | SessionSpec;
  readonly case?: string;
  /** Who the agent of the session is. */
  readonly actor?: string;
  /** Role and lane of the agent runs; a task's own lane comes first. */
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
  /** The same key and spec give the session that is there already. `[A-Za-z0-9_-]`, up to 128 characters. */
  readonly idempotencyKey?: string;
  /** End a session that this spec has already. */
  readonly force?: boolean;
  readonly correlation?: string;
  readonly scope?: Readonly<Record<string, string>>;
  readonly exposure?: Exposure;
  readonly by: SessionCaller;
}

/** `session-step` command `next` (S3-06). What comes from an agent is unknown until it is parsed. */
export interface NextRequest {
  readonly last_step_result?: unknown;
  readonly heartbeat?: boolean;
  readonly context_usage_pct?: number;
}

export interface SessionSummary {
  readonly session_id: string;
  readonly spec_id: string;
  readonly status: SessionData['status'];
  /** `paused` where a running session has been silent for too long. */
  readonly effective_status: SessionData['status'];
  readonly created_at_utc: string;
}

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
 * Every answer is a value, refusals too; what is thrown is a breakdown (`LedgerError`) or a wrong call (`UsageError`).
 */
export interface Sessions {
  start(options: StartSessionOptions): Promise<SessionAnswer>;
  next(session_id: string, request: NextRequest, by: SessionCaller): Promise<SessionAnswer>;
  /** The last answer once more. */
  replay(session_id: string, by: SessionCaller): Promise<SessionAnswer>;
  heartbeat(
    session_id: string,
    request: { readonly context_usage_pct?: number; readonly estimated_tokens_used?: number },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Runs the command of the outstanding verification, and answers with the receipt (C68). */
  verify(session_id: string, request: { readonly step_id: string }, by: SessionCaller): Promise<SessionAnswer>;
  /** Has the outstanding gate reviewed (S3-29). */
  review(
    session_id: string,
    request: { readonly phase_id: string; readonly step_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  pause(session_id: string, request: { readonly reason?: string }, by: SessionCaller): Promise<SessionAnswer>;
  resume(
    session_id: string,
    request: {
      readonly force?: boolean;
      readonly acknowledge?: { readonly gate_attempt_id: string; readonly decision: 'pass' | 'fail' };
    },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  end(session_id: string, request: OverrideRequest, by: SessionCaller): Promise<SessionAnswer>;
  rebase(
    session_id: string,
    request: { readonly spec: string | SessionSpec; readonly force?: boolean },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  waive(
    session_id: string,
    request: OverrideRequest & { readonly phase_id: string },
    by: SessionCaller,
  ): Promise<SessionAnswer>;
  /** Changes nothing and is not recorded. */
  status(session_id: string): Promise<SessionAnswer>;
  /** A task's text, or that of the outstanding step where no task is named (S3-20). Null where there is none. */
  prepare(session_id: string, task_id?: string): Promise<TaskDetails | null>;
  /** Sessions of this ledger, the newest first; of one spec where that is named. */
  list(spec_id?: string, control?: ReadControl): Promise<readonly SessionSummary[]>;
}

export interface OverrideRequest {
  readonly reason_code: OverrideReason;
  readonly reason_detail?: string;
}
