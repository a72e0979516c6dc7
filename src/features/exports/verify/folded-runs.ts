import type { AuditEvent } from '../../../core/contract/run/audit-event.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { NO_PREV, type RunCreated } from '../../../core/contract/run/entry.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { RunRecord } from '../../../core/contract/run/run-record.js';
import { RunRecords } from '../../../runtime/ledger/run-records.js';
import { EXPORT_BAG_LIMITS } from '../bag-format.js';
import { copyText } from './read-bag-text.js';

/** A record, reduced to hashes. */
interface ExpectedRun {
  readonly line: number;
  readonly created_at_utc: string;
  /** The number of its events; a record does not name all of very many. */
  readonly events: number;
  /** The members that each of its events must share. */
  readonly identity: string;
  readonly derived: string;
  seen: number;
  /** Folded from the events so far; null before the first and after the last one. */
  folded: RunRecords | null;
  differs: boolean;
}

/**
 * Compares records with the fold of their events, by the code that wrote the records. A bag contains no `run_created`:
 * members of a record that come from its creation are accepted, and members that come from events are compared. Runs
 * that still expect events stay in memory; all others are only hashes.
 */
export class FoldedRuns {
  readonly #expected = new Map<string, ExpectedRun>();

  has(run_id: string): boolean {
    return this.#expected.has(run_id);
  }

  addRecord(line: number, record: RunRecord): void {
    const derived = derivedOf(record);
    const expected: ExpectedRun = {
      line,
      created_at_utc: copyText(record.created_at_utc),
      events: record.audit.audit_event_ids.length,
      identity: identityOf(record),
      derived,
      seen: 0,
      folded: null,
      differs: false,
    };
    if (expected.events === 0) compare(expected, record.run_id);
    this.#expected.set(copyText(record.run_id), expected);
  }

  /** @returns whether the event fits its run; an event of an unknown run does */
  apply(event: AuditEvent): boolean {
    const expected = this.#expected.get(event.run_id);
    if (expected === undefined) return true;
    expected.seen += 1;
    if (expected.seen > expected.events && !isTruncated(expected)) expected.differs = true;
    else {
      expected.folded ??= createRecords(event.run_id, expected.created_at_utc);
      expected.folded.fold({ ...PLACE, type: 'audit_event', body: event });
      if (expected.seen === expected.events && !isTruncated(expected)) compare(expected, event.run_id);
    }
    return identityOf(event) === expected.identity;
  }

  /** The runs whose record differs from its events, with the lines of the records. To be called at the end. */
  *findDifferences(): Generator<readonly [line: number, run_id: string]> {
    for (const [run_id, expected] of this.#expected) {
      if (isTruncated(expected)) compare(expected, run_id);
      if (expected.differs || expected.seen < expected.events) yield [expected.line, run_id];
    }
  }
}

const isTruncated = ({ events }: ExpectedRun): boolean => events >= EXPORT_BAG_LIMITS.record_events_max;

function compare(expected: ExpectedRun, run_id: string): void {
  const record = (expected.folded ?? createRecords(run_id, expected.created_at_utc)).get(run_id);
  if (record === null || derivedOf(record) !== expected.derived) expected.differs = true;
  expected.folded = null;
}

const identityOf = (subject: RunRecord | AuditEvent): string =>
  sha256(
    canonicalJson([
      subject.root_run_id,
      subject.parent_run_id ?? null,
      subject.correlation_id,
      subject.contract_version,
      subject.policy_versions,
      subject.taxonomy_versions ?? null,
    ]),
  );

/** The members that events decide. */
const derivedOf = (record: RunRecord): string =>
  sha256(
    canonicalJson([
      record.status,
      record.outcome ?? null,
      record.error ?? null,
      record.started_at_utc ?? null,
      record.completed_at_utc ?? null,
      record.duration_ms ?? null,
      record.inputs.artifact_refs,
      record.outputs.artifact_refs,
      record.audit.audit_event_ids,
    ]),
  );

const PLACE = { tree_id: '', seq: 0, prev: NO_PREV } as const;

/** A run of which only its creation time is known: nothing else of a creation affects the members from events. */
function createRecords(run_id: string, created_at_utc: string): RunRecords {
  const body: RunCreated = {
    run_id,
    run_kind: 'agent',
    root_run_id: run_id,
    parent_run_id: null,
    correlation_id: '',
    contract_version: 'v1',
    policy_versions: { lanes: '', roles: '', actions: '', machines: '' },
    taxonomy_versions: null,
    case_id: null,
    actor: { actor_type: 'system', actor_id: '' },
    role_id: '',
    lane_id: null,
    scope: {},
    created_at_utc,
    request: null,
    exposure: null,
    link: null,
    budget: null,
    label: null,
    retry: null,
  };
  const records = new RunRecords();
  records.fold({ ...PLACE, type: 'run_created', body });
  return records;
}
