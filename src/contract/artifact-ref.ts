import Type, { type Static } from 'typebox';
import { sha256 } from './hash.js';
import { CaseId, closed, OneOf, RunId, Timestamp } from './shapes.js';

/** How a manifest names content without holding it (S4-10, S4-83). Content is addressed by its SHA-256. */
export const ArtifactRef = Type.Object(
  {
    artifact_id: Type.String({ minLength: 3, maxLength: 120 }),
    artifact_kind: Type.String({ minLength: 2, maxLength: 80 }),
    hash_sha256: Type.String({ pattern: '^[0-9a-fA-F]{64}$' }),
    case_id: Type.Optional(CaseId),
    scope: Type.Optional(OneOf(['case', 'shared', 'system'])),
    storage_locator: Type.Optional(Type.String({ maxLength: 600 })),
    content_type: Type.Optional(Type.String({ maxLength: 120 })),
    byte_size: Type.Optional(Type.Integer({ minimum: 0 })),
    created_at_utc: Type.Optional(Timestamp),
    hash_source: Type.Optional(OneOf(['bytes', 'normalized_text', 'normalized_json'])),
    lineage: Type.Optional(
      Type.Object(
        {
          derived_from: Type.Optional(Type.Array(Type.String({ maxLength: 120 }))),
          transformation: Type.Optional(Type.String({ maxLength: 120 })),
          run_id: Type.Optional(RunId),
        },
        closed,
      ),
    ),
    confidentiality: Type.Optional(
      Type.Object(
        {
          contains_pii: Type.Optional(Type.Boolean()),
          contains_phi: Type.Optional(Type.Boolean()),
          contains_privileged: Type.Optional(Type.Boolean()),
          notes: Type.Optional(Type.String({ maxLength: 300 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type ArtifactRef = Static<typeof ArtifactRef>;

/** What the platform keeps as artifacts. */
export const ARTIFACT_KINDS = [
  'raw_payload',
  'result',
  'file_content',
  'response',
  'policy',
  'machines',
  'request',
  'sanitized_insight',
  'export_bundle',
  'session_spec',
  'session_report',
  'note', // what a person said of a run or session, in words
  'prompt', // what an agent was started with
  'raw_payload_prefix', // the first bytes of a payload over the limit (C80)
] as const;
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];

/** Content together with what it is; `case_id: null` is the platform's own (scope `system`). */
export interface Artifact {
  readonly kind: ArtifactKind;
  readonly case_id: string | null;
  readonly bytes: Uint8Array;
}

/** Why content is not to be had: its case was erased, or a lane keeps it out of evidence bundles. */
export const WITHHOLDING_REASONS = ['erased', 'lane'] as const;
export type WithholdingReason = (typeof WITHHOLDING_REASONS)[number];

/** What decisions are checked by. It belongs to no case, so nothing erases it and no lane withholds it. */
export const SYSTEM_ARTIFACT_KINDS: readonly ArtifactKind[] = ['policy', 'machines'];

/** Whether this content may be missing at all: content of a case may, what decisions are checked by may not. */
export const canBeWithheld = ({ kind, case_id }: Pick<WithheldArtifact, 'kind' | 'case_id'>): boolean =>
  case_id !== null && !SYSTEM_ARTIFACT_KINDS.includes(kind);

/** Whether a reference is to what decisions are checked by: nothing that such a reference names can be withheld. */
export const isSystemRef = ({ artifact_kind, case_id }: ArtifactRef): boolean =>
  case_id === undefined && SYSTEM_ARTIFACT_KINDS.some((kind) => kind === artifact_kind);

/** Content that is not to be had, by what is left of it. */
export interface WithheldArtifact {
  readonly kind: ArtifactKind;
  readonly case_id: string | null;
  readonly withheld: WithholdingReason;
  /** Lower-case hex, of the content as it was. */
  readonly sha256: string;
  readonly byte_size: number;
}

/** An artifact as a ledger gives it. */
export type StoredArtifact = Artifact | WithheldArtifact;

export const isWithheld = (artifact: StoredArtifact): artifact is WithheldArtifact => 'withheld' in artifact;

/** The artifacts, if all of them are at hand; else the first that is not. */
export function checkAvailable(artifacts: readonly StoredArtifact[]): readonly Artifact[] | WithheldArtifact {
  const present: Artifact[] = [];
  for (const artifact of artifacts) {
    if (isWithheld(artifact)) return artifact;
    present.push(artifact);
  }
  return present;
}

/** The reference to an artifact: a pure function of its content, so a replay arrives at the same one. */
export function artifactRef(artifact: StoredArtifact): ArtifactRef {
  const { kind, case_id } = artifact;
  const hash = isWithheld(artifact) ? artifact.sha256 : sha256(artifact.bytes);
  const byte_size = isWithheld(artifact) ? artifact.byte_size : artifact.bytes.byteLength;
  const artifact_id = `sha256:${hash}`;
  return case_id === null
    ? { artifact_id, artifact_kind: kind, hash_sha256: hash, byte_size, scope: 'system' }
    : { artifact_id, artifact_kind: kind, hash_sha256: hash, byte_size, scope: 'case', case_id };
}
