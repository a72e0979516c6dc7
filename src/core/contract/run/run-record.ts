import Type, { type Static } from 'typebox';
import { ArtifactRef } from '../artifact-ref.js';
import { RUN_KINDS, RUN_STATES } from './run-context.js';
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

/**
 * The manifest of one run (S4-08): a fold of its ledger entries, written when its tree has ended. Version 1.1.0 adds
 * `correlation_id` and a bounded `metadata` to the published shape (C59).
 */
export const RunRecord = Type.Object(
  {
    schema_version: Type.Literal('1.1.0'),
    run_id: RunId,
    run_kind: OneOf(RUN_KINDS),
    contract_version: Type.Literal('v1'),
    policy_versions: PolicyVersions,
    status: OneOf(RUN_STATES),
    created_at_utc: Timestamp,
    parent_run_id: Type.Optional(RunId),
    root_run_id: RunId,
    correlation_id: Identifier,
    run_name: Type.Optional(Type.String({ maxLength: 200 })),
    case_id: Type.Optional(CaseId),
    client_session_id: Type.Optional(Type.String({ maxLength: 120 })),
    matter_id: Type.Optional(Type.String({ maxLength: 120 })),
    workflow_state: Type.Optional(Type.String({ maxLength: 120 })),
    actor: Type.Object(
      {
        ...Actor.properties,
        role_id: Type.Optional(Type.String({ maxLength: 80 })),
        lane_id: Type.Optional(Type.String({ maxLength: 120 })),
      },
      closed,
    ),
    taxonomy_versions: Type.Optional(TaxonomyVersions),
    tool_versions: Type.Optional(Type.Record(Type.String(), Type.String())),
    started_at_utc: Type.Optional(Timestamp),
    completed_at_utc: Type.Optional(Timestamp),
    duration_ms: Type.Optional(Type.Integer({ minimum: 0 })),
    outcome: Type.Optional(Type.String({ maxLength: 200 })),
    error: Type.Optional(
      Type.Object(
        {
          error_code: Type.String({ maxLength: 80 }),
          message: Type.String({ maxLength: 2_000 }),
          stack_ref: Type.Optional(Type.String({ maxLength: 200 })),
          retryable: Type.Boolean(),
        },
        closed,
      ),
    ),
    inputs: Type.Object(
      { artifact_refs: Type.Array(ArtifactRef), parameters_hash_sha256: Type.Optional(Sha256) },
      closed,
    ),
    outputs: Type.Object({ artifact_refs: Type.Array(ArtifactRef) }, closed),
    nondeterminism: Type.Object(
      {
        is_nondeterministic: Type.Boolean(),
        reasons: Type.Array(Type.String({ maxLength: 200 })),
        replay_strategy: OneOf(['record_and_replay', 'best_effort', 'not_replayable']),
      },
      closed,
    ),
    audit: Type.Object({ audit_event_ids: Type.Array(Type.String({ maxLength: 140 })) }, closed),
    data_classification: Type.Optional(Type.String({ maxLength: 80 })),
    tags: Type.Optional(Type.Array(Type.String({ maxLength: 80 }), { maxItems: 64 })),
    notes: Type.Optional(Type.String({ maxLength: 1_000 })),
    metadata: Type.Optional(Type.Record(Type.String({ maxLength: 80 }), Type.String({ maxLength: 400 }))),
  },
  closed,
);
export type RunRecord = Static<typeof RunRecord>;
