import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { ReportOrigin } from './report-origin.js';
import { VerifiedIdentity } from './verified-identity.js';
import {
  Actor,
  CaseId,
  closed,
  Identifier,
  OneOf,
  PolicyVersions,
  RunId,
  Sha256,
  TaxonomyVersions,
  Timestamp,
} from '../shapes.js';

/** The types of audit events (S4 §6). */
export const ACTION_TYPES = [
  'tool_call',
  'db_write',
  'db_read',
  'policy_change',
  'promotion',
  'export',
  'override',
  'authz_decision',
  'system',
] as const;
/** One of `ACTION_TYPES`. */
export type ActionType = (typeof ACTION_TYPES)[number];

/** The outcomes of audit events: a verdict, or the result of an effect. */
export const AUDIT_OUTCOMES = ['allow', 'deny', 'success', 'failure'] as const;
/** One of `AUDIT_OUTCOMES`. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

export const OUTCOME_REASON_CHARS_MAX = 200;

/** One event of the append-only audit (S4-09, S4 §6). Optional members are left out, never null. */
export const AuditEvent = Type.Object(
  {
    event_id: Type.String({ minLength: 8, maxLength: 140 }),
    timestamp_utc: Timestamp,
    sequence: Type.Integer({ minimum: 0 }),
    action_type: OneOf(ACTION_TYPES),
    outcome: OneOf(AUDIT_OUTCOMES),
    outcome_reason: Type.Optional(Type.String({ maxLength: OUTCOME_REASON_CHARS_MAX })),
    severity: Type.Optional(OneOf(['info', 'warn', 'error', 'critical'])),
    actor: Actor,
    contract_version: Type.Literal('v1'),
    policy_versions: PolicyVersions,
    taxonomy_versions: Type.Optional(TaxonomyVersions),
    run_id: RunId,
    root_run_id: RunId,
    parent_run_id: Type.Optional(RunId),
    correlation_id: Identifier,
    case_id: Type.Optional(CaseId),
    lane_id: Type.Optional(Identifier),
    role_id: Type.Optional(Identifier),
    target: Type.Optional(
      Type.Object(
        {
          target_type: OneOf(['tool', 'table', 'artifact', 'policy', 'export_bundle', 'system']),
          name: Type.String({ maxLength: 200 }),
          operation: Type.Optional(Type.String({ maxLength: 120 })),
          artifact_ref: Type.Optional(ArtifactRef),
        },
        closed,
      ),
    ),
    input_artifacts: Type.Optional(Type.Array(ArtifactRef, { maxItems: 64 })),
    output_artifacts: Type.Optional(Type.Array(ArtifactRef, { maxItems: 64 })),
    request_hash_sha256: Type.Optional(Sha256),
    response_hash_sha256: Type.Optional(Sha256),
    authz: Type.Optional(
      Type.Object(
        {
          decision: OneOf(['allow', 'deny']),
          policy_ref: Type.Optional(Type.String({ maxLength: 300 })),
          rule_id: Type.String({ maxLength: 120 }),
        },
        closed,
      ),
    ),
    /** C98: how the voter was authenticated. */
    identity: Type.Optional(VerifiedIdentity),
    /** The outcome is what the caller reports, and not what the platform has seen (U-08). */
    reported: Type.Optional(ReportOrigin),
    error: Type.Optional(
      Type.Object(
        {
          error_code: Type.String({ maxLength: 80 }),
          message: Type.String({ maxLength: 2_000 }),
          retryable: Type.Boolean(),
        },
        closed,
      ),
    ),
    notes: Type.Optional(Type.String({ maxLength: 1_000 })),
  },
  closed,
);
export type AuditEvent = Static<typeof AuditEvent>;
/** The subject of an event. */
export type AuditTarget = NonNullable<AuditEvent['target']>;
