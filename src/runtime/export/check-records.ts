// Are runs.jsonl and audit.jsonl the runs and events that the manifest names, of this case, and does every record say
// what its events say?

import { AuditEvent } from '../../contract/audit-event.js';
import type { ExportBundle } from '../../contract/export-bundle.js';
import { RunRecord } from '../../contract/run-record.js';
import { AUDIT, RUNS } from './bundle-files.js';
import { told, type BundleRule } from './bundle-finding.js';
import { BUNDLE_LIMITS } from './bundle-limits.js';
import {
  isCanonical,
  isProblem,
  kept,
  LINE_BOUNDS,
  linesOf,
  parsed,
  type BundleLine,
  type BundleReading,
} from './bundle-text.js';
import type { HeldContents } from './check-contents.js';
import { FoldedRuns } from './folded-runs.js';
import { referencesOfEvent } from './references.js';

const RUNS_PATH = `data/${RUNS}`;
const AUDIT_PATH = `data/${AUDIT}`;

export interface BundleUnderCheck {
  readonly reading: BundleReading;
  readonly manifest: ExportBundle;
  readonly held: HeldContents;
}

/** Both files come in the order in which the manifest names what is in them. */
export async function checkRecords(bundle: BundleUnderCheck): Promise<void> {
  const { findings } = bundle.reading;
  const known = findings.errors;
  const runs = new FoldedRuns();
  await checkRuns(bundle, runs);
  await checkEvents(bundle, runs);
  // What is not even well-formed is not compared.
  if (findings.errors > known) return;
  for (const [line, run_id] of runs.wrong()) {
    findings.add('bundle.run_differs', RUNS_PATH, `line ${line}: ${told(run_id)} is not what its events say`);
  }
}

async function checkRuns(bundle: BundleUnderCheck, runs: FoldedRuns): Promise<void> {
  const { reading, manifest } = bundle;
  const order = new Order(reading, RUNS_PATH, 'bundle.runs_differ', manifest.audit?.run_ids ?? []);
  for await (const lines of linesOf(reading, RUNS_PATH)) {
    for (const line of lines) {
      if (!order.hasRoom(line.number)) return;
      order.take(line.number, checkRun(bundle, runs, line));
    }
  }
  order.end();
}

/** @returns the id of the run; null where that cannot be said */
function checkRun({ reading, manifest, held }: BundleUnderCheck, runs: FoldedRuns, line: BundleLine): string | null {
  const report = (rule: BundleRule, message: string): void => {
    reading.findings.add(rule, RUNS_PATH, `line ${line.number}: ${message}`);
  };
  const record = parsed(RunRecord, line.text, LINE_BOUNDS);
  if (isProblem(record)) {
    report(...record);
    return null;
  }
  const { run_id, case_id, inputs, outputs, policy_versions } = record;
  if (!isCanonical(line.text, record)) report('bundle.json_not_canonical', 'it is not canonical JSON');
  if (runs.has(run_id)) report('bundle.run_repeated', `${told(run_id)} comes twice`);
  runs.expect(line.number, record);
  if (case_id !== manifest.case_id || [...inputs.artifact_refs, ...outputs.artifact_refs].some(isOfOther(manifest))) {
    report('bundle.other_case', `${told(run_id)} is about another case`);
  }
  if (!held.machines.has(policy_versions.machines)) {
    report('bundle.policy_missing', `the machines of ${told(run_id)} are not there`);
  }
  return run_id;
}

async function checkEvents(bundle: BundleUnderCheck, runs: FoldedRuns): Promise<void> {
  const { reading, manifest } = bundle;
  const order = new Order(reading, AUDIT_PATH, 'bundle.events_differ', manifest.audit?.audit_event_ids ?? []);
  const places = new Places();
  for await (const lines of linesOf(reading, AUDIT_PATH)) {
    for (const line of lines) {
      if (!order.hasRoom(line.number)) return;
      order.take(line.number, checkEvent(bundle, { runs, places }, line));
    }
  }
  order.end();
}

interface Known {
  readonly runs: FoldedRuns;
  readonly places: Places;
}

