// What a ledger in memory holds, and what of it may change.

import { isWithheld, type StoredArtifact } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import { LedgerError } from '../errors.js';
import type {
  Batch,
  Erased,
  Erasure,
  LogHead,
  ProposalMark,
  StoredEntry,
  StoredSnapshot,
  TreeSummary,
} from '../ports/ledger-store.js';
import type { Archiving } from '../ports/archives.js';
import { checkProposalId } from './check-batch.js';
import { MemoryArchives } from './memory-archives.js';
import { copyOf, isRepeated, keyOf, unavailable } from './memory-parts.js';
import { MemoryRunRecords } from './memory-run-records.js';

interface MemoryTree {
  /** Log indexes of its entries, by seq. */
  readonly places: number[];
  readonly ended: boolean;
}

/** What stores in memory hold. Two stores on one state are two processes on one ledger. */
export class MemoryState {
  readonly #entries = new Map<number, StoredEntry>();
  readonly #trees = new Map<string, MemoryTree>();
  readonly #brought = new Map<number, readonly StoredArtifact[]>();
  readonly #contents = new Map<string, Uint8Array>();
  readonly #proposals = new Map<string, ProposalMark>();
  readonly #inputs = new Map<string, number>();
  readonly snapshots = new Map<string, StoredSnapshot>();
  readonly runRecords = new MemoryRunRecords();
  readonly archives = new MemoryArchives();
  #head: LogHead = { size: 0, root: sha256(''), frontier: [] };
  #epoch = 0;
  #writer: object | null = null;
  #broken = false;

  get head(): LogHead {
    return this.#head;
  }

  /** From now on nothing can be written, as on a disk that has failed, or it can again. */
  breakCommits(broken: boolean): void {
    this.#broken = broken;
  }

  /** Frees the writer's lock behind the writer's back, as when its process seems to be dead. */
  loseLock(): void {
    this.#writer = null;
  }

  lock(writer: object): number {
    if (this.#writer !== null && this.#writer !== writer) {
      throw new LedgerError({ code: 'LEDGER_LOCKED', message: 'another store writes to this ledger: close it first' });
    }
    this.#writer = writer;
    this.#epoch += 1;
    return this.#epoch;
  }

