// Checks that the payload files are those of the manifest, and that each matches the hash in its name; that runs.jsonl
// and audit.jsonl contain the runs and events of the manifest, all of this case; and that every record matches its
// events.

import type { FileRecord } from '../bagit/inventory.js';
import { isPayload } from '../bagit/manifest.js';
import type { ArtifactRef } from '../../../core/contract/artifact-ref.js';
import type { ExportBundle } from '../../../core/contract/evidence/export-bundle.js';
import { AUDIT, LOG, MANIFEST, policyHashIn, PROOF, RUNS, EXPORT_BAG_LIMITS } from '../bag-format.js';
import { quoteExcerpt, type ExportBagFindings, type ExportBagRule } from './bag-report.js';
import type { Static, TSchema } from 'typebox';
import { AuditEvent } from '../../../core/contract/run/audit-event.js';
import { RunRecord } from '../../../core/contract/run/run-record.js';
import {
  isCanonical,
  isTextProblem,
  copyText,
  LINE_BOUNDS,
  readLines,
  parseText,
  type ExportBagReading,
} from './read-bag-text.js';
import { referencesOfEvent } from '../bag-contents.js';
import { canonicalJson } from '../../../core/contract/json.js';
import { NO_PREV, type RunCreated } from '../../../core/contract/run/entry.js';
import { sha256 } from '../../../core/contract/hash.js';
import { RunRecords } from '../../../runtime/ledger/run-records.js';

const GENERATED_FILES: readonly string[] = [AUDIT, LOG, MANIFEST, PROOF, RUNS].map((name) => `data/${name}`);
const ARTIFACT = /^data\/artifacts\/([0-9a-f]{64})$/;
const PAYLOAD_FOLDER = 'data/';
const MACHINES = /^data\/machines\/([0-9a-f]{64})\.json$/;

/** Hashes of the contents of a bag, by kind. */
interface ListedContents {
  readonly artifacts: ReadonlyMap<string, FileRecord>;
  readonly machines: ReadonlySet<string>;
}

/** Sorts the payload. Unexpected files, and files that differ from the hash in their name, are findings. */
export function listContents(files: ReadonlyMap<string, FileRecord>, findings: ExportBagFindings): ListedContents {
  const artifacts = new Map<string, FileRecord>();
  const machines = new Set<string>();
  for (const record of files.values()) {
    const { path } = record;
    if (!isPayload(path) || GENERATED_FILES.includes(path)) continue;
    const artifact = ARTIFACT.exec(path)?.[1];
    const machine = MACHINES.exec(path)?.[1];
    const hash = artifact ?? machine ?? policyHashIn(path.slice(PAYLOAD_FOLDER.length));
    if (hash === undefined) findings.add('bundle.file_unexpected', path, 'a bundle has no such file');
    else if (record.actual?.sha256 !== hash) {
      const rule = artifact === undefined ? 'bundle.policy_differs' : 'bundle.artifact_differs';
      findings.add(rule, path, 'it does not have the SHA-256 by which it is named');
    }
    if (artifact !== undefined) artifacts.set(artifact, record);
    if (machine !== undefined) machines.add(machine);
  }
  return { artifacts, machines };
}

/** Compares the manifest's list of artifacts with the files. */
export function checkArtifacts(manifest: ExportBundle, contents: ListedContents, findings: ExportBagFindings): void {
  const listed = new Set<string>();
  let before = '';
  for (const ref of manifest.contents.artifacts) {
    const { hash_sha256, artifact_kind } = ref;
    const key = `${hash_sha256} ${artifact_kind}`;
    if (key <= before) findings.add('bundle.artifact_order', null, `${quoteExcerpt(key)} comes twice, or out of order`);
    before = key;
    listed.add(hash_sha256);
    checkArtifact(ref, contents, findings);
    if (ref.case_id !== manifest.case_id) {
      findings.add('bundle.other_case', pathOf(ref), `its case is ${quoteExcerpt(ref.case_id ?? 'none')}`);
    }
  }
  for (const [hash, { path }] of contents.artifacts) {
    if (!listed.has(hash)) findings.add('bundle.artifact_unlisted', path, 'manifest.json does not name it');
  }
}

function checkArtifact(ref: ArtifactRef, { artifacts }: ListedContents, findings: ExportBagFindings): void {
  const record = artifacts.get(ref.hash_sha256);
  if (record === undefined) findings.add('bundle.artifact_missing', pathOf(ref), 'manifest.json names it');
  else if (record.bytes !== ref.byte_size) {
    const message = `it has ${record.bytes} bytes, and manifest.json names ${ref.byte_size ?? 'no size'}`;
    findings.add('bundle.artifact_differs', record.path, message);
  }
  if (ref.artifact_id !== `sha256:${ref.hash_sha256}`) {
    findings.add('bundle.artifact_differs', pathOf(ref), `its id is ${quoteExcerpt(ref.artifact_id)}`);
  }
}

