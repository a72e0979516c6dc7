// The state of a session between two commands: plain JSON in the session machine's context, rebuilt by folding.

import type { Exposure } from '../../../core/contract/run/response.js';
import type {
  FailureReason,
  GateEvidence,
  GateVerdict,
  OverrideReason,
  PauseReason,
  ReportedStepType,
  SessionSettings,
  SessionStatus,
  VerificationReceipt,
} from '../contract/session.js';
import type { NextStep } from '../contract/session-answer.js';
import type { SessionSpec } from '../contract/session-spec.js';
import type { Person } from '../../../core/contract/person.js';
import type { Actor } from '../../../core/contract/shapes.js';

/** The identity under which the session's agent runs act. A task's own lane has priority. */
export interface SessionAgent {
  readonly actor: Actor;
  readonly person?: Person | undefined;
  readonly role_id: string;
  readonly lane_id: string;
  readonly exposure: Exposure;
}

export interface SessionState {
  readonly session_id: string;
  readonly spec: SessionSpec;
  readonly structure_hash: string;
  readonly settings: SessionSettings;
  readonly agent: SessionAgent;
  readonly spec_file: string | null;
  readonly idempotency_key: string | null;
  readonly created_at: string;
  readonly status: SessionStatus;
  readonly pause_reason: PauseReason | null;
  readonly failure_reason: FailureReason | null;
  /** Incremented by every command that changes anything. */
  readonly state_version: number;
  /**
   * The number of the current activation, from 1, and how many runs it has started: the next ordinal is one more (D11).
   */
  readonly activation: number;
  readonly runs_started: number;
  /** Completed or skipped tasks; all others are pending. */
  readonly tasks: Readonly<Record<string, 'completed' | 'skipped'>>;
  readonly gates: Readonly<Record<string, GateRecord>>;
  /** The one valid review (C70). */
  readonly evidence: GateEvidence | null;
  /** The gate that a person must acknowledge (C72). */
  readonly ack: GateAck | null;
  /** Failed evaluations of the active phase's gate (C71). */
  readonly cycles: { readonly phase_id: string; readonly count: number };
  readonly counters: SessionCounters;
  readonly context: AgentContext;
  /** Input for the reviewer of the latest phase. */
  readonly changed: ChangedFiles;
  readonly heartbeat_at: string;
  readonly steps_issued: number;
  readonly gate_attempts: number;
  readonly outstanding: OutstandingStep | null;
  readonly last_step_id: string | null;
  /** Used proofs, the latest last. */
  readonly consumed: readonly ConsumedProof[];
  /** A verification or review in flight. */
  readonly check: RunningCheck | null;
  /** Phases for whose completion the session has already paused. */
  readonly phases_told: readonly string[];
}

/** Files that the agent runs of a phase's steps have changed, as `/sandbox/...`: the first of them, each once. */
export interface ChangedFiles {
  readonly phase_id: string;
  readonly files: readonly string[];
}

/**
 * The assumed fill level of the agent's context, its last reported level, and for how many steps the reports made no
 * progress.
 */
export interface AgentContext {
  readonly pct: number;
  readonly said: number | null;
  readonly repeats: number;
}

export interface SessionCounters {
  /** In this activation (C74). */
  readonly tasks_completed: number;
  /** Since a maintainer last resumed the session. */
  readonly skips: number;
  readonly consecutive_errors: number;
  /** In the whole session. */
  readonly steps_executed: number;
}

export interface GateRecord {
  readonly status: 'pending' | 'passed' | 'failed' | 'waived';
  readonly verdict: GateVerdict | null;
  readonly gate_attempt_id: string | null;
  readonly evaluated_at: string | null;
  readonly waiver: GateWaiver | null;
}

export interface GateWaiver {
  readonly reason_code: OverrideReason;
  readonly reason_detail: string | null;
  readonly at: string;
  readonly by: string;
}

