import type {
  AppendStatus,
  CaseQuota,
  ClaimedLease,
  Lease,
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
  #workerId: number | null = null;

  constructor(state: MemoryState) {
    super(state);
    this.#shared = state;
  }

  protected override get isShared(): boolean {
    return this.#workerId !== null;
  }

  join(): Promise<number> {
    return new Promise((resolve) => {
      this.#workerId = this.#shared.join(this);
      this.isWriter = true;
      this.isReopened = false;
      resolve(this.#workerId);
    });
  }

  async commitTrees(batch: SharedBatch): Promise<readonly AppendStatus[]> {
    checkBatch({ epoch: batch.worker_id, trees: batch.trees });
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

  claimLeases(_graceMs: number, limit: number, except: readonly string[]): Promise<readonly ClaimedLease[]> {
    const { workers } = this.#shared;
    const isActive = this.#workerId !== null && workers.isActive(this.#workerId);
    return Promise.resolve(isActive ? workers.claim(this.#workerId ?? 0, limit, except) : []);
  }

  hasLeases(leases: readonly Lease[]): Promise<boolean> {
    return Promise.resolve(this.#shared.workers.hasAll(this.#workerId, leases));
  }

  returnLeases(leases: readonly Lease[]): Promise<void> {
    this.#shared.workers.giveUp(leases);
    return Promise.resolve();
  }

  releaseLeases(leases: readonly Lease[]): Promise<void> {
    this.#shared.workers.release(leases);
    return Promise.resolve();
  }

  lead(): Promise<boolean> {
    return Promise.resolve(this.#shared.workers.lead(this));
  }

  isActive(): Promise<boolean> {
    return Promise.resolve(this.#workerId !== null && this.#shared.workers.isActive(this.#workerId));
  }

  override close(): Promise<void> {
    this.#shared.workers.leave(this);
    return super.close();
  }

  #commit(batch: SharedBatch): readonly AppendStatus[] {
    const { worker_id, trees } = batch;
    if (this.#workerId === null) throw notWriterError();
    if (!this.#shared.workers.isActive(worker_id)) throw writerReplacedError(`worker ${worker_id} is over`);
    const statuses = this.#shared.commitEach(batch);
    for (const [index, append] of trees.entries()) {
      if (statuses[index] === 'committed') this.#shared.workers.apply(worker_id, append);
    }
    return statuses;
  }
}

/** The reservations of a case are locked after its trees. */
const locksOf = (case_ids: readonly string[]): readonly string[] => case_ids.map((case_id) => `~case ${case_id}`);
