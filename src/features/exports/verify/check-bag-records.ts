// Checks that runs.jsonl and audit.jsonl contain the runs and events of the manifest, all of this case, and that every
// record matches its events.

import { AuditEvent } from '../../../core/contract/run/audit-event.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { RunRecord } from '../../../core/contract/run/run-record.js';
import { AUDIT, RUNS, EXPORT_BAG_LIMITS } from '../bag-format.js';
import { quoteExcerpt, type ExportBagRule } from './bag-report.js';
import {
  isCanonical,
  isTextProblem,
  copyText,
  LINE_BOUNDS,
  readLines,
  parseText,
  type ExportBagLine,
  type ExportBagReading,
} from './read-bag-text.js';
import type { ListedContents } from './check-contents.js';
import { referencesOfEvent } from '../bag-contents.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { NO_PREV, type RunCreated } from '../../../core/contract/run/entry.js';
import { sha256 } from '../../../core/contract/hash.js';
import { RunRecords } from '../../../runtime/ledger/run-records.js';

const RUNS_PATH = `data/${RUNS}`;
const AUDIT_PATH = `data/${AUDIT}`;

interface RecordsUnderCheck {
  readonly reading: ExportBagReading;
  readonly manifest: ExportBundle;
  readonly contents: ListedContents;
}

/** Both files are in the order of the manifest. */
export async function checkRecords(bag: RecordsUnderCheck): Promise<void> {
  const { findings } = bag.reading;
  const known = findings.errors;
  const runs = new FoldedRuns();
  await checkRuns(bag, runs);
  await checkEvents(bag, runs);
  // Malformed files are not compared.
  if (findings.errors > known) return;
  for (const [line, run_id] of runs.findDifferences()) {
    findings.add('bundle.run_differs', RUNS_PATH, `line ${line}: ${quoteExcerpt(run_id)} is not what its events say`);
  }
}

async function checkRuns(bag: RecordsUnderCheck, runs: FoldedRuns): Promise<void> {
  const { reading, manifest } = bag;
  const order = new ManifestOrder(reading, RUNS_PATH, 'bundle.runs_differ', manifest.audit?.run_ids ?? []);
  for await (const lines of readLines(reading, RUNS_PATH)) {
    for (const line of lines) {
      if (!order.isListed(line.number)) return;
      order.check(line.number, checkRun(bag, runs, line));
    }
  }
  order.end();
}

/** @returns the id of the run; null if it has no valid one */
function checkRun(
  { reading, manifest, contents }: RecordsUnderCheck,
  runs: FoldedRuns,
  line: ExportBagLine,
): string | null {
  const report = (rule: ExportBagRule, message: string): void => {
    reading.findings.add(rule, RUNS_PATH, `line ${line.number}: ${message}`);
  };
  const record = parseText(RunRecord, line.text, LINE_BOUNDS);
  if (isTextProblem(record)) {
    report(...record);
    return null;
  }
  const { run_id, case_id, inputs, outputs, policy_versions } = record;
  if (!isCanonical(line.text, record)) report('bundle.json_not_canonical', 'it is not canonical JSON');
  if (runs.has(run_id)) report('bundle.run_repeated', `${quoteExcerpt(run_id)} comes twice`);
  runs.addRecord(line.number, record);
  if (
    case_id !== manifest.case_id ||
    [...inputs.artifact_refs, ...outputs.artifact_refs].some(isOfOtherCase(manifest))
  ) {
    report('bundle.other_case', `${quoteExcerpt(run_id)} is about another case`);
  }
  if (!contents.machines.has(policy_versions.machines)) {
    report('bundle.policy_missing', `the machines of ${quoteExcerpt(run_id)} are not there`);
  }
  return run_id;
}

async function checkEvents(bag: RecordsUnderCheck, runs: FoldedRuns): Promise<void> {
  const { reading, manifest } = bag;
  const order = new ManifestOrder(reading, AUDIT_PATH, 'bundle.events_differ', manifest.audit?.audit_event_ids ?? []);
  const places = new EventSequence();
  for await (const lines of readLines(reading, AUDIT_PATH)) {
    for (const line of lines) {
      if (!order.isListed(line.number)) return;
      order.check(line.number, checkEvent(bag, { runs, places }, line));
    }
  }
  order.end();
}

interface KnownRecords {
  readonly runs: FoldedRuns;
  readonly places: EventSequence;
}

