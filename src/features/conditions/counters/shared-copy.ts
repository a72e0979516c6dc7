// The counters as one worker of a shared ledger knows them: everything that it has read, and its own decisions that are
// not committed yet. The entries of a tree are added in their order, each once. If another worker has written other
// entries than this one has decided, the copy has those of the other worker from the moment on at which it reads them:
// what has been decided instead will be refused.

import type { SealedEntry } from '../../../core/contract/run/entry.js';
import type { CounterFact } from '../../../core/contract/run/counter-fact.js';
import type { SharedFactStore } from '../../../engine/ledger-facts.js';
import type { TreeEntry } from '../../../engine/ports/ledger/ledger-store.js';
import { CounterBook, type AppliedEntry } from './counter-book.js';
import { firstIndex, noteBeginning, readEntry } from './read-counters.js';

type Store = Omit<SharedFactStore, 'caseQuotas'>;

/** How much is read of what is committed and not in the log. */
const PENDING_MAX = 65_536;

/** Fewer trees are not worth the question which of them are open. */
const TREES_MIN = 1_024;

interface DecidedEntry {
  readonly seq: number;
  readonly leaf_hash: string;
  readonly applied: AppliedEntry | null;
}

interface TreeCopy {
  /** The book has the entries before this seq. */
  next: number;
  /** The entries that are not committed yet. */
  uncommitted: DecidedEntry[];
  hasEnded: boolean;
}

export class SharedCopy {
  readonly book: CounterBook;
  readonly #store: Store;
  /** The size of the log that the book has. */
  #size: number;
  readonly #trees = new Map<string, TreeCopy>();
  /** Trees of which another worker has written other entries than this one has decided. */
  readonly #overtaken = new Set<string>();
  /** The trees that had accounts of their own when those that have ended were forgotten. */
  #keptTrees = 0;
  /** Resolves when nothing is read. */
  #reading: Promise<void> = Promise.resolve();

  private constructor(store: Store, size: number) {
    this.#store = store;
    this.#size = size;
    this.book = new CounterBook(size === 0);
  }

  /** @throws LedgerError */
  static async read(store: Store): Promise<SharedCopy> {
    const copy = new SharedCopy(store, await firstIndex(store));
    await copy.catchUp();
    return copy;
  }