export interface GateAck {
  readonly gate_attempt_id: string;
  readonly phase_id: string;
}

/** A step that was issued to the agent and is not reported yet. */
export interface OutstandingStep {
  readonly type: ReportedStepType;
  /** The step as issued, with the issue number from which the proof is computed instead of the proof. */
  readonly step: NextStep;
  readonly issue: number;
  /** SHA-256 of its proof; the proof itself is not stored (D10). */
  readonly proof_sha256: string;
  readonly issued_at: string;
  /** Its agent runs: one per activation. */
  readonly run_ids: readonly string[];
  /** The receipt of its last verification run. */
  readonly receipt: VerificationReceipt | null;
  /** Failed attempts: rejected reports, and checks without a result (C64). */
  readonly refused: number;
}

export interface ConsumedProof {
  readonly proof_sha256: string;
  readonly step_id: string;
  /** SHA-256 of the canonical report. */
  readonly report_sha256: string;
  readonly consumed_at: string;
  /** The answer as JSON, as long as it may be repeated. */
  readonly answer: string | null;
}

export interface RunningCheck {
  readonly kind: 'verify' | 'review';
  readonly run_id: string;
  /** The command that waits for it. */
  readonly input_id: string;
  readonly step_id: string;
  readonly gate_attempt_id: string | null;
}

/** How long a repeated identical report gets the same answer, in ms from the use of its proof (C65). */
export const REPEAT_MS = 30_000;
/** How long a used proof is remembered after that, in ms, and the maximum number. */
export const CONSUMED_MS = 3_600_000;
export const CONSUMED_MAX = 500;
/** Maximum size of the stored answers: enough for all recent ordinary ones. */
export const ANSWERS_CHARS_MAX = 4_194_304;

export const FRESH_CONTEXT: AgentContext = { pct: 0, said: null, repeats: 0 };

export const createSession = (
  start: Pick<
    SessionState,
    'session_id' | 'spec' | 'structure_hash' | 'settings' | 'agent' | 'spec_file' | 'idempotency_key' | 'created_at'
  >,
): SessionState => ({
  ...start,
  status: 'running',
  pause_reason: null,
  failure_reason: null,
  state_version: 1,
  activation: 1,
  runs_started: 0,
  tasks: {},
  gates: {},
  evidence: null,
  ack: null,
  cycles: { phase_id: start.spec.phases[0]?.id ?? '', count: 0 },
  counters: { tasks_completed: 0, skips: 0, consecutive_errors: 0, steps_executed: 0 },
  context: FRESH_CONTEXT,
  changed: { phase_id: '', files: [] },
  heartbeat_at: start.created_at,
  steps_issued: 0,
  gate_attempts: 0,
  outstanding: null,
  last_step_id: null,
  consumed: [],
  check: null,
  phases_told: [],
});

export const activationId = ({ session_id, activation }: Pick<SessionState, 'session_id' | 'activation'>): string =>
  `${session_id}.${activation}`;

/** The id of the next step, if one is issued now. */
export const nextStepId = ({ session_id, steps_issued }: SessionState): string => `${session_id}-s${steps_issued + 1}`;

export const nextAttemptId = ({ session_id, gate_attempts }: SessionState): string =>
  `${session_id}-g${gate_attempts + 1}`;

/**
 * The step and issue number for which the shell must compute a proof before this command enters. A resumed step is
 * issued again if its reports were rejected; any other command may issue the next step.
 */
export function nextIssue(state: SessionState, command: string): { readonly step_id: string; readonly issue: number } {
  const { outstanding } = state;
  return command === 'resume' && outstanding !== null
    ? { step_id: outstanding.step.step_id, issue: outstanding.issue + 1 }
    : { step_id: nextStepId(state), issue: 1 };
}

/** Milliseconds between two recorded times; reads no clock. */
export const elapsedMs = (from: string, to: string): number => Date.parse(to) - Date.parse(from);
export const MINUTE_MS = 60_000;
