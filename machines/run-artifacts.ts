// References to the content that an orchestrator or agent run was started with and has produced (S4-59, S4-61, C91).

import type { ArtifactRef } from '../src/core/contract/artifact-ref.js';
import { optionalValues } from '../src/core/contract/policy/pins.js';
import type { OpeningInput } from '../src/core/contract/run/entry.js';

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
