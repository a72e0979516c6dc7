// Judges a report from an agent. Every check precedes every change (C64): a rejected report leaves the step outstanding
// and its proof valid.

import Type, { type Static } from 'typebox';
import { type JsonObject, canonicalJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { REPORTED_STEP_TYPES, STEP_OUTCOMES, type GateEvidence, type ReportedStepType } from '../contract/session.js';
import type { SessionErrorCode } from '../contract/session-answer.js';
import { closed, OneOf } from '../../../core/contract/shapes.js';
import { isConforming } from '../../../core/contract/validators.js';
import { verifyReceipt } from './receipt.js';
import { elapsedMs, REPEAT_MS, type ConsumedProof, type OutstandingStep, type SessionState } from './session-state.js';

const Id = Type.String({ minLength: 1, maxLength: 160 });

/** `last_step_result`, without its step proof (S3-04 to S3-15). */
export const StepReport = Type.Object(
  {
    step_id: Id,
    step_type: OneOf(REPORTED_STEP_TYPES),
    outcome: OneOf(STEP_OUTCOMES),
    task_id: Type.Optional(Id),
    phase_id: Type.Optional(Id),
    gate_attempt_id: Type.Optional(Id),
    note: Type.Optional(Type.String({ maxLength: 8_000 })),
    files_touched: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1_024 }), { maxItems: 1_000 })),
    verification_receipt: Type.Optional(Type.Unknown()),
  },
  closed,
);
export type StepReport = Static<typeof StepReport>;

/** The members that each type of step requires besides step_id, step_type and outcome. */
const REQUIRED_FIELDS: Readonly<Record<ReportedStepType, readonly (keyof StepReport)[]>> = {
  implement_task: ['task_id'],
  execute_verification: ['task_id'],
  run_fidelity_gate: ['phase_id', 'gate_attempt_id'],
  address_fidelity_feedback: ['phase_id'],
};

export interface ReportRejection {
  readonly code: SessionErrorCode;
  readonly details: readonly string[];
}
export type ReportJudgement =
  | { readonly kind: 'taken'; readonly report: StepReport; readonly report_sha256: string }
  /** The same report again: returns the same answer and changes nothing. */
  | { readonly kind: 'repeated'; readonly answer: string }
  | { readonly kind: 'refused'; readonly refusal: ReportRejection };

/** The hash of the report's proof, and the facts that the shell has determined. */
export interface ReportFacts {
  readonly proof_sha256: string | null;
  readonly evidence_intact: boolean | null;
  readonly time: string;
}

/** Compares a report with the outstanding step. The order of checks is the contract's; each check has one code. */
export function judgeReport(state: SessionState, given: JsonObject, facts: ReportFacts): ReportJudgement {
  const { proof_sha256, time } = facts;
  const value = omitNulls(given);
  if (proof_sha256 === null) return rejectReport('STEP_PROOF_MISSING');
  const shape = shapeErrors(value);
  if (shape.length > 0) return rejectReport('VALIDATION_ERROR', shape);
  const report = value as unknown as StepReport;
  const report_sha256 = sha256(canonicalJson(value));
  const { outstanding } = state;
  if (outstanding === null || !isSameHash(proof_sha256, outstanding.proof_sha256)) {
    return judgeUsedProof(state.consumed, proof_sha256, report_sha256, time);
  }
  const rejection = bindingRejection(outstanding, report) ?? evidenceRejection(state, outstanding, report, facts);
  return rejection === null ? { kind: 'taken', report, report_sha256 } : { kind: 'refused', refusal: rejection };
}

/** A null member counts as absent. */
const omitNulls = (value: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));

/** Returns all schema errors at once: names of members, never their content. */
function shapeErrors(value: JsonObject): readonly string[] {
  const known = Object.keys(StepReport.properties);
  const unknown = Object.keys(value).some((name) => !known.includes(name)) ? ['unknown members'] : [];
  const wrong = known.filter((name) => {
    const schema = StepReport.properties[name as keyof StepReport];
    const optional = !StepReport.required.includes(name as never);
    return Object.hasOwn(value, name) ? !isConforming(schema, value[name]) : !optional;
  });
  const type = value['step_type'];
  const needed = REPORTED_STEP_TYPES.includes(type as ReportedStepType)
    ? REQUIRED_FIELDS[type as ReportedStepType]
    : [];
  const missing = needed.filter((name) => !Object.hasOwn(value, name)).map((name) => `${name} is required`);
  return [...wrong.map((name) => `${name} is missing or malformed`), ...unknown, ...missing];
}

