// Counters that several workers change. Each worker reads them from the ledger; the store has only a version for each
// counter of one subject, in the row of a case whose id no case can have.
//
//   V1. A decision is made with a copy. Its commit is a conflict if a counter that it has read has another version than
//       the copy, also if the counter had no version yet. Every change gives the counter another version.
//   V2. What a batch has of counters that depend on each other is written together or not at all (`join-checks.ts`).
//   V3. A version is read before the entries, so the copy has at least what the version stands for. It has no more than
//       that and the decisions of this worker: if another worker has written other entries of a tree, the decisions
//       that they replace are taken back first (`shared-copy.ts`). A version is not read while this worker has
//       uncommitted changes of the counter: it could be the version from before or after them.
//   V4. After a conflict the versions of all its counters are unknown until they are read again. What is decided with
//       an unknown version is refused.
//   V5. A decision whose version is unknown and cannot be read yet (V3) waits for another tick. If it were made, it
//       would be refused with everything of its batch that it depends on (V2), and so again in each later tick.
//   V6. Counters over a run or a tree need no version: only entries of the tree change them, and its length is
//       compared.

import type { Decision } from '../../../kernel/decision.js';
import type { Tree } from '../../../kernel/tree.js';
import type { CounterFact } from '../../../core/contract/run/counter-fact.js';
import { sharedCounterKeys } from './counter-queries.js';
import {
  FACT_ID_PREFIX,
  isFactId,
  type SharedFactStore,
  type SharedLedgerFacts,
  type LedgerFactsSource,
} from '../../../engine/ledger-facts.js';
import type {
  AppendStatus,
  QuotaChange,
  SharedAppend,
  SharedBatch,
} from '../../../engine/ports/ledger/shared-store.js';
import type { Submission } from '../../../engine/tree-engine.js';
import { accountKey, treeOf } from './counter-book.js';
import { joinChecks } from './join-checks.js';
import { withCounters, LedgerCounters } from './ledger-counters.js';
import { SharedCopy } from './shared-copy.js';
import { loadBook } from './read-counters.js';

const counterId = (fact: Pick<CounterFact, 'name' | 'key'>): string => `${FACT_ID_PREFIX}${accountKey(fact)}`;

/** Refuses the append of a tree of which the copy lacks entries. */
const INCOMPLETE = `${FACT_ID_PREFIX}incomplete`;
/** A version that no counter has: the copy may differ from the store. */
const UNKNOWN_VERSION = '?';
const NONE = { bytes: 0, files: 0 };
/** A change without reservations: nothing has this run id. */
const CHANGED = 'counter';
/** Maximum number of known versions: all are read again beyond it. */
const VERSIONS_MAX = 65_536;

/** What the decisions of a tick do with one counter. */
interface Draft {
  /** Of the copy, when the tree first met the counter in this tick. */
  readonly version: string;
  isRead: boolean;
  isChanged: boolean;
}

export class SharedCounters implements SharedLedgerFacts {
  readonly #store: SharedFactStore;
  #copy: SharedCopy | null = null;
  /** The version that the copy has of each counter. Absent: unknown. */
  readonly #versions = new Map<string, string>();
  #isStale = false;
  /** The counters that the trees of this tick have met. */
  readonly #drafts = new Map<string, Map<string, Draft>>();
  /** The counters of batches in flight, by the versions that these give. */
  readonly #inFlight = new Map<string, ReadonlySet<string>>();

  constructor(store: SharedFactStore) {
    this.#store = store;
  }

