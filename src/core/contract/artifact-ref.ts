// References to content: entries contain the hash, the length and the kind of an artifact, and never its bytes.

import Type, { type Static } from 'typebox';
import { CaseId, closed, OneOf, RunId, Timestamp } from './shapes.js';
import { sha256 } from './hash.js';

/** How a manifest refers to content without containing it (S4-10, S4-83). The SHA-256 of content is its address. */
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

/** The kinds of artifacts that the platform stores. */
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
  'note', // a person's words about a run or session
  'prompt', // a prompt or configuration of an agent
  'hook_event', // an event of a coding agent, without secrets
  'explanation', // the words of a tool about its failure (C94)
  'raw_payload_prefix', // the first bytes of a payload over the limit (C80)
] as const;
export type ArtifactKind = (typeof ARTIFACT_KINDS)[number];

/** Content with its description; `case_id: null` is the platform's own (scope `system`). */
export interface Artifact {
  readonly kind: ArtifactKind;
  readonly case_id: string | null;
  readonly bytes: Uint8Array;
}

/** Why content is unavailable: its case was erased, or a lane keeps it out of evidence bundles. */
export const WITHHOLDING_REASONS = ['erased', 'lane'] as const;
type WithholdingReason = (typeof WITHHOLDING_REASONS)[number];

/** What decisions are checked with. It belongs to no case, so it cannot be erased or withheld. */
export const SYSTEM_ARTIFACT_KINDS: readonly ArtifactKind[] = ['policy', 'machines'];

/** Whether this content may be missing: content of a case may, what decisions are checked with may not. */
export const canBeWithheld = ({ kind, case_id }: Pick<WithheldArtifact, 'kind' | 'case_id'>): boolean =>
  case_id !== null && !SYSTEM_ARTIFACT_KINDS.includes(kind);

/** Whether a reference names content that decisions are checked with, which can never be withheld. */
export const isSystemRef = ({ artifact_kind, case_id }: ArtifactRef): boolean =>
  case_id === undefined && SYSTEM_ARTIFACT_KINDS.some((kind) => kind === artifact_kind);

/** The description of content that is unavailable. */
export interface WithheldArtifact {
  readonly kind: ArtifactKind;
  readonly case_id: string | null;
  readonly withheld: WithholdingReason;
  /** Lower-case hex, of the original content. */
  readonly sha256: string;
  readonly byte_size: number;
}

/** An artifact as a ledger returns it. */
export type StoredArtifact = Artifact | WithheldArtifact;

export const isWithheld = (artifact: StoredArtifact): artifact is WithheldArtifact => 'withheld' in artifact;

/** The artifacts if all of them are available; else the first that is not. */
export function checkAvailable(artifacts: readonly StoredArtifact[]): readonly Artifact[] | WithheldArtifact {
  const present: Artifact[] = [];
  for (const artifact of artifacts) {
    if (isWithheld(artifact)) return artifact;
    present.push(artifact);
  }
  return present;
}

/** The reference to an artifact: a pure function of its content, so a replay computes the same one. */
export function artifactRef(artifact: StoredArtifact): ArtifactRef {
  const { kind, case_id } = artifact;
  const hash = isWithheld(artifact) ? artifact.sha256 : sha256(artifact.bytes);
  const byte_size = isWithheld(artifact) ? artifact.byte_size : artifact.bytes.byteLength;
  const artifact_id = `sha256:${hash}`;
  return case_id === null
    ? { artifact_id, artifact_kind: kind, hash_sha256: hash, byte_size, scope: 'system' }
    : { artifact_id, artifact_kind: kind, hash_sha256: hash, byte_size, scope: 'case', case_id };
}
