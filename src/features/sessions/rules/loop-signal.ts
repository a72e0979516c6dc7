// The meaning of an answer for the agent's loop, and the recommended actions for people.

import type { LoopSignal, PauseReason } from '../contract/session.js';
import type { RecommendedAction, SessionErrorCode } from '../contract/session-answer.js';
import type { SessionState } from './session-state.js';

/** After these codes the agent's loop must end, in any state of the session (S3-18, S3-25, S3-26, S3-32). */
const BLOCKING_CODES: ReadonlySet<SessionErrorCode> = new Set([
  'REQUIRED_GATE_UNSATISFIED',
  'GATE_AUDIT_FAILURE',
  'ERROR_GATE_INTEGRITY_CHECKSUM',
  'AUTHORIZATION',
  'STEP_PROOF_MISSING',
  'STEP_PROOF_MISMATCH',
  'STEP_PROOF_CONFLICT',
  'STEP_PROOF_EXPIRED',
  'ERROR_VERIFICATION_RECEIPT_MISSING',
  'ERROR_VERIFICATION_RECEIPT_INVALID',
]);

/** Maximum attempts with missing evidence before the runtime counts as broken. */
const EVIDENCE_ATTEMPTS_MAX = 3;

/** The first matching rule; null: the loop continues (C75). */
export function loopSignal(
  { status, pause_reason, outstanding }: Pick<SessionState, 'status' | 'pause_reason' | 'outstanding'>,
  error: SessionErrorCode | null,
): LoopSignal | null {
  if (pause_reason === 'phase_complete') return 'phase_complete';
  if (status === 'completed') return 'spec_complete';
  if (error !== null && BLOCKING_CODES.has(error)) return 'blocked_runtime';
  if (error === 'INVALID_GATE_EVIDENCE' && (outstanding?.refused ?? 0) >= EVIDENCE_ATTEMPTS_MAX)
    return 'blocked_runtime';
  if (status === 'failed' || error === 'SESSION_UNRECOVERABLE') return 'failed';
  // A person has stopped the session, temporarily or permanently.
  if (status === 'paused' || status === 'ended') return 'paused_needs_attention';
  return null;
}

const advice = (action: string, description: string, command: string | null = null): RecommendedAction => ({
  action,
  description,
  command,
});
const REPLAY = advice('replay_outstanding_step', 'Ask for the step again with replay');
const FRESH_PROOF = advice('request_fresh_step_proof', 'Ask for the step again with replay');
const FRESH_RECEIPT = advice('regenerate_verification_receipt', 'Run the verification and send its receipt');
const ACKNOWLEDGE = advice('acknowledge_manual_gate_review', 'A person has to decide', 'session ack');

const ON_PAUSE: Readonly<Record<PauseReason, readonly RecommendedAction[]>> = {
  user: [advice('resume_session', 'Somebody has paused the session', 'session resume')],
  context_limit: [advice('resume_in_fresh_context', "The agent's context is full", 'session resume')],
  error_threshold: [
    advice('inspect_recent_failures', 'Too many steps failed in a row', 'session packets'),
    advice('reset_session_if_needed', 'End the session if it cannot go on', 'session end'),
  ],
  blocked: [
    advice('resolve_task_blockers', 'Nothing can be started', 'session status'),
    advice('rebase_session_to_spec', 'Mend the spec, then rebase', 'session rebase'),
  ],
  gate_failed: [advice('review_gate_findings', 'The gate of the phase has failed', 'session packets')],
  gate_review_required: [ACKNOWLEDGE],
  task_limit: [advice('start_followup_session', 'Enough for one go', 'session resume')],
  heartbeat_stale: [advice('refresh_heartbeat_or_resume', 'Nobody was heard of', 'session resume')],
  step_stale: [advice('replay_or_reset_stale_step', 'A step took too long', 'session resume')],
  phase_complete: [advice('continue_with_next_phase', 'A phase is complete', 'session resume')],
  fidelity_cycle_limit: [
    advice(
      'escalate_fidelity_cycle_limit',
      'The gate has failed too often: look at its findings, then resume or waive',
      'session waive',
    ),
  ],
};

const ON_ERROR: Readonly<Partial<Record<SessionErrorCode, RecommendedAction>>> = {
  STEP_RESULT_REQUIRED: REPLAY,
  STEP_MISMATCH: REPLAY,
  STEP_PROOF_MISSING: FRESH_PROOF,
  STEP_PROOF_MISMATCH: FRESH_PROOF,
  STEP_PROOF_CONFLICT: FRESH_PROOF,
  STEP_PROOF_EXPIRED: FRESH_PROOF,
  ERROR_VERIFICATION_RECEIPT_MISSING: FRESH_RECEIPT,
  ERROR_VERIFICATION_RECEIPT_INVALID: FRESH_RECEIPT,
  INVALID_GATE_EVIDENCE: advice('request_fresh_gate_evidence', 'Have the gate reviewed, then report its attempt'),
  ERROR_GATE_INTEGRITY_CHECKSUM: advice('rerun_gate_with_fresh_evidence', 'Have the gate reviewed again'),
  REQUIRED_GATE_UNSATISFIED: advice('satisfy_or_waive_required_gate', 'A gate is not satisfied', 'session waive'),
  GATE_AUDIT_FAILURE: advice('satisfy_or_waive_required_gate', 'A gate is not as the spec wants it'),
  SPEC_REBASE_REQUIRED: advice('rebase_session_to_spec', 'The spec has changed', 'session rebase'),
  AUTHORIZATION: advice('use_authorized_role', 'Another role has to do this'),
  MANUAL_GATE_ACK_REQUIRED: ACKNOWLEDGE,
};

const ON_FAILURE: readonly RecommendedAction[] = [
  advice('collect_failure_context', 'See why the session failed', 'session status'),
  advice('reset_or_restart_session', 'Rebase it, resume it by force, or end it'),
];

/** Of two with the same action, the later one counts, in the place of the earlier. */
export function recommendedActions(
  { status, pause_reason }: Pick<SessionState, 'status' | 'pause_reason'>,
  error: SessionErrorCode | null,
): readonly RecommendedAction[] {
  const all = [
    (error === null ? undefined : ON_ERROR[error]) ?? [],
    pause_reason === null ? [] : ON_PAUSE[pause_reason],
    status === 'failed' ? ON_FAILURE : [],
  ].flat();
  return [...new Map(all.map((one) => [one.action, one])).values()];
}