  startTick(): void {
    if (this.#isStale) this.clear();
    this.#drafts.clear();
  }

  /** V5. */
  mustPostpone(tree: Tree, input: Submission['input']): boolean {
    return this.#unknown(tree, input).some((id) => this.#isUncommitted(id));
  }

  mustPrepare(tree: Tree, input: Submission['input']): boolean {
    const { tree_id, policy, head } = tree;
    if (policy?.counters === undefined) return false;
    return this.#copy?.has(tree_id, head.seq) !== true || this.#unread(tree, input).length > 0;
  }

  async prepare(tree: Tree, input: Submission['input']): Promise<void> {
    const { tree_id, head } = tree;
    const ids = this.#unread(tree, input);
    if (this.#copy === null || ids.length > 0) await this.#read(ids);
    await this.#copy?.readTree(tree_id, head.seq);
  }

  addFacts(tree: Tree, submission: Submission, time: string): Submission {
    if (this.#copy === null) return submission;
    const complete = withCounters(this.#copy.book, tree, submission, time);
    if (complete.input.kind !== 'facts') return complete;
    for (const fact of complete.input.counters ?? []) this.#note(tree.tree_id, fact, 'isRead');
    return complete;
  }

  applyDecision({ tree_id, policy, head }: Tree, { entries, ended }: Decision): void {
    // Without a copy, no tree has decided anything but to open.
    if (policy?.counters === undefined || this.#copy === null) return;
    for (const sealed of entries)
      for (const fact of this.#copy.add(tree_id, sealed)) this.#note(tree_id, fact, 'isChanged');
    // To open a tree changes no counter, and its policy was not known before.
    if (entries[0]?.entry.seq === 0) return;
    if (!this.#copy.has(tree_id, head.seq)) this.#draft(tree_id, INCOMPLETE).isRead = true;
    if (ended.some(({ run_id }) => run_id === tree_id)) this.#copy.endTree(tree_id);
  }

  /** The tree has failed: its decisions are in the copy and not in the ledger. */
  undo(): void {
    this.#isStale = true;
    this.#versions.clear();
  }

  clear(): void {
    this.#copy = null;
    this.#isStale = false;
    this.#versions.clear();
    this.#inFlight.clear();
  }

  /** V1. */
  changesOf(tree_id: string): readonly QuotaChange[] {
    return [...(this.#drafts.get(tree_id) ?? [])].map(([id, { version, isRead, isChanged }]) => ({
      case_id: id,
      version: version === this.#versions.get(id) ? version : UNKNOWN_VERSION,
      isChecked: isRead,
      ...{ total: NONE, room: null, reserved: [] },
      released: isChanged ? [CHANGED] : [],
    }));
  }

  /** V2. */
  joinChecks(all: readonly (readonly QuotaChange[])[]): readonly (readonly QuotaChange[])[] {
    return joinChecks(all, isFactId);
  }

  /** The next tick decides with the versions that the batch will give. */
  onSent({ trees, quota_version }: SharedBatch): void {
    const refused = trees.filter(isSurelyRefused);
    const sent = trees.filter((append) => !refused.includes(append));
    const flying = new Set(counterIdsOf(sent));
    if (flying.size > 0) this.#inFlight.set(quota_version, flying);
    const changes = sent.flatMap(({ quotas }) => quotas).filter(({ released }) => released.includes(CHANGED));
    for (const { case_id, version } of changes) {
      // Another append may have set it already.
      const isKnown =
        version !== UNKNOWN_VERSION && [version, quota_version].includes(this.#versions.get(case_id) ?? '?');
      if (isKnown) this.#versions.set(case_id, quota_version);
      else this.#versions.delete(case_id);
    }
    this.#takeBack(refused);
  }

  /** V4. */
  onCommitted({ trees, quota_version }: SharedBatch, statuses: readonly AppendStatus[]): void {
    this.#inFlight.delete(quota_version);
    for (const [index, append] of trees.entries()) {
      // Taken back already, and its counters may have been read since.
      if (isSurelyRefused(append)) continue;
      if (statuses[index] === 'conflict') this.#takeBack([append]);
      else this.#copy?.settle(append.tree_id, append.from + append.entries.length);
    }
  }

  /** The counters that a decision about this input may read, and whose version can be read before it. */
  #unread(tree: Tree, input: Submission['input']): readonly string[] {
    return this.#unknown(tree, input).filter((id) => !this.#isUncommitted(id));
  }

  /** The counters that a decision about this input may read, and whose version is unknown. */
  #unknown(tree: Tree, input: Submission['input']): readonly string[] {
    if (tree.policy?.counters === undefined || this.#isStale) return [];
    if (input.kind !== 'proposal' && input.kind !== 'facts') return [];
    const context = tree.run(input.run_id)?.context;
    const ids = context === undefined ? [] : sharedCounterKeys(context, tree.policy).map(counterId);
    return ids.filter((id) => !this.#versions.has(id));
  }

  /** V3. */
  #isUncommitted(id: string): boolean {
    for (const drafts of this.#drafts.values()) if (drafts.has(id)) return true;
    for (const flying of this.#inFlight.values()) if (flying.has(id)) return true;
    return false;
  }

  /** V3. @throws LedgerError */
  async #read(ids: readonly string[]): Promise<void> {
    const quotas = ids.length === 0 ? [] : await this.#store.caseQuotas(ids);
    if (this.#copy === null) this.#copy = await SharedCopy.read(this.#store);
    else await this.#copy.catchUp();
    if (this.#versions.size > VERSIONS_MAX) this.#versions.clear();
    for (const [index, { version }] of quotas.entries()) this.#versions.set(ids[index] ?? '', version);
  }

  #note(tree_id: string, fact: CounterFact, what: 'isRead' | 'isChanged'): void {
    // V6.
    if (treeOf(fact.key) === null) this.#draft(tree_id, counterId(fact))[what] = true;
  }

  #draft(tree_id: string, id: string): Draft {
    const drafts = this.#drafts.get(tree_id) ?? new Map<string, Draft>();
    this.#drafts.set(tree_id, drafts);
    const known = drafts.get(id) ?? {
      version: this.#versions.get(id) ?? UNKNOWN_VERSION,
      isRead: false,
      isChanged: false,
    };
    drafts.set(id, known);
    return known;
  }

  #takeBack(appends: readonly SharedAppend[]): void {
    for (const { tree_id, from } of appends) this.#copy?.takeBack(tree_id, from);
    for (const id of counterIdsOf(appends)) this.#versions.delete(id);
  }
}

const counterIdsOf = (appends: readonly SharedAppend[]): readonly string[] =>
  appends.flatMap(({ quotas }) => quotas.map(({ case_id }) => case_id).filter(isFactId));

/** Whether the append depends on a counter whose version was unknown. */
const isSurelyRefused = ({ quotas }: SharedAppend): boolean =>
  quotas.some(({ case_id, version, isChecked }) => isChecked && version === UNKNOWN_VERSION && isFactId(case_id));

/** The facts of the ledger that conditions read: the values of counters. */
export const COUNTER_FACTS: LedgerFactsSource = {
  ofOnlyWorker: (store) => new LedgerCounters(store),
  ofSharedWorker: (store) => new SharedCounters(store),
  readTotals: async (store) => (await loadBook(store)).totals(),
};
