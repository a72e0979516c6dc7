// What an orchestrator or agent run was started with and what it has produced, as references (S4-59, S4-61, C91). The
// lists are empty in trees without behaviour flag 12, and their entries are as they were.

import type { ArtifactRef } from '../src/contract/artifact-ref.js';
import { canonicalJson } from '../src/contract/canonical-json.js';
import { sha256 } from '../src/contract/hash.js';
import type { OpeningInput } from '../src/contract/run/entry.js';
import type { NextStep } from '../src/contract/session/session-answer.js';
import type { SessionSpec } from '../src/contract/session/session-spec.js';

/** An audit event holds 64 references; of what a run has produced the last ones are named. */
const REFS_MAX = 64;

/** `known`, and what of `more` is not in it; of too many the last ones. */
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
  ...notes,
];

const specs = new WeakMap<SessionSpec, ArtifactRef>();

/** The spec of a session as it stands, by the hash of its canonical JSON. A spec may be large: it is hashed once. */
export function specRef(spec: SessionSpec, case_id: string | null): ArtifactRef {
  const ref = specs.get(spec) ?? refOf('session_spec', canonicalJson(spec), case_id);
  specs.set(spec, ref);
  return ref;
}

/**
 * The step that an agent run was started for, by the hash of its canonical JSON. It is made of the spec, so it is named
 * and not stored; its proof is no part of it.
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
