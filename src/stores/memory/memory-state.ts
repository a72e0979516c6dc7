import { isWithheld, type StoredArtifact } from '../../core/contract/artifact-ref.js';
import { sha256 } from '../../core/contract/hash.js';
import { InvariantError, LedgerError } from '../../core/errors.js';
import type {
  Batch,
  CommitResult,
  EntryPlace,
  EntryWithContent,
  ErasureResult,
  Erasure,
  Integration,
  LogHead,
  MarkKey,
  OpenTree,
  PendingAppend,
  ProposalMark,
  InputMark,
  StoredEntry,
  StoredSnapshot,
  TreeAppend,
  TreeEntry,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { AppendStatus, SharedBatch } from '../../engine/ports/ledger/shared-store.js';
import type { ArchiveRemoval } from '../../engine/ports/ledger/archives.js';
import { checkProposalId, integrateBatch } from '../ledger/check-batch.js';
import { duplicateMarkError, unavailableError } from '../ledger/store-errors.js';
import { MemoryArchives } from './memory-archives.js';
import { MemoryPendingAppends } from './memory-pending-appends.js';
import { copyBytes, hasRepeated, scopedKey } from './memory-keys.js';
import { MemoryQuotas } from './memory-quotas.js';
import { MemoryRunRecords } from './memory-run-records.js';
import { MemoryTree } from './memory-tree.js';
import { MemoryWorkers } from './memory-workers.js';

export interface MemoryStateOptions {
  /** False: `integrate` gives entries their log indexes, as in a shared store. @default true */
  readonly integrates?: boolean;
}

/** The state of stores in memory. Two stores on one state behave like two processes on one ledger. */
export class MemoryState {
  readonly #log = new Map<number, StoredEntry>();
  readonly #trees = new Map<string, MemoryTree>();
  readonly #contents = new Map<string, Uint8Array>();
  readonly #proposals = new Map<string, ProposalMark>();
  readonly #inputs = new Map<string, InputMark>();
  readonly #pending: MemoryPendingAppends | null;
  readonly snapshots = new Map<string, StoredSnapshot>();
  readonly runRecords = new MemoryRunRecords();
  readonly archives = new MemoryArchives();
  readonly workers = new MemoryWorkers();
  readonly quotas = new MemoryQuotas();
  #head: LogHead = { size: 0, root: sha256(''), frontier: [] };
  #epoch = 0;
  #writer: object | null = null;
  #broken = false;

  constructor({ integrates: shouldIntegrate = true }: MemoryStateOptions = {}) {
    this.#pending = shouldIntegrate ? null : new MemoryPendingAppends();
  }

  get head(): LogHead {
    return this.#head;
  }

  /** Makes every write fail, as on a broken disk, or lets writes succeed again. */
  breakCommits(broken: boolean): void {
    this.#broken = broken;
  }

  /** Releases the writer lock without the writer's knowledge, as if its process had died. */
  loseLock(): void {
    this.#writer = null;
  }

  /** Adds a worker. @returns its number @throws LedgerError LEDGER_LOCKED */
  join(worker: object): number {
    if (this.#writer !== null) throw lockedError();
    return this.workers.join(worker);
  }

  lock(writer: object): number {
    if ((this.#writer !== null && this.#writer !== writer) || this.workers.hasAny) {
      throw lockedError();
    }
    this.#writer = writer;
    this.#epoch += 1;
    return this.#epoch;
  }

  unlock(writer: object): void {
    if (this.#writer === writer) this.#writer = null;
  }

  /** @returns null, with nothing written, if the epoch is over or a tree has other entries than the batch expects */
  commit(batch: Batch): CommitResult | null {
    const { epoch, trees } = batch;
    if (epoch !== this.#epoch) return null;
    if (this.#broken) throw unavailableError('the ledger could not be written: nothing of this was acknowledged');
    for (const { tree_id } of trees) this.archives.refuseTree(tree_id);
    if (trees.length > 0 && trees.every((append) => this.#trees.get(append.tree_id)?.has(append) === true)) {
      return this.#resultOf(batch);
    }
    if (!trees.every(({ tree_id, from }) => from === (this.#trees.get(tree_id)?.entries.length ?? 0))) return null;
    this.#refuseMarks(batch);
    for (const append of trees) this.#add(append);
    if (this.#pending === null) this.#integrateCommitted(batch);
    else this.#pending.add(batch);
    return this.#resultOf(batch);
  }

  /** Commits each append alone (`SharedLedgerStore.commitTrees`). */
  commitEach(batch: SharedBatch): readonly AppendStatus[] {
    if (this.#broken) throw unavailableError('the ledger could not be written: nothing of this was acknowledged');
    const statuses = this.quotas.compare(
      batch,
      batch.trees.map((append) => this.#statusOf(append)),
    );
    for (const [index, append] of batch.trees.entries()) {
      if (statuses[index] !== 'committed') continue;
      const alone = { epoch: batch.worker_id, trees: [append] };
      // The engine looks marks up after it has read the tree, so a repeated one would be a conflict.
      if (this.#hasMark(alone)) throw duplicateMarkError();
      this.#add(append);
      if (this.#pending === null) this.#integrateCommitted(alone);
      else this.#pending.add(alone);
    }
    this.quotas.apply(batch, statuses);
    return statuses;
  }

  #statusOf(append: TreeAppend): AppendStatus {
    const tree = this.#trees.get(append.tree_id);
    if (tree?.has(append) === true) return 'present';
    return append.from === (tree?.entries.length ?? 0) ? 'committed' : 'conflict';
  }

  /** The case of a tree; null if it has none or is unknown. */
  caseOf(tree_id: string): string | null {
    return this.#trees.get(tree_id)?.case_id ?? null;
  }

  /** The number of entries of a tree; 0 for an unknown one. */
  treeLength(tree_id: string): number {
    return this.#trees.get(tree_id)?.entries.length ?? 0;
  }

  /** The open trees with a timer at or before `now`; the timers count as being at `until` from now on. */
  claimDueTrees(now: string, until: string, limit: number, except: readonly string[]): readonly string[] {
    const due = [...this.#trees.values()].filter(
      ({ tree_id, ended, recovery }) =>
        !ended && recovery.wake_at !== null && recovery.wake_at <= now && !except.includes(tree_id),
    );
    return due.slice(0, limit).map((tree) => {
      tree.delayTimers(until);
      return tree.tree_id;
    });
  }

  pending(limit: number): readonly PendingAppend[] {
    return this.#pending?.first(limit) ?? [];
  }

  /** @returns false, with nothing written, if the log has another size */
  integrate({ from, appends, head }: Integration): boolean {
    if (this.#broken) throw unavailableError('the ledger could not be written: nothing of this was acknowledged');
    if (from !== this.#head.size) return false;
    if (this.#pending === null) throw new InvariantError('nothing is pending: this store integrates in its commits');
    this.#pending.check({ from, appends, head });
    let log_index = from;
    for (const { tree_id, seq, leaf_hashes } of appends) {
      this.#place({ tree_id, seq }, leaf_hashes.length, log_index);
      log_index += leaf_hashes.length;
    }
    this.#pending.remove(appends);
    this.#head = { ...head, frontier: [...head.frontier] };
    return true;
  }

  /** @returns the next epoch, or null, with nothing removed, if the epoch is over */
  remove(removal: ArchiveRemoval): number | null {
    if (removal.epoch !== this.#epoch) return null;
    this.archives.remove(removal, { log: this.#log, trees: this.#trees, contents: this.#contents });
    for (const { tree_id } of removal.trees) this.snapshots.delete(tree_id);
    return (this.#epoch += 1);
  }

  entry(log_index: number): StoredEntry | undefined {
    this.archives.refuseEntry(log_index);
    return this.#log.get(log_index);
  }

  entryOf({ tree_id, seq }: EntryPlace): TreeEntry | undefined {
    this.archives.refuseTree(tree_id);
    return this.#trees.get(tree_id)?.entries[seq];
  }

  entryWithContent(place: EntryPlace): EntryWithContent | undefined {
    const entry = this.entryOf(place);
    return entry === undefined ? undefined : { entry, artifacts: this.artifactsOf(place) };
  }

  /** In the order of their first entries; trees without a log index come last. */
  trees(): readonly TreeSummary[] {
    const trees = [...this.#trees.values()].map((tree) => tree.summary());
    return trees.sort((one, other) => (one.log_index ?? Infinity) - (other.log_index ?? Infinity) || 0);
  }

  treesOf(case_id: string): readonly TreeSummary[] {
    return this.trees().filter(({ tree_id }) => this.#trees.get(tree_id)?.case_id === case_id);
  }

  openTrees(): readonly OpenTree[] {
    return [...this.#trees.values()]
      .filter(({ ended }) => !ended)
      .map(({ tree_id, recovery: rest }) => ({ tree_id, ...rest }));
  }

  artifactsOf({ tree_id, seq }: EntryPlace): readonly StoredArtifact[] {
    this.archives.refuseTree(tree_id);
    return (this.#trees.get(tree_id)?.attachedArtifacts.get(seq) ?? []).map((artifact) =>
      isWithheld(artifact) ? artifact : { ...artifact, bytes: copyBytes(artifact.bytes) },
    );
  }

  erase({ case_id, tree_ids }: Erasure): ErasureResult {
    const erased = { contents: 0, bytes: 0 };
    for (const { attachedArtifacts } of this.#trees.values()) {
      for (const [seq, artifacts] of attachedArtifacts) {
        const remaining = artifacts.map((artifact): StoredArtifact => {
          if (isWithheld(artifact) || artifact.case_id !== case_id) return artifact;
          const { kind, bytes } = artifact;
          const hash = sha256(bytes);
          if (this.#contents.delete(scopedKey(case_id, hash))) {
            erased.contents += 1;
            erased.bytes += bytes.byteLength;
          }
          return { kind, case_id, withheld: 'erased', sha256: hash, byte_size: bytes.byteLength };
        });
        attachedArtifacts.set(seq, remaining);
      }
    }
    for (const tree_id of tree_ids) this.snapshots.delete(tree_id);
    return erased;
  }

  artifact(case_id: string | null, hash: string): Uint8Array | null {
    const bytes = this.#contents.get(scopedKey(case_id, hash));
    if (bytes === undefined) this.archives.refuseContent(case_id, hash);
    return bytes === undefined ? null : copyBytes(bytes);
  }

  mark(key: MarkKey): ProposalMark | InputMark | null {
    if ('input_id' in key) return this.#inputs.get(scopedKey(key.tree_id, key.input_id)) ?? null;
    checkProposalId(key.proposal_id);
    return this.#proposals.get(scopedKey(key.root_run_id, key.proposal_id)) ?? null;
  }

  #refuseMarks(batch: Batch): void {
    if (this.#hasMark(batch)) throw unavailableError('a proposal or an input is marked already: a mark never changes');
  }

  #hasMark({ trees }: Batch): boolean {
    const proposalKeys = trees.flatMap(({ proposals }) =>
      proposals.map(({ root_run_id, proposal_id }) => scopedKey(root_run_id, proposal_id)),
    );
    const inputKeys = trees.flatMap(({ inputs }) =>
      inputs.map(({ tree_id, input_id }) => scopedKey(tree_id, input_id)),
    );
    return hasRepeated(proposalKeys, this.#proposals) || hasRepeated(inputKeys, this.#inputs);
  }

  #add(append: TreeAppend): void {
    const { tree_id, artifacts, proposals, inputs, snapshot } = append;
    const tree = this.#trees.get(tree_id) ?? new MemoryTree(tree_id);
    this.#trees.set(tree_id, tree);
    if (append.ended && !tree.ended) this.runRecords.addEndedTree(tree_id);
    tree.append(append);
    if (snapshot !== null) this.snapshots.set(tree_id, snapshot);
    for (const { artifact, sha256: hash } of artifacts) {
      this.#contents.set(scopedKey(artifact.case_id, hash), copyBytes(artifact.bytes));
    }
    for (const mark of proposals) this.#proposals.set(scopedKey(mark.root_run_id, mark.proposal_id), { ...mark });
    for (const mark of inputs) this.#inputs.set(scopedKey(mark.tree_id, mark.input_id), { ...mark });
  }

  #integrateCommitted(batch: Batch): void {
    const { head, first_log_indexes } = integrateBatch(this.#head, batch);
    batch.trees.forEach(({ tree_id, from, entries }, at) => {
      this.#place({ tree_id, seq: from }, entries.length, first_log_indexes[at] ?? 0);
    });
    this.#head = head;
  }

  /** Gives `count` entries of a tree their log indexes, starting with this entry. */
  #place({ tree_id, seq }: EntryPlace, count: number, log_index: number): void {
    const placed = this.#trees.get(tree_id)?.place(seq, count, log_index) ?? [];
    for (const entry of placed) this.#log.set(entry.log_index, entry);
  }

  #resultOf({ trees }: Batch): CommitResult {
    const firsts: number[] = [];
    for (const { tree_id, from, entries } of trees) {
      const tree = this.#trees.get(tree_id);
      const first = tree?.entries[from]?.log_index ?? null;
      const last = tree?.entries[from + entries.length - 1]?.log_index ?? null;
      if (first === null || last === null) return { head: null, first_log_indexes: null };
      firsts.push(first);
    }
    return { head: this.#head, first_log_indexes: firsts };
  }
}

const lockedError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_LOCKED', message: 'another store writes to this ledger: close it first' });
