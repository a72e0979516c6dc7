// Step proofs and checksums of gate evidence. They are computed outside the kernel, which sees only their hashes (D10,
// C69).

import { timingSafeEqual } from 'node:crypto';
import type { GateEvidence } from '../contract/session.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { SessionVouch } from '../contract/session-records.js';
import type { Secrets } from '../../../core/contract/secrets.js';
import { nextIssue, type SessionState } from './session-state.js';

/** The proof of one issue of a step, base64url. It is computed again on each request and never stored. */
export const stepProof = (secrets: Secrets, session_id: string, step_id: string, issue: number): string =>
  secrets.computeMac('step_proof', [session_id, step_id, issue]).toString('base64url');

type EvidenceIdentity = Pick<GateEvidence, 'gate_attempt_id' | 'step_id' | 'phase_id' | 'verdict'>;

/** The checksum in lower-case hex (C69). Its input is a list, so that no text can move from one part to the next. */
export const evidenceChecksum = (
  secrets: Secrets,
  session_id: string,
  { gate_attempt_id, step_id, phase_id, verdict }: EvidenceIdentity,
): string =>
  secrets.computeMac('gate_evidence', ['v2', session_id, gate_attempt_id, step_id, phase_id, verdict]).toString('hex');

/** A missing checksum counts as wrong. */
export function isEvidenceIntact(secrets: Secrets, session_id: string, evidence: GateEvidence): boolean {
  const expected = Buffer.from(evidenceChecksum(secrets, session_id, evidence));
  const found = Buffer.from(evidence.checksum ?? '');
  return found.length === expected.length && timingSafeEqual(found, expected);
}

/** The key-dependent facts of a command: the kernel has no key and trusts the shell for them. */
export function createSessionVouch(
  session_id: string,
  session: SessionState | null,
  command: string,
  secrets: Secrets,
): SessionVouch {
  const { step_id, issue } = session === null ? { step_id: session_id, issue: 1 } : nextIssue(session, command);
  const evidence = session?.evidence ?? null;
  return {
    issue: { step_id, issue, proof_sha256: sha256(stepProof(secrets, session_id, step_id, issue)) },
    evidence_intact: evidence === null ? null : isEvidenceIntact(secrets, session_id, evidence),
  };
}
