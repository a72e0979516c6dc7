// The vocabulary of sessions (S3): their states, the steps they issue, and the reasons for which they stop.

import Type, { type Static } from 'typebox';
import { closed, Nullable, OneOf, Sha256 } from '../../../core/contract/shapes.js';

/** A maintainer can resume a `failed` session, but not a `completed` or `ended` one (C77). */
export const SESSION_STATUSES = ['running', 'paused', 'completed', 'failed', 'ended'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

/** S3-03. */
export const STEP_TYPES = [
  'implement_task',
  'execute_verification',
  'run_fidelity_gate',
  'address_fidelity_feedback',
  'pause',
  'complete_spec',
] as const;
export type StepType = (typeof STEP_TYPES)[number];

/** The step types that an agent reports on; `pause` and `complete_spec` need no report (C66). */
export const REPORTED_STEP_TYPES = STEP_TYPES.slice(0, 4) as readonly ReportedStepType[];
export type ReportedStepType = Exclude<StepType, 'pause' | 'complete_spec'>;

/** S3-15. */
export const STEP_OUTCOMES = ['success', 'failure', 'skipped'] as const;
export type StepOutcome = (typeof STEP_OUTCOMES)[number];

export const PAUSE_REASONS = [
  'user',
  'context_limit',
  'error_threshold',
  'blocked',
  'gate_failed',
  'gate_review_required',
  'task_limit',
  'heartbeat_stale',
  'step_stale',
  'phase_complete',
  'fidelity_cycle_limit',
] as const;
export type PauseReason = (typeof PAUSE_REASONS)[number];

export const FAILURE_REASONS = [
  'spec_not_found',
  'spec_structure_changed',
  'activation_denied',
  'state_corrupt',
  'migration_failed',
] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** Signals that tell an agent's loop to stop; without one it continues (C75). */
export const LOOP_SIGNALS = [
  'phase_complete',
  'spec_complete',
  'paused_needs_attention',
  'failed',
  'blocked_runtime',
] as const;
export type LoopSignal = (typeof LOOP_SIGNALS)[number];

/** The roles of callers. An unknown role counts as observer. */
export const SESSION_ROLES = ['autonomy_runner', 'maintainer', 'observer'] as const;
export type SessionRole = (typeof SESSION_ROLES)[number];

/** Why a maintainer ended a session or waived a gate. */
export const OVERRIDE_REASONS = [
  'stuck_agent',
  'corrupt_state',
  'operator_override',
  'incident_response',
  'testing',
] as const;
export type OverrideReason = (typeof OVERRIDE_REASONS)[number];

export const POSTURES = ['unattended', 'supervised', 'debug'] as const;
export type Posture = (typeof POSTURES)[number];

export const GATE_POLICIES = ['strict', 'lenient', 'manual'] as const;
export type GatePolicy = (typeof GATE_POLICIES)[number];

export const GATE_VERDICTS = ['pass', 'fail', 'warn'] as const;
export type GateVerdict = (typeof GATE_VERDICTS)[number];

const count = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });

/** How far a session may go before it needs a person. */
export const SessionLimits = Type.Object(
  {
    /** Per activation (C74). */
    max_tasks_per_session: count(1, 100_000),
    /** Consecutive failed steps; gates do not count. */
    max_consecutive_errors: count(1, 1_000),
    /** Skipped tasks until a maintainer resumes the session (C73). */
    max_skips: count(0, 100_000),
    context_threshold_pct: count(1, 100),
    heartbeat_stale_minutes: count(1, 10_080),
    heartbeat_grace_minutes: count(0, 10_079),
    step_stale_minutes: count(1, 10_080),
    /** Failed evaluations of a phase's gate (C71). */
    max_fidelity_review_cycles_per_phase: count(1, 100),
    /** Rejected reports for one step before the session stops (C64). */
    max_refused_reports: count(1, 100),
    /** The estimated growth of the agent's context per step, in percent, if the agent reports no figure. */
    avg_pct_per_step: count(1, 20),
    /**
     * After this many equal figures in a row, the figure is no longer trusted and `context_staleness_penalty_pct` is
     * added.
     */
    context_staleness_threshold: count(2, 100),
    context_staleness_penalty_pct: count(1, 20),
    /** A decrease to below this figure means a fresh context; any other decrease is not trusted. */
    context_reset_threshold_pct: count(0, 50),
  },
  closed,
);
export type SessionLimits = Static<typeof SessionLimits>;

