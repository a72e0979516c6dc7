// The answer of a session. MCP, HTTP and the command line return the same object.

import type {
  FailureReason,
  GateFinding,
  GateVerdict,
  LoopSignal,
  PauseReason,
  SessionStatus,
  StepType,
  VerificationReceipt,
} from './session.js';

interface ErrorClass {
  readonly type: 'validation' | 'authorization' | 'not_found' | 'conflict' | 'unavailable';
  readonly message: string;
}

/** Every error code of a session with its one text. The spellings with `ERROR_` are those of S3 (C62). */
export const SESSION_ERRORS = {
  VALIDATION_ERROR: { type: 'validation', message: 'The request does not have the form that is asked for' },
  STEP_RESULT_REQUIRED: {
    type: 'validation',
    message: 'A step is outstanding: report it in last_step_result, or ask for it again with replay',
  },
  STEP_MISMATCH: { type: 'conflict', message: 'The report is not about the outstanding step' },
  STEP_PROOF_MISSING: {
    type: 'validation',
    message: 'The report lacks step_proof: send the whole last_step_result, with the proof as it was given',
  },
  STEP_PROOF_MISMATCH: { type: 'conflict', message: 'step_proof is not the proof of the outstanding step' },
  STEP_PROOF_CONFLICT: { type: 'conflict', message: 'This proof was used for another report' },
  STEP_PROOF_EXPIRED: { type: 'conflict', message: 'This proof was used, and the time to repeat the report is over' },
  ERROR_VERIFICATION_RECEIPT_MISSING: {
    type: 'validation',
    message: 'The report lacks verification_receipt: run the verification and send the receipt that it returns',
  },
  ERROR_VERIFICATION_RECEIPT_INVALID: {
    type: 'validation',
    message: 'verification_receipt is not the receipt that was issued for this step, or contradicts the outcome',
  },
  INVALID_GATE_EVIDENCE: {
    type: 'conflict',
    message: 'There is no review of this step with this gate_attempt_id: call the fidelity-gate review first',
  },
  ERROR_GATE_INTEGRITY_CHECKSUM: { type: 'conflict', message: 'The evidence of the gate is not intact' },
  REQUIRED_GATE_UNSATISFIED: { type: 'conflict', message: 'A required gate is not satisfied' },
  GATE_AUDIT_FAILURE: { type: 'conflict', message: 'The gates do not agree with the spec' },
  GATE_BLOCKED: { type: 'conflict', message: 'The gate cannot be run now' },
  MANUAL_GATE_ACK_REQUIRED: {
    type: 'conflict',
    message: 'A person has to acknowledge the gate: resume with its gate_attempt_id and a decision',
  },
  INVALID_GATE_ACK: { type: 'conflict', message: 'No gate waits for this acknowledgement' },
  SPEC_REBASE_REQUIRED: { type: 'conflict', message: 'The structure of the spec has changed: rebase the session' },
  REBASE_COMPLETED_TASKS_REMOVED: {
    type: 'conflict',
    message: 'The new spec lacks tasks that are completed: keep them, or force the rebase',
  },
  SESSION_UNRECOVERABLE: { type: 'conflict', message: 'The session has failed: a maintainer has to look at it' },
  SPEC_SESSION_EXISTS: { type: 'conflict', message: 'The spec has a session that has not ended' },
  INVALID_STATE_TRANSITION: { type: 'conflict', message: 'The session cannot do this in its present state' },
  AUTHORIZATION: { type: 'authorization', message: 'This role may not do this' },
  AGENT_BUSY: { type: 'unavailable', message: 'Something of this step is still being done: ask again' },
  CHECK_FAILED: { type: 'unavailable', message: 'The verification or review came to no result: ask for it again' },
  NO_ACTIVE_SESSION: { type: 'not_found', message: 'There is no such session' },
  NOT_FOUND: { type: 'not_found', message: 'There is nothing of the kind' },
} as const satisfies Record<string, ErrorClass>;
export type SessionErrorCode = keyof typeof SESSION_ERRORS;

export interface SessionError {
  readonly code: SessionErrorCode;
  readonly error_type: ErrorClass['type'];
  readonly message: string;
  /** The fields or tasks concerned: names and constants. */
  readonly details: readonly string[];
}

export interface NextStep {
  readonly step_id: string;
  readonly type: StepType;
  readonly phase_id: string | null;
  readonly task_id: string | null;
  readonly task_title: string | null;
  /** The complete instruction, never empty (C63). */
  readonly instruction: string;
  /** Useful tools, in order. */
  readonly instructions: readonly { readonly tool: string; readonly action: string; readonly description: string }[];
  /** Why the session pauses. */
  readonly reason: PauseReason | null;
  /** The agent run that gets the proposals for this step; null if the step has no run. */
  readonly run_id: string | null;
  readonly lane_id: string | null;
  /** Findings that the step must address. */
  readonly findings: readonly GateFinding[];
  /** The agent returns it unchanged; absent if the step needs no report (C66). */
  readonly step_proof?: string;
  /** For the shell only, which makes the step proof from it: the issue number of this step. */
  readonly issue?: number;
}

export interface RecommendedAction {
  readonly action: string;
  readonly description: string;
  readonly command: string | null;
}

/** The summary that the agent's loop passes on when it stops (S3-38, S3-40). */
export interface ExitPacket {
  readonly spec_id: string;
  readonly session_id: string;
  readonly final_status: SessionStatus;
  readonly loop_signal: LoopSignal | null;
  readonly pause_reason: PauseReason | null;
  readonly active_phase_id: string | null;
  readonly last_step_id: string | null;
  readonly gates_satisfied: readonly string[];
  readonly steps_executed: number;
  readonly summary: string;
  readonly details: {
    readonly response_success: boolean;
    readonly error_code: SessionErrorCode | null;
    readonly recommended_actions: readonly RecommendedAction[];
  };
}

/** The state of a session after an operation, with the next step of its agent. */
export interface SessionData {
  readonly session_id: string;
  readonly spec_id: string;
  readonly status: SessionStatus;
  readonly state_version: number;
  readonly pause_reason: PauseReason | null;
  readonly failure_reason: FailureReason | null;
  readonly active_phase_id: string | null;
  readonly next_step: NextStep | null;
  readonly required_phase_gates: readonly string[];
  readonly satisfied_gates: readonly string[];
  readonly missing_required_gates: readonly string[];
  readonly loop_signal: LoopSignal | null;
  readonly recommended_actions: readonly RecommendedAction[];
  readonly warnings: readonly string[];
  /** Result of `verify`. */
  readonly verification_receipt: VerificationReceipt | null;
  /** Result of `verify`: the output of the command, truncated. */
  readonly output: string | null;
  /** Result of `review`. */
  readonly review: {
    readonly gate_attempt_id: string;
    readonly verdict: GateVerdict;
    readonly findings: readonly GateFinding[];
    readonly gate_policy: string;
    readonly gate_passed_preview: boolean;
  } | null;
  /** The summary to pass on, if the loop stops; else null. */
  readonly exit_packet: ExitPacket | null;
}

/** The result of an operation on a session. A refused operation has `success: false` and an error. */
export type SessionAnswer =
  | { readonly success: true; readonly data: SessionData; readonly error: null }
  | { readonly success: false; readonly data: SessionData | null; readonly error: SessionError };
