import type {
  AppendStatus,
  CaseQuota,
  ClaimedDuty,
  Duty,
  SharedBatch,
  SharedLedgerStore,
} from '../../engine/ports/ledger/shared-store.js';
import { checkBatch } from '../ledger/check-batch.js';
import { notWriterError, writerReplacedError } from '../ledger/store-errors.js';
import { MemoryLedgerStore } from './memory-ledger-store.js';
import { MemoryState } from './memory-state.js';

/** Creates a store in memory that several workers may write at once, each through its own store on one state. */
export const memorySharedStore = ({
  state = new MemoryState({ integrates: false }),
}: { readonly state?: MemoryState } = {}): SharedLedgerStore => new MemorySharedStore(state);

class MemorySharedStore extends MemoryLedgerStore implements SharedLedgerStore {
  readonly #shared: MemoryState;
  #performer: number | null = null;

  constructor(state: MemoryState) {
    super(state);
    this.#shared = state;
  }

  protected override get isShared(): boolean {
    return this.#performer !== null;
  }

  join(): Promise<number> {
    return new Promise((resolve) => {
      this.#performer = this.#shared.join(this);
      this.isWriter = true;
      this.isReopened = false;
      resolve(this.#performer);
    });
  }

  async commitTrees(batch: SharedBatch): Promise<readonly AppendStatus[]> {
    checkBatch({ epoch: batch.performer, trees: batch.trees });
    const cases = batch.trees.flatMap(({ quotas, label }) => [...quotas, ...(label === null ? [] : [label])]);
    const locks = [...batch.trees.map(({ tree_id }) => tree_id), ...locksOf(cases.map(({ case_id }) => case_id))];
    return this.#shared.workers.locked([...new Set(locks)], () => Promise.resolve(this.#commit(batch)));
  }

  async commitLocked<Made extends SharedBatch>(tree_ids: readonly string[], decide: () => Promise<Made>) {
    const cases = tree_ids.flatMap((tree_id) => this.#shared.caseOf(tree_id) ?? []);
    return this.#shared.workers.locked([...new Set([...tree_ids, ...locksOf(cases)])], async () => {
      const batch = await decide();
      return { batch, statuses: this.#commit(batch) };
    });
  }

  treeLengths(tree_ids: readonly string[]): Promise<readonly number[]> {
    return Promise.resolve(tree_ids.map((tree_id) => this.#shared.treeLength(tree_id)));
  }

  caseQuotas(case_ids: readonly string[]): Promise<readonly CaseQuota[]> {
    return Promise.resolve(case_ids.map((case_id) => this.#shared.quotas.get(case_id)));
  }

  labelVersion(case_id: string): Promise<number> {
    return Promise.resolve(this.#shared.quotas.labelVersion(case_id));
  }

  claimDueTrees(...claim: Parameters<SharedLedgerStore['claimDueTrees']>): Promise<readonly string[]> {
    return Promise.resolve(this.#shared.claimDueTrees(...claim));
  }

  claimDuties(_graceMs: number, limit: number, except: readonly string[]): Promise<readonly ClaimedDuty[]> {
    const { workers } = this.#shared;
    const isStanding = this.#performer !== null && workers.isStanding(this.#performer);
    return Promise.resolve(isStanding ? workers.claim(this.#performer ?? 0, limit, except) : []);
  }

  hasDuties(duties: readonly Duty[]): Promise<boolean> {
    return Promise.resolve(this.#shared.workers.hasAll(this.#performer, duties));
  }

  returnDuties(duties: readonly Duty[]): Promise<void> {
    this.#shared.workers.giveUp(duties);
    return Promise.resolve();
  }

  releaseDuties(duties: readonly Duty[]): Promise<void> {
    this.#shared.workers.release(duties);
    return Promise.resolve();
  }

  lead(): Promise<boolean> {
    return Promise.resolve(this.#shared.workers.lead(this));
  }

  isPerforming(): Promise<boolean> {
    return Promise.resolve(this.#performer !== null && this.#shared.workers.isStanding(this.#performer));
  }

  override close(): Promise<void> {
    this.#shared.workers.leave(this);
    return super.close();
  }

  #commit(batch: SharedBatch): readonly AppendStatus[] {
    const { performer, trees } = batch;
    if (this.#performer === null) throw notWriterError();
    if (!this.#shared.workers.isStanding(performer)) throw writerReplacedError(`performer ${performer} is over`);
    const statuses = this.#shared.commitEach(batch);
    for (const [index, append] of trees.entries()) {
      if (statuses[index] === 'committed') this.#shared.workers.apply(performer, append);
    }
    return statuses;
  }
}

/** The reservations of a case are locked after its trees. */
const locksOf = (case_ids: readonly string[]): readonly string[] => case_ids.map((case_id) => `~case ${case_id}`);
