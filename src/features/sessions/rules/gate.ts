// Gates: the meaning of a review under each policy, and an audit that relies on the spec and not on the session's
// status.

import { OVERRIDE_REASONS, type GateEvidence, type GatePolicy, type GateVerdict } from '../contract/session.js';
import type { SpecPhase } from '../contract/session-spec.js';
import { gateOf, hasEnforcedGate } from './task-progress.js';
import type { GateRecord, SessionState } from './session-state.js';

/** Whether a verdict passes under a policy; null if a person must decide (C72). */
export function isPassingVerdict(policy: GatePolicy, verdict: GateVerdict): boolean | null {
  switch (policy) {
    case 'strict':
      return verdict === 'pass';
    case 'lenient':
      return verdict !== 'fail';
    case 'manual':
      return null;
  }
}

/** The input of the evidence checksum (C69): a list, so that no text can move from one part to the next. */
export const checksumParts = (
  session_id: string,
  { gate_attempt_id, step_id, phase_id, verdict }: Omit<GateEvidence, 'findings' | 'issued_at' | 'checksum'>,
): readonly string[] => ['v2', session_id, gate_attempt_id, step_id, phase_id, verdict];

export const gateRecord = (
  status: GateRecord['status'],
  evidence: Pick<GateEvidence, 'verdict' | 'gate_attempt_id'>,
  evaluated_at: string,
): GateRecord => ({
  status,
  verdict: evidence.verdict,
  gate_attempt_id: evidence.gate_attempt_id,
  evaluated_at,
  waiver: null,
});

/** Marks the gate of this phase as pending, so that it is reviewed again. */
export const reopenGate = (gates: SessionState['gates'], phase_id: string): SessionState['gates'] =>
  Object.fromEntries(Object.entries(gates).filter(([id]) => id !== phase_id));

/** Counts a failed evaluation of the phase's gate (C71). */
export const countFailedCycle = ({ cycles }: SessionState, phase_id: string): SessionState['cycles'] => ({
  phase_id,
  count: cycles.phase_id === phase_id ? cycles.count + 1 : 1,
});

export interface GateAuditFinding {
  readonly phase_id: string;
  readonly problem: 'missing_record' | 'invalid_status' | 'tampered';
}

/**
 * Determines from the spec which gates must be satisfied up to and including `phase_id` (null: all), and checks the
 * records against them. It trusts neither the order of events nor a status alone.
 */
export function auditGates(state: SessionState, phase_id: string | null): readonly GateAuditFinding[] {
  const { phases } = state.spec;
  const last = phase_id === null ? phases.length - 1 : phases.findIndex(({ id }) => id === phase_id);
  return phases.slice(0, last + 1).flatMap((phase) => {
    if (!hasEnforcedGate(state, phase)) return [];
    const problem = Object.hasOwn(state.gates, phase.id) ? recordProblem(state, phase) : 'missing_record';
    return problem === null ? [] : [{ phase_id: phase.id, problem }];
  });
}

/** Checks that the rules could have produced the record: its reason or verdict must be one that the settings allow. */
function recordProblem(state: SessionState, phase: SpecPhase): GateAuditFinding['problem'] | null {
  const { status, waiver, gate_attempt_id, verdict } = gateOf(state, phase);
  const { allow_gate_waiver, gate_policy } = state.settings;
  if (status === 'waived') {
    return allow_gate_waiver && waiver !== null && OVERRIDE_REASONS.includes(waiver.reason_code) ? null : 'tampered';
  }
  if (status !== 'passed') return 'invalid_status';
  if (gate_attempt_id === null || verdict === null || waiver !== null) return 'tampered';
  // A person may pass a gate after any verdict of a reviewer.
  const isPassing = phase.gate?.reviewer === 'manual' ? null : isPassingVerdict(gate_policy, verdict);
  return isPassing === false ? 'tampered' : null;
}