  unlock(writer: object): void {
    if (this.#writer === writer) this.#writer = null;
  }

  /** @returns false, with nothing written, if the batch does not go on from here */
  commit(batch: Batch): boolean {
    if (batch.epoch !== this.#epoch || batch.from !== this.#head.size) return false;
    if (this.#broken) throw unavailable('the ledger could not be written: nothing of this was acknowledged');
    const ends = this.#endsAfter(batch);
    this.#refuseMarks(batch, ends);
    this.#add(batch);
    return true;
  }

  /** @returns null, with nothing removed, if the epoch is over; else the next one */
  remove(archiving: Archiving): number | null {
    if (archiving.epoch !== this.#epoch) return null;
    const held = { entries: this.#entries, brought: this.#brought, contents: this.#contents };
    this.archives.remove(archiving, held, [this.#trees, this.snapshots]);
    return (this.#epoch += 1);
  }

  entry(log_index: number): StoredEntry | undefined {
    this.archives.refuse(log_index);
    return this.#entries.get(log_index);
  }

  entryOf(tree_id: string, seq: number): StoredEntry | undefined {
    this.archives.refuseTree(tree_id);
    const place = this.#trees.get(tree_id)?.places[seq];
    return place === undefined ? undefined : this.#entries.get(place);
  }

  /** Trees that have entries, in the order of their first one. */
  *trees(): Iterable<TreeSummary> {
    for (const [tree_id, { places, ended }] of this.#trees) {
      const [log_index] = places;
      if (log_index !== undefined) yield { tree_id, ended, log_index };
    }
  }

  artifactsOf(log_index: number): readonly StoredArtifact[] {
    this.archives.refuse(log_index);
    return (this.#brought.get(log_index) ?? []).map((artifact) =>
      isWithheld(artifact) ? artifact : { ...artifact, bytes: copyOf(artifact.bytes) },
    );
  }

  erase({ case_id, tree_ids }: Erasure): Erased {
    const erased = { contents: 0, bytes: 0 };
    for (const [log_index, brought] of this.#brought) {
      const left = brought.map((artifact): StoredArtifact => {
        if (isWithheld(artifact) || artifact.case_id !== case_id) return artifact;
        const { kind, bytes } = artifact;
        const hash = sha256(bytes);
        if (this.#contents.delete(keyOf(case_id, hash))) {
          erased.contents += 1;
          erased.bytes += bytes.byteLength;
        }
        return { kind, case_id, withheld: 'erased', sha256: hash, byte_size: bytes.byteLength };
      });
      this.#brought.set(log_index, left);
    }
    for (const tree_id of tree_ids) this.snapshots.delete(tree_id);
    return erased;
  }

  artifact(case_id: string | null, hash: string): Uint8Array | null {
    const bytes = this.#contents.get(keyOf(case_id, hash));
    if (bytes === undefined) this.archives.refuseContent(case_id, hash);
    return bytes === undefined ? null : copyOf(bytes);
  }

  proposal(root_run_id: string, proposal_id: string): ProposalMark | null {
    checkProposalId(proposal_id);
    return this.#proposals.get(keyOf(root_run_id, proposal_id)) ?? null;
  }

  input(tree_id: string, input_id: string): number | null {
    return this.#inputs.get(keyOf(tree_id, input_id)) ?? null;
  }

  /** How many entries each tree of the batch will have. @throws LedgerError if it leaves a gap in one */
  #endsAfter({ entries }: Batch): ReadonlyMap<string, number> {
    const ends = new Map<string, number>();
    for (const { entry } of entries) {
      const { tree_id, seq } = entry;
      this.archives.refuseTree(tree_id);
      const end = ends.get(tree_id) ?? this.#trees.get(tree_id)?.places.length ?? 0;
      if (seq !== end) throw unavailable(`after ${end} entries of ${tree_id} seq ${seq} cannot follow`);
      ends.set(tree_id, end + 1);
    }
    return ends;
  }

  #refuseMarks({ proposals, inputs, trees }: Batch, ends: ReadonlyMap<string, number>): void {
    const proposalKeys = proposals.map(({ root_run_id, proposal_id }) => keyOf(root_run_id, proposal_id));
    const inputKeys = inputs.map(({ tree_id, input_id }) => keyOf(tree_id, input_id));
    if (isRepeated(proposalKeys, this.#proposals) || isRepeated(inputKeys, this.#inputs)) {
      throw unavailable('a proposal or an input is marked already: a mark never changes');
    }
    for (const { tree_id } of [...inputs, ...trees]) {
      if (!ends.has(tree_id) && !this.#trees.has(tree_id))
        throw unavailable(`a mark of ${tree_id}, which has no entries`);
    }
  }

  #add({ from, entries, artifacts, proposals, inputs, trees, head }: Batch): void {
    entries.forEach(({ entry: { tree_id, seq, type }, text, leaf_hash }, position) => {
      this.#entries.set(from + position, { log_index: from + position, tree_id, seq, type, text, leaf_hash });
      this.#tree(tree_id).places.push(from + position);
    });
    for (const { entry, artifact, sha256: hash } of artifacts) {
      const kept = { ...artifact, bytes: copyOf(artifact.bytes) };
      this.#brought.set(from + entry, [...(this.#brought.get(from + entry) ?? []), kept]);
      this.#contents.set(keyOf(artifact.case_id, hash), kept.bytes);
    }
    for (const mark of proposals) this.#proposals.set(keyOf(mark.root_run_id, mark.proposal_id), { ...mark });
    for (const { tree_id, input_id, seq } of inputs) this.#inputs.set(keyOf(tree_id, input_id), seq);
    for (const { tree_id, state } of trees) {
      if (state !== 'ended' || this.#tree(tree_id).ended) continue;
      this.#trees.set(tree_id, { ...this.#tree(tree_id), ended: true });
      this.runRecords.ended(tree_id);
    }
    this.#head = { ...head, frontier: [...head.frontier] };
  }

  #tree(tree_id: string): MemoryTree {
    const known = this.#trees.get(tree_id) ?? { places: [], ended: false };
    this.#trees.set(tree_id, known);
    return known;
  }
}
