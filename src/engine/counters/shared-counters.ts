// Counters that several workers change. Each worker reads them from the ledger; the store has only a version, in the
// row of a case whose id no case can have.
//
//   V1. Everything that a tree with counters decides is checked: its commit is a conflict if another worker has
//       committed something of such a tree since. And it gives the counters another version.
//   V2. So all such decisions have one order, and what a batch has of them is written together or not at all
//       (`join-checks.ts`). Workers whose policy has counters therefore commit one after another.
//   V3. After a conflict, everything in flight is refused too. The version is read when nothing is in flight, and then
//       everything that is committed. Until then the version is not known, and what is decided is refused.
//   V4. The copy has decisions of this worker before they are committed. They are taken back after a conflict.

import type { Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import type {
  AppendStatus,
  QuotaChange,
  SharedAppend,
  SharedBatch,
  SharedLedgerStore,
} from '../../ports/ledger/shared-store.js';
import type { Submission } from '../tree-engine.js';
import type { EngineCounters } from './engine-counters.js';
import { withCounters } from './ledger-counters.js';
import { SharedCopy } from './shared-copy.js';

type Store = Pick<SharedLedgerStore, 'log' | 'tree' | 'pending' | 'openTrees' | 'archives' | 'caseQuotas'>;

/** No id of a case has a colon. */
const COUNTERS_ID = 'counters:all';
/** Whether the version is that of the counters. */
export const isCounterId = (case_id: string): boolean => case_id === COUNTERS_ID;

const isCounted = ({ quotas }: SharedAppend): boolean => quotas.some(({ case_id }) => isCounterId(case_id));

/** A version that the counters never have: the copy may differ from the store. */
const UNKNOWN_VERSION = '?';
const NONE = { bytes: 0, files: 0 };
/** A change without reservations: nothing has this run id. */
const CHANGED = 'counter';

export class SharedCounters implements EngineCounters {
  readonly #store: Store;
  #copy: SharedCopy | null = null;
  #version = UNKNOWN_VERSION;
  #isStale = false;
  /** The trees that have decided something in this tick, with the version that the first of its decisions had. */
  readonly #drafts = new Map<string, string>();
  /** The versions that batches in flight give. */
  readonly #inFlight = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  startTick(): void {
    if (this.#isStale) this.clear();
    this.#drafts.clear();
  }

  mustPrepare({ tree_id, policy, head }: Tree): boolean {
    if (policy?.counters === undefined) return false;
    return this.#copy?.has(tree_id, head.seq) !== true || this.#mustRead;
  }

  async prepare({ tree_id, head }: Tree): Promise<void> {
    if (this.#mustRead && this.#drafts.size === 0) await this.#read();
    await this.#copy?.readTree(tree_id, head.seq);
  }

  addFacts(tree: Tree, submission: Submission, time: string): Submission {
    return this.#copy === null ? submission : withCounters(this.#copy.book, tree, submission, time);
  }

  applyDecision({ tree_id, policy, head }: Tree, { entries, ended }: Decision): void {
    // Without a copy, no tree has decided anything but to open.
    if (policy?.counters === undefined || this.#copy === null) return;
    for (const { entry } of entries) this.#copy.add(tree_id, entry);
    // To open a tree changes no counter, and its policy was not known before.
    if (entries[0]?.entry.seq === 0) return;
    if (!this.#drafts.has(tree_id)) this.#drafts.set(tree_id, this.#version);
    if (!this.#copy.has(tree_id, head.seq)) this.#drafts.set(tree_id, UNKNOWN_VERSION);
    if (ended.some(({ run_id }) => run_id === tree_id)) this.#copy.endTree(tree_id);
  }

  /** The tree has failed: its decisions are in the copy and not in the ledger. */
  undo(): void {
    this.#isStale = true;
    this.#version = UNKNOWN_VERSION;
  }

  clear(): void {
    this.#copy = null;
    this.#isStale = false;
    this.#version = UNKNOWN_VERSION;
    this.#inFlight.clear();
  }

  /** V1. */
  changesOf(tree_id: string): readonly QuotaChange[] {
    const version = this.#drafts.get(tree_id);
    if (version === undefined) return [];
    return [
      {
        case_id: COUNTERS_ID,
        version: version === this.#version ? version : UNKNOWN_VERSION,
        isChecked: true,
        ...{ total: NONE, room: null, reserved: [] },
        released: [CHANGED],
      },
    ];
  }

  /** The next tick decides with the version that the batch will give. */
  onSent({ trees, quota_version }: SharedBatch): void {
    const counted = trees.filter(isCounted);
    if (counted.length === 0) return;
    const versions = counted.flatMap(({ quotas }) => quotas).filter(({ case_id }) => isCounterId(case_id));
    if (versions.some(({ version }) => version === UNKNOWN_VERSION)) {
      this.#takeBack(counted);
      return;
    }
    this.#inFlight.add(quota_version);
    this.#version = quota_version;
  }

  /** V3, V4. */
  onCommitted({ trees, quota_version }: SharedBatch, statuses: readonly AppendStatus[]): void {
    if (!this.#inFlight.delete(quota_version)) return;
    const refused = trees.filter((append, index) => statuses[index] === 'conflict' && isCounted(append));
    for (const { tree_id, from, entries } of trees.filter((append) => isCounted(append) && !refused.includes(append)))
      this.#copy?.settle(tree_id, from + entries.length);
    if (refused.length === 0) return;
    this.#takeBack(refused);
    this.#version = UNKNOWN_VERSION;
  }

  get #mustRead(): boolean {
    return this.#version === UNKNOWN_VERSION && this.#inFlight.size === 0;
  }

  /** V3. @throws LedgerError */
  async #read(): Promise<void> {
    const [{ version } = { version: '' }] = await this.#store.caseQuotas([COUNTERS_ID]);
    if (this.#copy === null) this.#copy = await SharedCopy.read(this.#store);
    else await this.#copy.catchUp();
    this.#version = version;
  }

  #takeBack(appends: SharedBatch['trees']): void {
    for (const { tree_id, from } of appends) this.#copy?.takeBack(tree_id, from);
  }
}
