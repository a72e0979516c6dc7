// Lists the contents of a bag before anything is written: names, hashes and places, never content.

import { byPath } from './bagit/write-bag.js';
import { isSystemRef, type ArtifactRef } from '../../core/contract/artifact-ref.js';
import { presentFiles } from '../../core/contract/policy/pins.js';
import type { AuditEvent } from '../../core/contract/run/audit-event.js';
import { isOpeningInput, type OpeningInput, type RecordedInput } from '../../core/contract/run/entry.js';
import { BagError, LedgerError } from '../../core/errors.js';
import { pinReferences, referencesOf } from '../../core/contract/run/input.js';
import { SubsetProof } from './subset-proof.js';
import type { EntryPlace, LogHead } from '../../engine/ports/ledger/ledger-store.js';
import type { CaseEntry, CaseHistory, LeafObserver } from '../../runtime/case/case-history.js';
import { EXPORT_BAG_LIMITS, policyPath } from './bag-format.js';

/** A content of the ledger as a payload file. */
export interface BagContentFile {
  readonly path: string;
  readonly ref: ArtifactRef;
  /** The entry that contains it. */
  readonly place: EntryPlace;
}

/** The source of a case's entries: the trees of a ledger, or the log of a bag. */
export type CaseEntries = Pick<CaseHistory, 'entries' | 'slice'>;

export interface ExportBagContents {
  readonly history: CaseEntries;
  /** Proves that the entries of the case are in the log, in the form of `BagProof`; null if the ledger has no key. */
  readonly proof: readonly string[] | null;
  /** Each kind of each content of the case once, sorted by hash and kind. */
  readonly artifacts: readonly ArtifactRef[];
  /** `artifacts/`, `machines/` and `policies/`, sorted by path. */
  readonly files: readonly BagContentFile[];
  /** The number of events of each run, in the order of their last events. */
  readonly runs: ReadonlyMap<string, number>;
  /** In log order. */
  readonly audit_event_ids: readonly string[];
}

/**
 * Reads the case and verifies the log. A run and its events belong to the case that it was created with, and content to
 * the case that its reference names. Policies and machines are those that the trees have pinned.
 * @throws LedgerError LEDGER_TAMPERED
 * @throws BagError BAG_UNWRITABLE if something of the case references another case
 */
export async function collectContents(history: CaseHistory, isProved: boolean): Promise<ExportBagContents> {
  const collector = new ContentCollector(history.slice.case_id);
  const prover = isProved ? new LeafProver() : null;
  for await (const entries of history.readConfirmed(['input', 'run_created', 'audit_event'], prover)) {
    for (const entry of entries) collector.add(entry);
  }
  return collector.contents(history, prover?.finish() ?? null);
}

/** Makes the proof of a case's entries while the log is read. */
class LeafProver implements LeafObserver {
  #proof: SubsetProof | null = null;

  begin(head: LogHead): void {
    this.#proof = new SubsetProof(head);
  }

  push(leaf_hash: string, isOwn: boolean): void {
    this.#proof?.push(leaf_hash, isOwn);
  }

  finish(): readonly string[] {
    return this.#proof?.finish() ?? [];
  }
}

/** Takes the entries of a case in log order. */
export class ContentCollector {
  readonly #case_id: string;
  readonly #artifacts = new Map<string, ArtifactRef>();
  readonly #files = new Map<string, BagContentFile>();
  readonly #runs = new Map<string, number>();
  readonly #events: string[] = [];
  readonly #references = new Map<string, number>();

  constructor(case_id: string) {
    this.#case_id = case_id;
  }

  add({ entry, log_index }: Omit<CaseEntry, 'text'>): void {
    const { tree_id, seq } = entry;
    if (entry.type === 'input') this.#addInput(entry.body, { tree_id, seq, log_index });
    if (entry.type === 'run_created' && entry.body.case_id === this.#case_id) this.#addRun(entry.body.run_id);
    if (entry.type === 'audit_event') this.#addEvent(entry.body);
  }

  contents(history: CaseEntries, proof: readonly string[] | null): ExportBagContents {
    return {
      history,
      proof,
      artifacts: [...this.#artifacts].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, ref]) => ref),
      files: [...this.#files.values()].sort(byPath),
      runs: this.#runs,
      audit_event_ids: this.#events,
    };
  }

  #addInput(input: RecordedInput, place: EntryPlace): void {
    if (isOpeningInput(input)) this.#addOpening(input, place);
    for (const ref of referencesOf(input)) {
      if (ref.case_id !== this.#case_id) continue;
      this.#addFile({ path: `artifacts/${ref.hash_sha256}`, ref, place });
      const key = `${ref.hash_sha256} ${ref.artifact_kind}`;
      if (!this.#artifacts.has(key)) this.#artifacts.set(key, ref);
    }
  }

  #addOpening(opening: OpeningInput, place: EntryPlace): void {
    const { policies, machines } = opening;
    if (!pinReferences(opening).every(isSystemRef)) {
      const message = `the tree ${opening.run_id} pins policies or machines that are no system content`;
      throw new LedgerError({ code: 'LEDGER_TAMPERED', message });
    }
    for (const name of presentFiles(policies)) {
      const ref = policies[name]?.artifact;
      if (ref === undefined) continue;
      this.#addFile({ path: policyPath(name, ref.hash_sha256), ref, place });
    }
    this.#addFile({ path: `machines/${machines.hash_sha256}.json`, ref: machines, place });
  }

  #addFile(content: BagContentFile): void {
    if (!this.#files.has(content.path)) this.#files.set(content.path, content);
  }

  #addRun(run_id: string): void {
    if (this.#runs.has(run_id)) {
      throw new LedgerError({ code: 'LEDGER_TAMPERED', message: `the run ${run_id} is created twice` });
    }
    this.#runs.set(run_id, 0);
  }

  #addEvent(event: AuditEvent): void {
    const events = this.#runs.get(event.run_id);
    if (events === undefined) return;
    // Deleted and set again, so that the run comes last.
    this.#runs.delete(event.run_id);
    this.#runs.set(event.run_id, events + 1);
    const references = referencesOfEvent(event);
    const other = [event, ...references].find(({ case_id }) => case_id !== undefined && case_id !== this.#case_id);
    if (other !== undefined) throw unwritableError(`${event.event_id} is about another case: a bag contains one case`);
    if (references.length > 0) {
      const count = (this.#references.get(event.run_id) ?? 0) + references.length;
      if (count > EXPORT_BAG_LIMITS.references_per_run_max) throw unwritableError(`${event.run_id} refers to too much`);
      this.#references.set(event.run_id, count);
    }
    this.#events.push(event.event_id);
  }
}

const unwritableError = (message: string): BagError => new BagError({ code: 'BAG_UNWRITABLE', message });

/** All artifact references of an audit event. */
export const referencesOfEvent = ({
  input_artifacts,
  output_artifacts,
  target,
}: AuditEvent): readonly ArtifactRef[] => [
  ...(input_artifacts ?? []),
  ...(output_artifacts ?? []),
  ...(target?.artifact_ref === undefined ? [] : [target.artifact_ref]),
];
