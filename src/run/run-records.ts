// A run record is the fold of the run's ledger entries (S4-08). It can be derived at any time, also from a running run,
// and the entries are authoritative. After the end of a tree, its records are also stored
// (src/runtime/ledger/run-record-writer.ts); `ledger verify` compares them with this fold.

import type { ArtifactRef } from '../contract/artifact-ref.js';
import type { AuditEvent } from '../contract/run/audit-event.js';
import type { Entry, RunCreated } from '../contract/run/entry.js';
import type { RunRecord } from '../contract/run/run-record.js';
import { stateAfterEvent, type RunState } from '../contract/run/run-state.js';

const EVENT_IDS_MAX = 10_000;

/**
 * The records of one tree's runs, in the order of their creation. `fold` takes entries in ledger order. To save memory,
 * a caller may drop records, and load one again when a later entry changes its run.
 */
export class RunRecords {
  readonly #records = new Map<string, RunRecord>();

  fold(entry: Entry): void {
    if (entry.type === 'run_created') this.#records.set(entry.body.run_id, newRecord(entry.body));
    if (entry.type === 'audit_event') {
      const record = this.#records.get(entry.body.run_id);
      if (record !== undefined) this.#records.set(record.run_id, applyEvent(record, entry.body));
    }
  }

  resume(record: RunRecord): void {
    this.#records.set(record.run_id, record);
  }

  release(run_id: string): void {
    this.#records.delete(run_id);
  }

  get size(): number {
    return this.#records.size;
  }

  get(run_id: string): RunRecord | null {
    return this.#records.get(run_id) ?? null;
  }

  all(): readonly RunRecord[] {
    return [...this.#records.values()];
  }
}

const newRecord = (run: RunCreated): RunRecord => ({
  schema_version: '1.1.0',
  run_id: run.run_id,
  run_kind: run.run_kind,
  contract_version: run.contract_version,
  policy_versions: run.policy_versions,
  status: 'created',
  created_at_utc: run.created_at_utc,
  root_run_id: run.root_run_id,
  correlation_id: run.correlation_id,
  actor: { ...run.actor, role_id: run.role_id, ...(run.lane_id === null ? {} : { lane_id: run.lane_id }) },
  ...(run.parent_run_id === null ? {} : { parent_run_id: run.parent_run_id }),
  ...(run.case_id === null ? {} : { case_id: run.case_id }),
  ...(run.taxonomy_versions === null ? {} : { taxonomy_versions: run.taxonomy_versions }),
  ...(run.request === null ? {} : { run_name: run.request.name }),
  ...(run.retry === null ? {} : { metadata: retryMetadata(run.retry) }),
  inputs: {
    artifact_refs: [],
    ...(run.request === null ? {} : { parameters_hash_sha256: run.request.hash_sha256 }),
  },
  outputs: { artifact_refs: [] },
  nondeterminism: { is_nondeterministic: false, reasons: [], replay_strategy: 'record_and_replay' },
  audit: { audit_event_ids: [] },
});

function applyEvent(record: RunRecord, event: AuditEvent): RunRecord {
  const ids = record.audit.audit_event_ids;
  const updated: RunRecord = {
    ...record,
    audit: { audit_event_ids: ids.length < EVENT_IDS_MAX ? [...ids, event.event_id] : ids },
    inputs: { ...record.inputs, artifact_refs: mergeRefs(record.inputs.artifact_refs, event.input_artifacts) },
    outputs: { artifact_refs: mergeRefs(record.outputs.artifact_refs, event.output_artifacts) },
  };
  const state = stateAfterEvent(event);
  if (state === null) return updated;
  if (event.outcome_reason === 'running') {
    return { ...updated, status: 'running', started_at_utc: event.timestamp_utc };
  }
  return endRecord(updated, state, event);
}

/** S4-69. */
const retryMetadata = (retry: NonNullable<RunCreated['retry']>): Record<string, string> => ({
  retry_count: String(retry.count),
  retry_reason: retry.reason,
  retry_of: retry.of,
  logical_parent_run_id: retry.logical_parent_run_id,
});

function endRecord(record: RunRecord, status: RunState, event: AuditEvent): RunRecord {
  const reason = event.outcome_reason ?? '';
  const { timestamp_utc } = event;
  const began = record.started_at_utc ?? record.created_at_utc;
  return {
    ...record,
    status,
    outcome: reason,
    completed_at_utc: timestamp_utc,
    duration_ms: Math.max(0, Date.parse(timestamp_utc) - Date.parse(began)),
    ...(event.error === undefined ? {} : { error: event.error }),
  };
}

const mergeRefs = (known: readonly ArtifactRef[], more: readonly ArtifactRef[] = []): ArtifactRef[] => [
  ...known,
  ...more.filter(({ artifact_id }) => !known.some((ref) => ref.artifact_id === artifact_id)),
];
