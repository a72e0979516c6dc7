// The counters as one worker of a shared ledger knows them: everything that it has read, and its own decisions that are
// not committed yet. The entries of a tree are added in their order, each once.

import type { Entry } from '../../contract/run/entry.js';
import type { LedgerStore, TreeEntry } from '../../ports/ledger/ledger-store.js';
import { CounterBook, type Undo } from './counter-book.js';
import { firstIndex, noteBeginning, readEntry } from './read-counters.js';

type Store = Pick<LedgerStore, 'log' | 'tree' | 'pending' | 'openTrees' | 'archives'>;

/** How much is read of what is committed and not in the log. */
const PENDING_MAX = 65_536;

/** Fewer trees are not worth the question which of them are open. */
const TREES_MIN = 1_024;

interface TreeCopy {
  /** The book has the entries before this seq. */
  next: number;
  /** The entries that are not committed yet. */
  uncommitted: { readonly seq: number; readonly undo: Undo | null }[];
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

  /** Adds a decided entry, unless another worker has written this seq. */
  add(tree_id: string, entry: Entry): void {
    const tree = this.#tree(tree_id);
    if (entry.seq !== tree.next) return;
    tree.uncommitted.push({ seq: entry.seq, undo: this.book.apply(entry) });
    tree.next += 1;
  }

  /** The entries of a tree before this seq are committed. */
  settle(tree_id: string, seq: number): void {
    const tree = this.#tree(tree_id);
    tree.uncommitted = tree.uncommitted.filter((entry) => entry.seq >= seq);
  }

  endTree(tree_id: string): void {
    this.book.endTree(tree_id);
    this.#tree(tree_id).hasEnded = true;
  }

  /** The entries of a tree from this seq on were not written, or will not be. */
  takeBack(tree_id: string, from: number): void {
    const tree = this.#tree(tree_id);
    const later = tree.uncommitted.filter(({ seq }) => seq >= from);
    if (later.length === 0) return;
    for (const { undo } of later.toReversed()) undo?.();
    tree.uncommitted = tree.uncommitted.filter(({ seq }) => seq < from);
    tree.next = later[0]?.seq ?? tree.next;
    this.#overtaken.add(tree_id);
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
    for (const { tree_id, seq, leaf_hashes } of pending) await this.#readTree(tree_id, seq + leaf_hashes.length);
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
    const from = this.#trees.get(tree_id)?.next ?? 0;
    if (from >= length) return;
    for await (const stored of this.#store.tree(tree_id, from)) {
      if (stored.seq >= length) break;
      this.#take(stored);
    }
  }

  #take(stored: TreeEntry): void {
    const known = this.#trees.get(stored.tree_id);
    if (known !== undefined && stored.seq < known.next) return;
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