/** @returns the id of the event; null where that cannot be said */
function checkEvent({ reading, manifest, held }: BundleUnderCheck, known: Known, line: BundleLine): string | null {
  const report = (rule: BundleRule, message: string): void => {
    reading.findings.add(rule, AUDIT_PATH, `line ${line.number}: ${message}`);
  };
  const event = parsed(AuditEvent, line.text, LINE_BOUNDS);
  if (isProblem(event)) {
    report(...event);
    return null;
  }
  const { event_id, run_id, case_id, input_artifacts = [] } = event;
  if (!isCanonical(line.text, event)) report('bundle.json_not_canonical', 'it is not canonical JSON');
  if (!known.runs.has(run_id)) report('bundle.event_run_unknown', `${told(run_id)} is not in ${RUNS}`);
  if (case_id !== manifest.case_id || referencesOfEvent(event).some(isOfOther(manifest))) {
    report('bundle.other_case', `${told(event_id)} is about another case`);
  }
  const place = known.places.problemOf(event);
  if (place !== null) report(...place);
  else if (!known.runs.take(event)) report('bundle.event_differs', 'it does not have the pins and parents of its run');
  for (const { hash_sha256 } of input_artifacts.filter(isWhole)) {
    if (!held.artifacts.has(hash_sha256)) report('bundle.reference_absent', `${hash_sha256} is not in the bundle`);
  }
  return event_id;
}

type Reference = NonNullable<AuditEvent['input_artifacts']>[number];

/** Is it content that was kept, and not only named, like what was cut out of such? */
const isWhole = ({ lineage, case_id }: Reference): boolean => lineage === undefined && case_id !== undefined;

const isOfOther =
  (manifest: ExportBundle) =>
  ({ case_id }: Reference): boolean =>
    case_id !== undefined && case_id !== manifest.case_id;

/** The ids of a file must be those of the manifest, in its order; only the first departure is told. */
class Order {
  readonly #reading: BundleReading;
  readonly #path: string;
  readonly #rule: BundleRule;
  readonly #expected: readonly string[];
  #seen = 0;
  #differs = false;

  constructor(reading: BundleReading, path: string, rule: BundleRule, expected: readonly string[]) {
    this.#reading = reading;
    this.#path = path;
    this.#rule = rule;
    this.#expected = expected;
  }

  /** Nothing is read beyond what the manifest names: its size is bounded. */
  hasRoom(number: number): boolean {
    if (number <= this.#expected.length) return true;
    this.#tell(`line ${number}: manifest.json names only ${this.#expected.length}`);
    return false;
  }

  take(number: number, id: string | null): void {
    this.#seen = number;
    if (id !== null && id !== this.#expected[number - 1])
      this.#tell(`line ${number}: manifest.json names another here`);
  }

  end(): void {
    if (this.#seen < this.#expected.length) this.#tell(`manifest.json names more than its ${this.#seen} lines`);
  }

  #tell(message: string): void {
    if (!this.#differs) this.#reading.findings.add(this.#rule, this.#path, message);
    this.#differs = true;
  }
}

/** An event's id is its place: tree and sequence, which only grows. What events refer to is counted by run. */
class Places {
  readonly #trees = new Map<string, number>();
  readonly #references = new Map<string, number>();

  problemOf(event: AuditEvent): readonly [BundleRule, string] | null {
    const { event_id, sequence, run_id } = event;
    const references = (this.#references.get(run_id) ?? 0) + referencesOfEvent(event).length;
    if (references > BUNDLE_LIMITS.references_per_run_max) {
      return ['bundle.limit', `the events of ${told(run_id)} refer to too much`];
    }
    if (references > 0) this.#references.set(kept(run_id), references);
    const end = `:${sequence}`;
    const tree = event_id.slice(0, -end.length);
    if (!event_id.endsWith(end))
      return ['bundle.event_place', `${told(event_id)} is not the one of sequence ${sequence}`];
    const last = this.#trees.get(tree) ?? -1;
    this.#trees.set(kept(tree), sequence);
    if (sequence > last) return null;
    const rule = sequence === last ? 'bundle.event_repeated' : 'bundle.event_place';
    return [rule, `${told(event_id)} comes after sequence ${last}`];
  }
}