/** Compares hashes, so that the duration of the comparison reveals nothing about the proof. */
const isSameHash = (a: string, b: string): boolean => a === b;

/** A proof other than the outstanding one was used before, or is unknown. */
function judgeUsedProof(
  consumed: readonly ConsumedProof[],
  proof: string,
  report_sha256: string,
  time: string,
): ReportJudgement {
  const found = consumed.find(({ proof_sha256 }) => isSameHash(proof, proof_sha256));
  if (found === undefined) return rejectReport('STEP_PROOF_MISMATCH');
  if (found.report_sha256 !== report_sha256) return rejectReport('STEP_PROOF_CONFLICT');
  return found.answer === null || elapsedMs(found.consumed_at, time) >= REPEAT_MS
    ? rejectReport('STEP_PROOF_EXPIRED')
    : { kind: 'repeated', answer: found.answer };
}

/** The report must name the issued step, in every identifying member that it has, required or not. */
function bindingRejection({ step, type }: OutstandingStep, report: StepReport): ReportRejection | null {
  const needed = REQUIRED_FIELDS[type];
  const isDifferent = (name: 'task_id' | 'phase_id'): boolean =>
    (needed.includes(name) || report[name] !== undefined) && report[name] !== step[name];
  const differing = [
    ...(report.step_id === step.step_id ? [] : ['step_id']),
    ...(report.step_type === type ? [] : ['step_type']),
    ...(['task_id', 'phase_id'] as const).filter(isDifferent),
    ...(type === 'run_fidelity_gate' || report.gate_attempt_id === undefined ? [] : ['gate_attempt_id']),
  ];
  return differing.length === 0 ? null : { code: 'STEP_MISMATCH', details: differing };
}

function evidenceRejection(
  { evidence }: SessionState,
  outstanding: OutstandingStep,
  report: StepReport,
  { evidence_intact }: ReportFacts,
): ReportRejection | null {
  if (outstanding.type === 'execute_verification') return receiptRejection(outstanding, report);
  if (report.verification_receipt !== undefined) return invalidReceipt(`${outstanding.type} takes no receipt`);
  if (outstanding.type !== 'run_fidelity_gate') return null;
  if (!isEvidenceOf(evidence, outstanding, report)) return { code: 'INVALID_GATE_EVIDENCE', details: [] };
  // A missing checksum counts as wrong (C69).
  return evidence_intact === true ? null : { code: 'ERROR_GATE_INTEGRITY_CHECKSUM', details: [] };
}

const isEvidenceOf = (evidence: GateEvidence | null, { step }: OutstandingStep, { gate_attempt_id }: StepReport) =>
  evidence !== null &&
  evidence.gate_attempt_id === gate_attempt_id &&
  evidence.step_id === step.step_id &&
  evidence.phase_id === step.phase_id;

/**
 * C67, C68: requires the platform's own receipt, equal in every member, and an outcome that agrees with its exit code.
 */
function receiptRejection({ receipt }: OutstandingStep, report: StepReport): ReportRejection | null {
  const { outcome, verification_receipt: given } = report;
  if (outcome === 'skipped') return given === undefined ? null : invalidReceipt('outcome skipped takes no receipt');
  if (given === undefined) return { code: 'ERROR_VERIFICATION_RECEIPT_MISSING', details: [] };
  if (verifyReceipt(given, {}).differing.includes('form')) return invalidReceipt('malformed');
  if (receipt === null) return invalidReceipt('no verification was run for this step');
  const { differing } = verifyReceipt(given, { receipt });
  if (differing.length > 0) return { code: 'ERROR_VERIFICATION_RECEIPT_INVALID', details: differing };
  return (receipt.exit_code === 0) === (outcome === 'success') ? null : invalidReceipt('outcome contradicts exit_code');
}

const invalidReceipt = (reason: string): ReportRejection => ({
  code: 'ERROR_VERIFICATION_RECEIPT_INVALID',
  details: [reason],
});

const rejectReport = (code: SessionErrorCode, details: readonly string[] = []): ReportJudgement => ({
  kind: 'refused',
  refusal: { code, details },
});