  /** Whether the book has all entries of a tree of this length. */
  has(tree_id: string, length: number): boolean {
    return (this.#trees.get(tree_id)?.next ?? 0) >= length;
  }

  /** Reads the first `length` entries of a tree, after what is being read. @throws LedgerError */
  readTree(tree_id: string, length: number): Promise<void> {
    return this.#afterReading(() => {
      this.#tree(tree_id);
      return this.#readTree(tree_id, length);
    });
  }

  /** Reads what is committed by now, after what is being read. @throws LedgerError */
  catchUp(): Promise<void> {
    return this.#afterReading(() => this.#readOn());
  }

  /** Adds a decided entry, unless another worker has written this seq. @returns the counters that it has changed */
  add(tree_id: string, { entry, leaf_hash }: Pick<SealedEntry, 'entry' | 'leaf_hash'>): readonly CounterFact[] {
    const tree = this.#tree(tree_id);
    const { seq } = entry;
    if (seq !== tree.next) return [];
    const applied = this.book.apply(entry);
    tree.uncommitted.push({ seq, leaf_hash, applied });
    tree.next += 1;
    return applied?.changed ?? [];
  }

  /** The entries of a tree before this seq are committed. */
  settle(tree_id: string, seq: number): void {
    const tree = this.#trees.get(tree_id);
    if (tree !== undefined) tree.uncommitted = tree.uncommitted.filter((entry) => entry.seq >= seq);
  }

  endTree(tree_id: string): void {
    this.book.endTree(tree_id);
    this.#tree(tree_id).hasEnded = true;
  }

  /** The entries of a tree from this seq on were not written, or will not be. */
  takeBack(tree_id: string, from: number): void {
    const tree = this.#trees.get(tree_id);
    const later = tree?.uncommitted.filter(({ seq }) => seq >= from) ?? [];
    const [first] = later;
    if (tree === undefined || first === undefined) return;
    for (const { applied } of later.toReversed()) applied?.undo();
    tree.uncommitted = tree.uncommitted.filter(({ seq }) => seq < from);
    tree.next = first.seq;
    this.#overtaken.add(tree_id);
  }

  /**
   * Compares a stored entry with the one that was decided in its place. The same one is committed, whatever the answer
   * to its commit will be. If it is another one, what was decided from there on is taken back.
   */
  #compare({ tree_id, seq, leaf_hash }: Pick<TreeEntry, 'tree_id' | 'seq' | 'leaf_hash'>): void {
    const tree = this.#trees.get(tree_id);
    const decided = tree?.uncommitted.find((entry) => entry.seq === seq);
    if (tree === undefined || decided === undefined) return;
    if (decided.leaf_hash === leaf_hash) tree.uncommitted = tree.uncommitted.filter((entry) => entry !== decided);
    else this.takeBack(tree_id, seq);
  }

  #afterReading(read: () => Promise<void>): Promise<void> {
    this.#reading = this.#reading.then(read, read);
    return this.#reading;
  }

  /** Reads the log on, then what is committed and not in the log yet. */
  async #readOn(): Promise<void> {
    const pending = await this.#store.pending(PENDING_MAX);
    for await (const stored of this.#store.log(this.#size)) {
      noteBeginning(this.book, stored);
      this.#take(stored);
      this.#size = stored.log_index + 1;
      this.#forgetEnded(stored);
    }
    for (const { tree_id, seq, leaf_hashes } of pending) {
      for (const [index, leaf_hash] of leaf_hashes.entries()) this.#compare({ tree_id, seq: seq + index, leaf_hash });
      await this.#readTree(tree_id, seq + leaf_hashes.length);
    }
    // The log has passed what this worker had decided otherwise.
    for (const tree_id of [...this.#overtaken]) {
      this.#overtaken.delete(tree_id);
      await this.#readTree(tree_id, Infinity);
    }
    if (this.book.treeCount > 2 * this.#keptTrees + TREES_MIN) await this.#forgetEndedTrees();
  }

  /** Another worker may have ended them. */
  async #forgetEndedTrees(): Promise<void> {
    const kept = new Set([...this.#trees].flatMap(([id, { uncommitted }]) => (uncommitted.length > 0 ? [id] : [])));
    for await (const { tree_id } of this.#store.openTrees()) kept.add(tree_id);
    this.book.keepTrees(kept);
    this.#keptTrees = this.book.treeCount;
  }

  async #readTree(tree_id: string, length: number): Promise<void> {
    const tree = this.#trees.get(tree_id);
    // What is not known to be committed is compared first.
    const from = Math.min(tree?.next ?? 0, tree?.uncommitted[0]?.seq ?? Infinity);
    if (from >= length) return;
    for await (const stored of this.#store.tree(tree_id, from)) {
      if (stored.seq >= length) break;
      this.#take(stored);
    }
  }

  #take(stored: TreeEntry): void {
    this.#compare(stored);
    const known = this.#trees.get(stored.tree_id);
    if (known !== undefined && stored.seq < known.next) return;
    // The log has passed the entries before this one: the tree is read on from where the copy has it.
    if (known !== undefined && stored.seq > known.next) {
      this.#overtaken.add(stored.tree_id);
      return;
    }
    const applied = this.book.needs(stored) ? this.book.apply(readEntry(stored)) : null;
    // A tree that no counter has anything of can be read again from its beginning.
    if (known !== undefined) known.next = stored.seq + 1;
    else if (applied !== null) this.#tree(stored.tree_id).next = stored.seq + 1;
  }

  #forgetEnded({ tree_id, seq }: TreeEntry): void {
    const tree = this.#trees.get(tree_id);
    if (tree?.hasEnded === true && seq + 1 === tree.next && tree.uncommitted.length === 0) this.#trees.delete(tree_id);
  }

  #tree(tree_id: string): TreeCopy {
    const known = this.#trees.get(tree_id) ?? { next: 0, uncommitted: [], hasEnded: false };
    this.#trees.set(tree_id, known);
    return known;
  }
}
