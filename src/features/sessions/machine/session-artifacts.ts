// References to the spec of a session and to the packets that its agents get (S4-59).

import { type ArtifactRef } from '../../../core/contract/artifact-ref.js';
import { sha256 } from '../../../core/contract/hash.js';
import { canonicalJson } from '../../../core/contract/json.js';
import type { NextStep } from '../contract/session-answer.js';
import type { SessionSpec } from '../contract/session-spec.js';

const specs = new WeakMap<SessionSpec, ArtifactRef>();

/**
 * A reference to the session's current spec, by the hash of its canonical JSON. A spec may be large, so it is hashed
 * once.
 */
export function specRef(spec: SessionSpec, case_id: string | null): ArtifactRef {
  const ref = specs.get(spec) ?? refOf('session_spec', canonicalJson(spec), case_id);
  specs.set(spec, ref);
  return ref;
}

/**
 * A reference to the step for which an agent run was started, by the hash of its canonical JSON without the proof. The
 * step is derived from the spec, so the packet itself is not stored.
 */
export const packetRef = (step: NextStep, spec: SessionSpec, case_id: string | null): ArtifactRef => ({
  ...refOf('step_packet', canonicalJson(step), case_id),
  lineage: { derived_from: [specRef(spec, case_id).artifact_id], transformation: 'step of the session' },
});

function refOf(artifact_kind: string, text: string, case_id: string | null): ArtifactRef {
  const hash_sha256 = sha256(text);
  const ref = { artifact_id: `sha256:${hash_sha256}`, artifact_kind, hash_sha256, byte_size: Buffer.byteLength(text) };
  return case_id === null ? { ...ref, scope: 'system' } : { ...ref, scope: 'case', case_id };
}
