// A run record is the fold of the run's ledger entries (S4-08). It can be derived at any time, also from a running run,
// and the entries are authoritative. After the end of a tree, its records are also stored
// (src/runtime/ledger/run-record-writer.ts); `ledger verify` compares them with this fold.

import type { ArtifactRef } from '../../core/contract/artifact-ref.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import type { Entry, RunCreated } from '../../core/contract/run/entry.js';
import type { RunRecord } from '../../core/contract/run/run-record.js';
import { stateAfterEvent, type RunState } from '../../core/contract/run/run-context.js';

const EVENT_IDS_MAX = 10_000;

/**
 * The records of one tree's runs, in the order of their creation. `fold` takes entries in ledger order. To save memory,
 * a caller may drop records, and load one again when a later entry changes its run.
 */
export class RunRecords {
  readonly #builders = new Map<string, RecordBuilder>();

  fold(entry: Entry): void {
    if (entry.type === 'run_created') this.resume(newRecord(entry.body));
    if (entry.type === 'audit_event') this.#builders.get(entry.body.run_id)?.apply(entry.body);
  }

  resume(record: RunRecord): void {
    this.#builders.set(record.run_id, new RecordBuilder(record));
  }

  release(run_id: string): void {
    this.#builders.delete(run_id);
  }

  get size(): number {
    return this.#builders.size;
  }

  /** Between two events of a run this returns the same object, and after an event it copies its lists. */
  get(run_id: string): RunRecord | null {
    return this.#builders.get(run_id)?.record() ?? null;
  }

  statusOf(run_id: string): RunState | null {
    return this.#builders.get(run_id)?.status ?? null;
  }

  all(): readonly RunRecord[] {
    return Array.from(this.#builders.values(), (builder) => builder.record());
  }
}

/**
 * The record of a run, with lists that grow in place: a run may have as many events and artifacts as its tree has
 * entries, and to copy the lists for each event would take quadratic time.
 */
class RecordBuilder {
  /** Its lists are those of the last call of `record`. */
  #record: RunRecord;
  readonly #eventIds: string[];
  readonly #inputs: ArtifactList;
  readonly #outputs: ArtifactList;
  #isCurrent = true;

  constructor(record: RunRecord) {
    this.#record = record;
    this.#eventIds = [...record.audit.audit_event_ids];
    this.#inputs = new ArtifactList(record.inputs.artifact_refs);
    this.#outputs = new ArtifactList(record.outputs.artifact_refs);
  }

  get status(): RunState {
    return this.#record.status;
  }

  apply(event: AuditEvent): void {
    this.#isCurrent = false;
    if (this.#eventIds.length < EVENT_IDS_MAX) this.#eventIds.push(event.event_id);
    this.#inputs.merge(event.input_artifacts);
    this.#outputs.merge(event.output_artifacts);
    const state = stateAfterEvent(event);
    if (state === null) return;
    this.#record =
      event.outcome_reason === 'running'
        ? { ...this.#record, status: 'running', started_at_utc: event.timestamp_utc }
        : endRecord(this.#record, state, event);
  }

  record(): RunRecord {
    if (this.#isCurrent) return this.#record;
    this.#isCurrent = true;
    this.#record = {
      ...this.#record,
      audit: { audit_event_ids: [...this.#eventIds] },
      inputs: { ...this.#record.inputs, artifact_refs: this.#inputs.copy() },
      outputs: { artifact_refs: this.#outputs.copy() },
    };
    return this.#record;
  }
}

/** Shorter lists are searched: most runs have a few artifacts, and an index would take more memory than they do. */
const SEARCHED_MAX = 16;

/** Artifacts by their first event. */
class ArtifactList {
  readonly #refs: ArtifactRef[];
  /** The ids of all artifacts of a long list. */
  #ids: Set<string> | null = null;

  constructor(refs: readonly ArtifactRef[]) {
    this.#refs = [...refs];
  }

  merge(more: readonly ArtifactRef[] = []): void {
    const fresh = more.filter(({ artifact_id }) => !this.#has(artifact_id));
    this.#refs.push(...fresh);
    for (const { artifact_id } of fresh) this.#ids?.add(artifact_id);
  }

  copy(): ArtifactRef[] {
    return [...this.#refs];
  }

  #has(artifact_id: string): boolean {
    if (this.#refs.length <= SEARCHED_MAX) return this.#refs.some((ref) => ref.artifact_id === artifact_id);
    this.#ids ??= new Set(this.#refs.map((ref) => ref.artifact_id));
    return this.#ids.has(artifact_id);
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
