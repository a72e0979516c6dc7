import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { Actor, CaseId, closed, OneOf, PolicyVersions, RunId, Sha256, Timestamp } from '../shapes.js';

/** The action of an export run, executed by the platform. */
export const EXPORT_BUNDLE = 'EXPORT_BUNDLE';

/** The manifest of an export, with integrity hashes (S4-76, S4-77). */
export const ExportBundle = Type.Object(
  {
    bundle_id: Type.String({ minLength: 8, maxLength: 120 }),
    bundle_kind: OneOf([
      'discovery_production',
      'internal_review',
      'attorney_client_delivery',
      'court_filing_support',
      'expert_review',
      'backup_archive',
      'other',
    ]),
    contract_version: Type.Literal('v1'),
    policy_versions: PolicyVersions,
    status: OneOf(['created', 'assembling', 'completed', 'failed', 'cancelled', 'denied']),
    created_at_utc: Timestamp,
    created_by: Type.Object(
      {
        actor_type: Actor.properties.actor_type,
        actor_id: Actor.properties.actor_id,
        role_id: Type.Optional(Type.String({ maxLength: 80 })),
        lane_id: Type.Optional(Type.String({ maxLength: 120 })),
      },
      closed,
    ),
    contents: Type.Object(
      {
        artifacts: Type.Array(ArtifactRef, { minItems: 1 }),
        included_tables: Type.Optional(Type.Array(Type.String({ maxLength: 120 }))),
        filters: Type.Optional(Type.Record(Type.String(), Type.String())),
      },
      closed,
    ),
    scope: Type.Optional(Type.String({ maxLength: 120 })),
    case_id: Type.Optional(CaseId),
    matter_id: Type.Optional(Type.String({ maxLength: 120 })),
    export_reason: Type.Optional(Type.String({ maxLength: 400 })),
    approvals: Type.Optional(
      Type.Array(
        Type.Object(
          {
            approval_type: OneOf(['attorney_admin', 'delegated_admin', 'compliance', 'court_order']),
            approved_by: Type.String({ maxLength: 120 }),
            approved_at_utc: Timestamp,
            notes: Type.Optional(Type.String({ maxLength: 400 })),
          },
          closed,
        ),
      ),
    ),
    integrity: Type.Optional(
      Type.Object(
        {
          manifest_hash_sha256: Sha256,
          package_hash_sha256: Type.Optional(Sha256),
          package_locator: Type.Optional(Type.String({ maxLength: 600 })),
        },
        closed,
      ),
    ),
    signatures: Type.Optional(Type.Array(Type.String({ maxLength: 1_000 }))),
    audit: Type.Optional(
      Type.Object({ audit_event_ids: Type.Array(Type.String({ maxLength: 140 })), run_ids: Type.Array(RunId) }, closed),
    ),
    redaction: Type.Optional(Type.Record(Type.String(), Type.String())),
  },
  closed,
);
export type ExportBundle = Static<typeof ExportBundle>;
