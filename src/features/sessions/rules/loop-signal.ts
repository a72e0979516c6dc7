// The meaning of an answer for the agent's loop, and the recommended actions for people.

import type { LoopSignal, PauseReason } from '../contract/session.js';
import type { RecommendedAction, SessionErrorCode } from '../contract/session-answer.js';
import type { SessionState } from './session-state.js';

/** After these codes the agent's loop must end, in any state of the session (S3-18, S3-25, S3-26, S3-32). */
const BLOCKING_CODES: ReadonlySet<string> = new Set([
  'REQUIRED_GATE_UNSATISFIED',
  'GATE_AUDIT_FAILURE',
  'GATE_INTEGRITY_CHECKSUM',
  'AUTHORIZATION',
  'STEP_PROOF_MISSING',
  'STEP_PROOF_MISMATCH',
  'STEP_PROOF_CONFLICT',
  'STEP_PROOF_EXPIRED',
  'VERIFICATION_RECEIPT_MISSING',
  'VERIFICATION_RECEIPT_INVALID',
]);

/** Codes with and without their prefix are the same (C62). */
const stripErrorPrefix = (code: SessionErrorCode): string => code.replace(/^ERROR_/, '');

/** Maximum attempts with missing evidence before the runtime counts as broken. */
const EVIDENCE_ATTEMPTS_MAX = 3;

/** The first matching rule; null: the loop continues (C75). */
export function loopSignal(
  { status, pause_reason, outstanding }: Pick<SessionState, 'status' | 'pause_reason' | 'outstanding'>,
  error: SessionErrorCode | null,
): LoopSignal | null {
  if (pause_reason === 'phase_complete') return 'phase_complete';
  if (status === 'completed') return 'spec_complete';
  if (error !== null && BLOCKING_CODES.has(stripErrorPrefix(error))) return 'blocked_runtime';
  if (error === 'INVALID_GATE_EVIDENCE' && (outstanding?.refused ?? 0) >= EVIDENCE_ATTEMPTS_MAX)
    return 'blocked_runtime';
  if (status === 'failed' || error === 'SESSION_UNRECOVERABLE') return 'failed';
  // A person has stopped the session, temporarily or permanently.
  if (status === 'paused' || status === 'ended') return 'paused_needs_attention';
  return null;
}

type Advice = Omit<RecommendedAction, 'command'> & { readonly command?: string };

const ON_PAUSE: Readonly<Record<PauseReason, readonly Advice[]>> = {
  user: [{ action: 'resume_session', description: 'Somebody has paused the session', command: 'session resume' }],
  context_limit: [
    { action: 'resume_in_fresh_context', description: "The agent's context is full", command: 'session resume' },
  ],
  error_threshold: [
    { action: 'inspect_recent_failures', description: 'Too many steps failed in a row', command: 'session packets' },
    { action: 'reset_session_if_needed', description: 'End the session if it cannot go on', command: 'session end' },
  ],
  blocked: [
    { action: 'resolve_task_blockers', description: 'Nothing can be started', command: 'session status' },
    { action: 'rebase_session_to_spec', description: 'Mend the spec, then rebase', command: 'session rebase' },
  ],
  gate_failed: [
    { action: 'review_gate_findings', description: 'The gate of the phase has failed', command: 'session packets' },
  ],
  gate_review_required: [
    { action: 'acknowledge_manual_gate_review', description: 'A person has to decide', command: 'session ack' },
  ],
  task_limit: [{ action: 'start_followup_session', description: 'Enough for one go', command: 'session resume' }],
  heartbeat_stale: [
    { action: 'refresh_heartbeat_or_resume', description: 'Nobody was heard of', command: 'session resume' },
  ],
  step_stale: [
    { action: 'replay_or_reset_stale_step', description: 'A step took too long', command: 'session resume' },
  ],
  phase_complete: [
    { action: 'continue_with_next_phase', description: 'A phase is complete', command: 'session resume' },
  ],
  fidelity_cycle_limit: [
    {
      action: 'escalate_fidelity_cycle_limit',
      description: 'The gate has failed too often: look at its findings, then resume or waive',
      command: 'session waive',
    },
  ],
};

const ON_ERROR: Readonly<Partial<Record<string, readonly Advice[]>>> = {
  STEP_RESULT_REQUIRED: [{ action: 'replay_outstanding_step', description: 'Ask for the step again with replay' }],
  STEP_MISMATCH: [{ action: 'replay_outstanding_step', description: 'Ask for the step again with replay' }],
  STEP_PROOF_MISSING: [{ action: 'request_fresh_step_proof', description: 'Ask for the step again with replay' }],
  STEP_PROOF_MISMATCH: [{ action: 'request_fresh_step_proof', description: 'Ask for the step again with replay' }],
  STEP_PROOF_CONFLICT: [{ action: 'request_fresh_step_proof', description: 'Ask for the step again with replay' }],
  STEP_PROOF_EXPIRED: [{ action: 'request_fresh_step_proof', description: 'Ask for the step again with replay' }],
  VERIFICATION_RECEIPT_MISSING: [
    { action: 'regenerate_verification_receipt', description: 'Run the verification and send its receipt' },
  ],
  VERIFICATION_RECEIPT_INVALID: [
    { action: 'regenerate_verification_receipt', description: 'Run the verification and send its receipt' },
  ],
  INVALID_GATE_EVIDENCE: [
    { action: 'request_fresh_gate_evidence', description: 'Have the gate reviewed, then report its attempt' },
  ],
  GATE_INTEGRITY_CHECKSUM: [{ action: 'rerun_gate_with_fresh_evidence', description: 'Have the gate reviewed again' }],
  REQUIRED_GATE_UNSATISFIED: [
    { action: 'satisfy_or_waive_required_gate', description: 'A gate is not satisfied', command: 'session waive' },
  ],
  GATE_AUDIT_FAILURE: [{ action: 'satisfy_or_waive_required_gate', description: 'A gate is not as the spec wants it' }],
  SPEC_REBASE_REQUIRED: [
    { action: 'rebase_session_to_spec', description: 'The spec has changed', command: 'session rebase' },
  ],
  AUTHORIZATION: [{ action: 'use_authorized_role', description: 'Another role has to do this' }],
  MANUAL_GATE_ACK_REQUIRED: [
    { action: 'acknowledge_manual_gate_review', description: 'A person has to decide', command: 'session ack' },
  ],
};

const ON_FAILURE: readonly Advice[] = [
  { action: 'collect_failure_context', description: 'See why the session failed', command: 'session status' },
  { action: 'reset_or_restart_session', description: 'Rebase it, resume it by force, or end it' },
];

export function recommendedActions(
  { status, pause_reason }: Pick<SessionState, 'status' | 'pause_reason'>,
  error: SessionErrorCode | null,
): readonly RecommendedAction[] {
  const advice = [
    ...(error === null ? [] : (ON_ERROR[stripErrorPrefix(error)] ?? [])),
    ...(pause_reason === null ? [] : ON_PAUSE[pause_reason]),
    ...(status === 'failed' ? ON_FAILURE : []),
  ];
  const byAction = new Map(advice.map((one) => [one.action, one] as const));
  return [...byAction.values()].map(({ action, description, command = null }) => ({ action, description, command }));
}