const pathOf = ({ hash_sha256 }: ArtifactRef): string => `data/artifacts/${hash_sha256}`;

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

/** Reports a finding about a line. */
type Report = (rule: ExportBagRule, message: string) => void;

/** A file of records, one for each line. */
interface RecordFile<Schema extends TSchema> {
  readonly path: string;
  readonly schema: Schema;
  /** The ids that the manifest names, in the order of the file, and the rule of other ones. */
  readonly expected: readonly string[];
  readonly rule: ExportBagRule;
}

/**
 * Checks that a file has the records that the manifest names. Only the first difference is reported, and nothing is
 * read beyond what the manifest names: its size is bounded.
 * @param check checks the record of a line, and returns its id
 */
async function checkFile<Schema extends TSchema>(
  reading: ExportBagReading,
  { path, schema, expected, rule }: RecordFile<Schema>,
  check: (record: Static<Schema>, line: number, report: Report) => string,
): Promise<void> {
  const { findings } = reading;
  let [seen, differs] = [0, false];
  const reportDifference = (message: string): void => {
    if (!differs) findings.add(rule, path, message);
    differs = true;
  };
  for await (const lines of readLines(reading, path)) {
    for (const { number, text } of lines) {
      if (number > expected.length) {
        reportDifference(`line ${number}: manifest.json names only ${expected.length}`);
        return;
      }
      seen = number;
      const report: Report = (broken, message) => findings.add(broken, path, `line ${number}: ${message}`);
      const record = parseText(schema, text, LINE_BOUNDS);
      if (isTextProblem(record)) {
        report(...record);
        continue;
      }
      if (!isCanonical(text, record)) report('bundle.json_not_canonical', 'it is not canonical JSON');
      const id = check(record, number, report);
      if (id !== expected[number - 1]) reportDifference(`line ${number}: manifest.json names another here`);
    }
  }
  if (seen < expected.length) reportDifference(`manifest.json names more than its ${seen} lines`);
}

async function checkRuns({ reading, manifest, contents }: RecordsUnderCheck, runs: FoldedRuns): Promise<void> {
  const expected = manifest.audit?.run_ids ?? [];
  const file = { path: RUNS_PATH, schema: RunRecord, expected, rule: 'bundle.runs_differ' } as const;
  await checkFile(reading, file, (record, line, report) => {
    const { run_id, case_id, inputs, outputs, policy_versions } = record;
    if (runs.has(run_id)) report('bundle.run_repeated', `${quoteExcerpt(run_id)} comes twice`);
    runs.addRecord(line, record);
    const references = [...inputs.artifact_refs, ...outputs.artifact_refs];
    if (case_id !== manifest.case_id || references.some(isOfOtherCase(manifest))) {
      report('bundle.other_case', `${quoteExcerpt(run_id)} is about another case`);
    }
    if (!contents.machines.has(policy_versions.machines)) {
      report('bundle.policy_missing', `the machines of ${quoteExcerpt(run_id)} are not there`);
    }
    return run_id;
  });
}

async function checkEvents({ reading, manifest, contents }: RecordsUnderCheck, runs: FoldedRuns): Promise<void> {
  const expected = manifest.audit?.audit_event_ids ?? [];
  const file = { path: AUDIT_PATH, schema: AuditEvent, expected, rule: 'bundle.events_differ' } as const;
  const places = new EventSequence();
  await checkFile(reading, file, (event, _line, report) => {
    const { event_id, run_id, case_id, input_artifacts = [] } = event;
    if (!runs.has(run_id)) report('bundle.event_run_unknown', `${quoteExcerpt(run_id)} is not in ${RUNS}`);
    if (case_id !== manifest.case_id || referencesOfEvent(event).some(isOfOtherCase(manifest))) {
      report('bundle.other_case', `${quoteExcerpt(event_id)} is about another case`);
    }
    const place = places.check(event);
    if (place !== null) report(...place);
    else if (!runs.apply(event)) report('bundle.event_differs', 'it does not have the pins and parents of its run');
    for (const { hash_sha256 } of input_artifacts.filter(isStoredContent)) {
      if (!contents.artifacts.has(hash_sha256))
        report('bundle.reference_absent', `${hash_sha256} is not in the bundle`);
    }
    return event_id;
  });
}

type Reference = NonNullable<AuditEvent['input_artifacts']>[number];

/** Whether the reference is to stored content, not to an excerpt of content. */
const isStoredContent = ({ lineage, case_id }: Reference): boolean => lineage === undefined && case_id !== undefined;

const isOfOtherCase =
  (manifest: ExportBundle) =>
  ({ case_id }: Reference): boolean =>
    case_id !== undefined && case_id !== manifest.case_id;

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