/** @returns the id of the event; null if it has no valid one */
function checkEvent(
  { reading, manifest, contents }: RecordsUnderCheck,
  known: KnownRecords,
  line: ExportBagLine,
): string | null {
  const report = (rule: ExportBagRule, message: string): void => {
    reading.findings.add(rule, AUDIT_PATH, `line ${line.number}: ${message}`);
  };
  const event = parseText(AuditEvent, line.text, LINE_BOUNDS);
  if (isTextProblem(event)) {
    report(...event);
    return null;
  }
  const { event_id, run_id, case_id, input_artifacts = [] } = event;
  if (!isCanonical(line.text, event)) report('bundle.json_not_canonical', 'it is not canonical JSON');
  if (!known.runs.has(run_id)) report('bundle.event_run_unknown', `${quoteExcerpt(run_id)} is not in ${RUNS}`);
  if (case_id !== manifest.case_id || referencesOfEvent(event).some(isOfOtherCase(manifest))) {
    report('bundle.other_case', `${quoteExcerpt(event_id)} is about another case`);
  }
  const place = known.places.check(event);
  if (place !== null) report(...place);
  else if (!known.runs.apply(event)) report('bundle.event_differs', 'it does not have the pins and parents of its run');
  for (const { hash_sha256 } of input_artifacts.filter(isStoredContent)) {
    if (!contents.artifacts.has(hash_sha256)) report('bundle.reference_absent', `${hash_sha256} is not in the bundle`);
  }
  return event_id;
}

type Reference = NonNullable<AuditEvent['input_artifacts']>[number];

/** Whether the reference is to stored content, not to an excerpt of content. */
const isStoredContent = ({ lineage, case_id }: Reference): boolean => lineage === undefined && case_id !== undefined;

const isOfOtherCase =
  (manifest: ExportBundle) =>
  ({ case_id }: Reference): boolean =>
    case_id !== undefined && case_id !== manifest.case_id;

/** The ids of a file must be those of the manifest, in its order. Only the first difference is reported. */
class ManifestOrder {
  readonly #reading: ExportBagReading;
  readonly #path: string;
  readonly #rule: ExportBagRule;
  readonly #expected: readonly string[];
  #seen = 0;
  #differs = false;

  constructor(reading: ExportBagReading, path: string, rule: ExportBagRule, expected: readonly string[]) {
    this.#reading = reading;
    this.#path = path;
    this.#rule = rule;
    this.#expected = expected;
  }

  /** Nothing is read beyond what the manifest names: its size is bounded. */
  isListed(number: number): boolean {
    if (number <= this.#expected.length) return true;
    this.#report(`line ${number}: manifest.json names only ${this.#expected.length}`);
    return false;
  }

  check(number: number, id: string | null): void {
    this.#seen = number;
    if (id !== null && id !== this.#expected[number - 1])
      this.#report(`line ${number}: manifest.json names another here`);
  }

  end(): void {
    if (this.#seen < this.#expected.length) this.#report(`manifest.json names more than its ${this.#seen} lines`);
  }

  #report(message: string): void {
    if (!this.#differs) this.#reading.findings.add(this.#rule, this.#path, message);
    this.#differs = true;
  }
}

/**
 * The id of an event is its place: tree and sequence number, which only grows. References of events are counted per
 * run.
 */
class EventSequence {
  readonly #trees = new Map<string, number>();
  readonly #references = new Map<string, number>();

  check(event: AuditEvent): readonly [ExportBagRule, string] | null {
    const { event_id, sequence, run_id } = event;
    const references = (this.#references.get(run_id) ?? 0) + referencesOfEvent(event).length;
    if (references > EXPORT_BAG_LIMITS.references_per_run_max) {
      return ['bundle.limit', `the events of ${quoteExcerpt(run_id)} refer to too much`];
    }
    if (references > 0) this.#references.set(copyText(run_id), references);
    const end = `:${sequence}`;
    const tree = event_id.slice(0, -end.length);
    if (!event_id.endsWith(end))
      return ['bundle.event_place', `${quoteExcerpt(event_id)} is not the one of sequence ${sequence}`];
    const last = this.#trees.get(tree) ?? -1;
    this.#trees.set(copyText(tree), sequence);
    if (sequence > last) return null;
    const rule = sequence === last ? 'bundle.event_repeated' : 'bundle.event_place';
    return [rule, `${quoteExcerpt(event_id)} comes after sequence ${last}`];
  }
}

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
class FoldedRuns {
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
