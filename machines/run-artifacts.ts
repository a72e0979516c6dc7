// References to the content that an orchestrator or agent run was started with and has produced (S4-59, S4-61, C91).

import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import { canonicalJson } from '../src/core/contract/canonical-json.js';
import { sha256 } from '../src/core/contract/hash.js';
import { optionalValues } from '../src/core/contract/policy/pins.js';
import type { OpeningInput } from '../src/core/contract/run/entry.js';
import type { NextStep } from '../src/core/contract/session/session-answer.js';
import type { SessionSpec } from '../src/core/contract/session/session-spec.js';

/** An audit event contains at most 64 references; of a run's products, the last ones are listed. */
const REFS_MAX = 64;

/** Appends the references of `more` that are not in `known`, and keeps only the last ones if there are too many. */
export function withRefs(known: readonly ArtifactRef[], more: readonly ArtifactRef[]): readonly ArtifactRef[] {
  if (more.length === 0) return known;
  const added = more.filter(({ artifact_id }) => !known.some((ref) => ref.artifact_id === artifact_id));
  return added.length === 0 ? known : [...known, ...added].slice(-REFS_MAX);
}

/** The pinned configuration of a tree: policies, machines, and the texts that its scope names by hash. */
export const configurationOf = ({ policies, machines, notes = [] }: OpeningInput): readonly ArtifactRef[] => [
  policies.lanes.artifact,
  policies.roles.artifact,
  policies.actions.artifact,
  machines,
  ...optionalValues(policies).map(({ artifact }) => artifact),
  ...notes,
];

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