export const SESSION_LIMITS: SessionLimits = {
  max_tasks_per_session: 100,
  max_consecutive_errors: 3,
  max_skips: 20,
  context_threshold_pct: 85,
  heartbeat_stale_minutes: 10,
  heartbeat_grace_minutes: 5,
  step_stale_minutes: 60,
  max_fidelity_review_cycles_per_phase: 3,
  max_refused_reports: 3,
  avg_pct_per_step: 3,
  context_staleness_threshold: 5,
  context_staleness_penalty_pct: 5,
  context_reset_threshold_pct: 10,
};

/** The settings of a session, fixed at its start. */
export const SessionSettings = Type.Object(
  {
    posture: OneOf(POSTURES),
    gate_policy: OneOf(GATE_POLICIES),
    /** Whether the gates of a phase must be satisfied before the next phase and before completion. */
    enforce_gates: Type.Boolean(),
    allow_gate_waiver: Type.Boolean(),
    /** Whether a phase with skipped tasks can pass its gate (C73). */
    allow_skipped: Type.Boolean(),
    stop_on_phase_completion: Type.Boolean(),
    auto_retry_fidelity_gate: Type.Boolean(),
    limits: SessionLimits,
  },
  closed,
);
export type SessionSettings = Static<typeof SessionSettings>;

type PostureSettings = Omit<SessionSettings, 'posture' | 'limits'> & {
  readonly limits: Pick<
    SessionLimits,
    'max_tasks_per_session' | 'max_consecutive_errors' | 'max_fidelity_review_cycles_per_phase'
  >;
};

/** The settings of each posture, used where the caller sets none. */
export const POSTURE_SETTINGS: Readonly<Record<Posture, PostureSettings>> = {
  unattended: {
    gate_policy: 'strict',
    enforce_gates: true,
    allow_gate_waiver: false,
    allow_skipped: false,
    stop_on_phase_completion: true,
    auto_retry_fidelity_gate: true,
    limits: { max_tasks_per_session: 100, max_consecutive_errors: 3, max_fidelity_review_cycles_per_phase: 3 },
  },
  supervised: {
    gate_policy: 'strict',
    enforce_gates: true,
    allow_gate_waiver: true,
    allow_skipped: false,
    stop_on_phase_completion: true,
    auto_retry_fidelity_gate: true,
    limits: { max_tasks_per_session: 100, max_consecutive_errors: 5, max_fidelity_review_cycles_per_phase: 3 },
  },
  debug: {
    gate_policy: 'manual',
    enforce_gates: false,
    allow_gate_waiver: true,
    allow_skipped: true,
    stop_on_phase_completion: false,
    auto_retry_fidelity_gate: false,
    limits: { max_tasks_per_session: 250, max_consecutive_errors: 20, max_fidelity_review_cycles_per_phase: 10 },
  },
};

/** S3-28: the result of a verification, issued by the platform that ran it (C68). */
export const VerificationReceipt = Type.Object(
  {
    /** SHA-256 of the canonical JSON of the command's argument array. */
    command_hash: Sha256,
    exit_code: Type.Integer({ minimum: 0, maximum: 255 }),
    /** SHA-256 of the output, both streams in order of arrival. */
    output_digest: Sha256,
    /** ISO 8601 with an offset. */
    issued_at: Type.String({ maxLength: 40 }),
    step_id: Type.String({ maxLength: 160 }),
  },
  closed,
);
export type VerificationReceipt = Static<typeof VerificationReceipt>;

/** One objection of a reviewer. */
export const GateFinding = Type.Object(
  {
    severity: OneOf(['error', 'warning', 'info']),
    message: Type.String({ minLength: 1, maxLength: 2_000 }),
    file: Type.Optional(Type.String({ maxLength: 1_024 })),
    line: Type.Optional(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type GateFinding = Static<typeof GateFinding>;
export const GATE_FINDINGS_MAX = 100;

/** The result of a review. `checksum` binds it to its step: HMAC-SHA256 with a key of this home, in hex (C69). */
export const GateEvidence = Type.Object(
  {
    gate_attempt_id: Type.String({ maxLength: 160 }),
    step_id: Type.String({ maxLength: 160 }),
    phase_id: Type.String({ maxLength: 120 }),
    verdict: OneOf(GATE_VERDICTS),
    findings: Type.Array(GateFinding, { maxItems: GATE_FINDINGS_MAX }),
    issued_at: Type.String({ maxLength: 40 }),
    checksum: Nullable(Sha256),
  },
  closed,
);
export type GateEvidence = Static<typeof GateEvidence>;
