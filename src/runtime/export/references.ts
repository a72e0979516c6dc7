import type { ArtifactRef } from '../../contract/artifact-ref.js';
import type { AuditEvent } from '../../contract/run/audit-event.js';

/** Every reference that an audit event holds. */
export const referencesOfEvent = ({
  input_artifacts,
  output_artifacts,
  target,
}: AuditEvent): readonly ArtifactRef[] => [
  ...(input_artifacts ?? []),
  ...(output_artifacts ?? []),
  ...(target?.artifact_ref === undefined ? [] : [target.artifact_ref]),
];
