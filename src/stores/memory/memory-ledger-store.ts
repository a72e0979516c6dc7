// A ledger in memory, for tests and for services that store none. It fulfils the contract of the port except
// durability, so it refuses what the other stores refuse.

import type { StoredArtifact } from '../../core/contract/artifact-ref.js';
import type {
  Batch,
  CommitResult,
  CursorOptions,
  EntryPlace,
  EntryWithContent,
  ErasureResult,
  Erasure,
  Integration,
  LedgerStore,
  LogHead,
  MarkKey,
  MarkOf,
  OpenTree,
  PendingAppend,
  SnapshotCache,
  StoredEntry,
  TreeEntry,
  TreeCursorOptions,
  TreeSummary,
} from '../../engine/ports/ledger/ledger-store.js';
import type { ArchiveTable } from '../../engine/ports/ledger/archives.js';
import type { RunRecordTable } from '../../engine/ports/ledger/run-record-table.js';
import { checkBatch } from '../ledger/check-batch.js';
import { memoryArchiveTable } from './memory-archives.js';
import { notWriterError, unavailableError, writerReplacedError } from '../ledger/store-errors.js';
import { MemoryState } from './memory-state.js';

/** Creates a store in memory, on its own state or on a shared one. */
export const memoryStore = ({ state = new MemoryState() }: { readonly state?: MemoryState } = {}): LedgerStore =>
  new MemoryLedgerStore(state);

/** A store on the state that all stores of one ledger share. */
export class MemoryLedgerStore implements LedgerStore {
  readonly #state: MemoryState;
  /** Whether this store may write. */
  protected isWriter = false;
  #failed = false;
  /** True after `reopen`, until `acquire` is called again. */
  protected isReopened = false;
  #closed = false;

  constructor(state: MemoryState) {
    this.#state = state;
  }

  readonly records = null;
  readonly snapshots: SnapshotCache = {
    load: (tree_id) => this.#withState((state) => state.snapshots.get(tree_id) ?? null),
  };
  readonly runRecords: RunRecordTable = {
    unrecorded: () => this.#list((state) => state.runRecords.unrecorded()),
    save: (batch) =>
      this.#withState((state) => {
        if (!this.isWriter) throw notWriterError();
        if (this.#failed) throw unavailableError('the ledger could not be written before: reopen it');
        if (this.isShared) state.runRecords.saveFirst(batch);
        else state.runRecords.save(batch);
        return true;
      }),
    trees: () => this.#list((state) => state.runRecords.trees()),
    recorded: (tree_id) => this.#withState((state) => state.runRecords.recorded(tree_id)),
    load: (tree_id, run_id) => this.#withState((state) => state.runRecords.load(tree_id, run_id)),
    count: (tree_id) => this.#withState((state) => state.runRecords.count(tree_id)),
  };

  readonly archives: ArchiveTable = memoryArchiveTable((ask) =>
    this.#withState((state) => ask(state.archives, (removal) => (this.isWriter ? state.remove(removal) : null))),
  );

  /** Whether this store has joined as one of several workers. */
  protected get isShared(): boolean {
    return false;
  }

  acquire(): Promise<number> {
    return this.#withState((state) => {
      if (this.#failed) throw unavailableError('the ledger could not be written before: reopen it');
      const epoch = state.lock(this);
      this.isWriter = true;
      this.isReopened = false;
      return epoch;
    });
  }

  reopen(): Promise<void> {
    return this.#withState(() => {
      if (!this.isWriter) throw notWriterError();
      this.#failed = false;
      this.isReopened = true;
    });
  }

  commit(batch: Batch): Promise<CommitResult> {
    return this.#withState((state) => {
      checkBatch(batch);
      const result = this.#write(() => (this.isWriter && !this.isReopened ? state.commit(batch) : null));
      if (result !== null) return result;
      throw writerReplacedError(`epoch ${batch.epoch} is over, or a tree has other entries`);
    });
  }

  head(): Promise<LogHead> {
    return this.#withState((state) => state.head);
  }

  tree(tree_id: string, fromSeq = 0, options: CursorOptions = {}): AsyncIterable<TreeEntry> {
    return this.#each(fromSeq, (state, seq) => state.entryOf({ tree_id, seq }), options);
  }

  async *histories(places: readonly EntryPlace[]): AsyncGenerator<EntryWithContent> {
    for (const { tree_id, seq: fromSeq } of places) {
      yield* this.#each(fromSeq, (state, seq) => state.entryWithContent({ tree_id, seq }));
    }
  }

  log(fromIndex?: number, options: CursorOptions = {}): AsyncIterable<StoredEntry> {
    return this.#each(fromIndex ?? this.#state.archives.size, (state, log_index) => state.entry(log_index), options);
  }

  pending(limit: number): Promise<readonly PendingAppend[]> {
    return this.#withState((state) => state.pending(limit));
  }

  integrate(integration: Integration): Promise<boolean> {
    return this.#withState((state) => {
      if (!this.isWriter) throw notWriterError();
      return state.integrate(integration);
    });
  }

  async *trees({ from = 0, signal }: TreeCursorOptions = {}): AsyncGenerator<TreeSummary> {
    for await (const tree of this.#list((state) => state.trees())) {
      signal?.throwIfAborted();
      if ((tree.log_index ?? from) >= from) yield tree;
    }
  }

  treesOf(case_id: string): Promise<readonly TreeSummary[]> {
    return this.#withState((state) => state.treesOf(case_id));
  }

  openTrees(): AsyncIterable<OpenTree> {
    return this.#list((state) => state.openTrees());
  }

  artifactsOf(place: EntryPlace): Promise<readonly StoredArtifact[]> {
    return this.#withState((state) => state.artifactsOf(place));
  }

  artifact(case_id: string | null, hash: string): Promise<Uint8Array | null> {
    return this.#withState((state) => state.artifact(case_id, hash));
  }

  erase(erasure: Erasure): Promise<ErasureResult> {
    return this.#withState((state) => {
      if (!this.isWriter) throw notWriterError();
      return state.erase(erasure);
    });
  }

  marks<Key extends MarkKey>(keys: readonly Key[]): Promise<readonly (MarkOf<Key> | null)[]> {
    return this.#withState((state) => keys.map((key) => state.mark(key) as MarkOf<Key> | null));
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#state.unlock(this);
    return Promise.resolve();
  }

  /** After an error this store writes nothing more: the ledger must be reopened. */
  #write<T>(work: () => T): T {
    if (this.#failed) throw unavailableError('the ledger could not be written before: reopen it');
    this.#failed = true;
    const written = work();
    this.#failed = false;
    return written;
  }

  #withState<T>(work: (state: MemoryState) => T): Promise<T> {
    return new Promise((resolve) => {
      if (this.#closed) throw unavailableError('the ledger was closed');
      resolve(work(this.#state));
    });
  }

  async *#list<Item>(list: (state: MemoryState) => Iterable<Item>): AsyncGenerator<Item> {
    yield* await this.#withState((state) => [...list(state)]);
  }

  async *#each<Item>(
    from: number,
    entryAt: (state: MemoryState, place: number) => Item | undefined,
    { signal }: CursorOptions = {},
  ): AsyncGenerator<Item> {
    for (let place = from; ; place += 1) {
      signal?.throwIfAborted();
      const entry = await this.#withState((state) => entryAt(state, place));
      if (entry === undefined) return;
      yield entry;
    }
  }
}
