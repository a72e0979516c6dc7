// Counters that several workers change. Each worker reads them from the ledger; the store has only a version for each
// counter of one subject, in the row of a case whose id no case can have.
//
//   V1. A decision is made with a copy. Its commit is a conflict if the counter has another version than the copy.
//   V2. Every change of a counter gives it another version, also one on which nothing was decided.
//   V3. After a conflict, the versions are read first, and then everything that is committed. So the copy has at least
//       what the versions stand for.
//   V4. A decision of this worker is in the copy before the log has it. It is skipped when the log has it, and taken
//       back if its commit was a conflict. If another worker has written another entry in its place, the copy is
//       made again.

import { sha256 } from '../../contract/hash.js';
import type { Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import type { TreeEntry } from '../../ports/ledger/ledger-store.js';
import type { AppendStatus, QuotaChange, SharedBatch, SharedLedgerStore } from '../../ports/ledger/shared-store.js';
import type { Submission } from '../tree-engine.js';
import { accountKey, type CounterBook } from './counter-book.js';
import type { EngineCounters } from './counters.js';
import { withCounters } from './ledger-counters.js';
import { loadBook, readEntry } from './read-counters.js';

type Store = Pick<SharedLedgerStore, 'log' | 'tree' | 'pending' | 'openTrees' | 'archives' | 'caseQuotas'>;

/** How much is read of what is committed and not in the log. */
const PENDING_MAX = 65_536;
/** Beyond this number of entries that the log has not shown yet, it is read. */
const AHEAD_MAX = 4_096;
/** A version that no counter has: the copy may differ from the store. */
const UNKNOWN_VERSION = '?';
const NONE = { bytes: 0, files: 0 };

/** What the decisions of a tick do with one counter. */
interface Draft {
  readonly version: string;
  isChecked: boolean;
  isChanged: boolean;
}

/** An entry that the book has before the log. */
interface EntryAhead {
  readonly leaf_hash: string;
  undo(): void;
}

/** What was read from the ledger. */
interface Copy {
  readonly book: CounterBook;
  /** The size of the log that the book has. */
  size: number;
}

export class SharedCounters implements EngineCounters {
  readonly #store: Store;
  #copy: Copy | null = null;
  #isStale = false;
  /** By the key of the counter. Without a version, no worker has changed it, or this one does not know. */
  readonly #versions = new Map<string, string>();
  /** V4: the entries that the log has not shown, by tree and seq. */
  readonly #ahead = new Map<string, Map<number, EntryAhead>>();
  #aheadCount = 0;
  /** By tree, then by the key of the counter. */
  readonly #drafts = new Map<string, Map<string, Draft>>();

  constructor(store: Store) {
    this.#store = store;
  }

  startTick(): void {
    if (this.#isStale) this.clear();
    this.#drafts.clear();
  }

  /** What another worker has begun, this one must have read before it settles it. */
  mustPrepare({ policy }: Tree, { input }: Submission): boolean {
    if (policy?.counters === undefined) return false;
    const isOfOthers = input.kind === 'resolve' || (input.kind === 'result' && input.settled);
    return this.#copy === null || this.#aheadCount > AHEAD_MAX || isOfOthers;
  }

  async prepare(): Promise<void> {
    this.#copy ??= await loadBook(this.#store);
    await this.#catchUp(this.#copy);
  }

  addFacts(tree: Tree, submission: Submission, time: string): Submission {
    if (this.#copy === null) return submission;
    const complete = withCounters(this.#copy.book, tree, submission, time);
    if (complete.input.kind === 'facts')
      for (const fact of complete.input.counters ?? []) this.#draft(tree.tree_id, accountKey(fact)).isChecked = true;
    return complete;
  }

  applyDecision({ tree_id }: Tree, { entries, ended }: Decision): void {
    if (this.#copy === null) return;
    for (const { entry, leaf_hash } of entries) {
      const applied = this.#copy.book.apply(entry);
      if (applied === null) continue;
      this.#noteAhead(tree_id, entry.seq, { leaf_hash, undo: applied.undo });
      for (const key of applied.keys) this.#draft(tree_id, key).isChanged = true;
    }
    if (ended.some(({ run_id }) => run_id === tree_id)) this.#copy.book.endTree(tree_id);
  }

  undo(): void {
    this.#isStale = true;
  }

  clear(): void {
    this.#copy = null;
    this.#isStale = false;
    for (const known of [this.#versions, this.#ahead, this.#drafts]) known.clear();
    this.#aheadCount = 0;
  }

  /** What the decisions of this tick change for the tree, or depend on (V1, V2). */
  changesOf(tree_id: string): readonly QuotaChange[] {
    return [...(this.#drafts.get(tree_id) ?? [])].map(([key, { version, isChecked, isChanged }]) => ({
      case_id: counterId(key),
      version: version === this.#versionOf(key) && !this.#isStale ? version : UNKNOWN_VERSION,
      isChecked,
      ...{ total: NONE, room: null, reserved: [] },
      // A change without reservations: nothing has this run id.
      released: isChanged ? [CHANGED] : [],
    }));
  }

  /** The next tick decides with the versions that the batch will give. */
  onSent({ trees, quota_version }: SharedBatch): void {
    for (const { tree_id } of trees)
      for (const [key, { isChanged }] of this.#drafts.get(tree_id) ?? [])
        if (isChanged) this.#versions.set(key, quota_version);
  }

  /** V3, V4. @throws LedgerError */
  async onCommitted({ trees }: SharedBatch, statuses: readonly AppendStatus[]): Promise<void> {
    const refused = trees.filter((_, index) => statuses[index] === 'conflict');
    const ids = new Set(refused.flatMap(({ quotas }) => quotas).map(({ case_id }) => case_id));
    for (const { tree_id, from } of refused) this.#takeBack(tree_id, from);
    const keys = [...this.#keysOf(ids)];
    if (keys.length === 0 || this.#copy === null) return;
    const quotas = await this.#store.caseQuotas(keys.map(counterId));
    await this.#catchUp(this.#copy);
    for (const [index, { version }] of quotas.entries()) this.#versions.set(keys[index] ?? '', version);
  }

  #keysOf(ids: ReadonlySet<string>): ReadonlySet<string> {
    const known = [...this.#drafts.values()].flatMap((drafts) => [...drafts.keys()]);
    return new Set([...known, ...this.#versions.keys()].filter((key) => ids.has(counterId(key))));
  }

  /** Reads what is committed, also what is not in the log yet. */
  async #catchUp(copy: Copy): Promise<void> {
    const pending = await this.#store.pending(PENDING_MAX);
    for await (const stored of this.#store.log(copy.size)) {
      this.#take(copy.book, stored);
      copy.size = stored.log_index + 1;
    }
    for (const { tree_id, seq, leaf_hashes } of pending) {
      for await (const stored of this.#store.tree(tree_id, seq)) {
        if (stored.seq >= seq + leaf_hashes.length) break;
        if (stored.log_index === null || stored.log_index >= copy.size) this.#take(copy.book, stored);
      }
    }
  }

  /** V4. */
  #take(book: CounterBook, stored: TreeEntry): void {
    const { tree_id, seq, log_index, leaf_hash } = stored;
    const isInLog = log_index !== null;
    const known = this.#ahead.get(tree_id)?.get(seq);
    if (known !== undefined) {
      // Another worker was faster, and the conflict of this one has not been reported yet.
      if (known.leaf_hash !== leaf_hash) this.#isStale = true;
      if (isInLog) this.#forgetAhead(tree_id, seq);
      return;
    }
    const applied = book.needs(stored) ? book.apply(readEntry(stored)) : null;
    if (applied !== null && !isInLog) this.#noteAhead(tree_id, seq, { leaf_hash, undo: applied.undo });
  }

  #noteAhead(tree_id: string, seq: number, entry: EntryAhead): void {
    const ahead = this.#ahead.get(tree_id) ?? new Map<number, EntryAhead>();
    if (ahead.has(seq)) this.#isStale = true;
    this.#ahead.set(tree_id, ahead.set(seq, entry));
    this.#aheadCount += 1;
  }

  #forgetAhead(tree_id: string, seq: number): void {
    const ahead = this.#ahead.get(tree_id);
    if (ahead?.delete(seq) === true) this.#aheadCount -= 1;
    if (ahead?.size === 0) this.#ahead.delete(tree_id);
  }

  /** The entries of a tree from this seq on were not written. */
  #takeBack(tree_id: string, from: number): void {
    const later = [...(this.#ahead.get(tree_id) ?? [])].filter(([seq]) => seq >= from);
    for (const [seq, { undo }] of later.toReversed()) {
      undo();
      this.#forgetAhead(tree_id, seq);
    }
  }

  #draft(tree_id: string, key: string): Draft {
    const drafts = this.#drafts.get(tree_id) ?? new Map<string, Draft>();
    this.#drafts.set(tree_id, drafts);
    const known = drafts.get(key) ?? { version: this.#versionOf(key), isChecked: false, isChanged: false };
    drafts.set(key, known);
    return known;
  }

  #versionOf(key: string): string {
    return this.#versions.get(key) ?? '';
  }
}

const CHANGED = 'counter';

/** No id of a case has a colon. */
const PREFIX = 'counter:';
const counterId = (key: string): string => `${PREFIX}${sha256(key)}`;

/** Whether the version is that of a counter. */
export const isCounterId = (case_id: string): boolean => case_id.startsWith(PREFIX);
