import { LedgerError } from '../../../src/core/errors.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import type { SharedBatch, SharedLedgerStore } from '../../../src/engine/ports/ledger/shared-store.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import type { Scheduler } from '../../fixtures/slow-store.js';

/** A worker's fate as the simulation decides it. */
export interface WorkerFate {
  /** The process is gone: no call of it takes effect any more. */
  isDead: boolean;
  /** The process is stopped: its calls wait until this resolves. */
  resumed: Promise<void>;
}

/** Fractions of commits, from 0 to 1. */
export interface CommitFaults {
  /** The answer is lost; half of these commits are written. */
  readonly lost: number;
  /** The connection breaks, and the commit arrives later, perhaps after it was sent again. */
  readonly late: number;
}

/** The connection of one worker to a shared store: slow, out of order, and lossy. It dies with the worker. */
export class UnreliableSharedStore extends ForwardingStore implements SharedLedgerStore {
  declare readonly inner: SharedLedgerStore;
  readonly #scheduler: Scheduler;
  readonly #fate: WorkerFate;
  /** Set to zero to let the simulation come to an end. */
  faults: CommitFaults;
  #lostInARow = 0;

  constructor(inner: SharedLedgerStore, scheduler: Scheduler, fate: WorkerFate, faults: CommitFaults) {
    super(inner);
    this.#scheduler = scheduler;
    this.#fate = fate;
    this.faults = faults;
  }

  override reopen: LedgerStore['reopen'] = () => this.#call(() => this.inner.reopen());
  override head: LedgerStore['head'] = () => this.#call(() => this.inner.head());
  override pending: LedgerStore['pending'] = (limit) => this.#call(() => this.inner.pending(limit));
  override integrate: LedgerStore['integrate'] = (integration) => this.#call(() => this.inner.integrate(integration));
  override marks: LedgerStore['marks'] = (keys) => this.#call(() => this.inner.marks(keys));
  override artifactsOf: LedgerStore['artifactsOf'] = (place) => this.#call(() => this.inner.artifactsOf(place));
  override histories: LedgerStore['histories'] = (places) => this.#list(() => this.inner.histories(places));
  override tree: LedgerStore['tree'] = (...args) => this.#list(() => this.inner.tree(...args));

  join = () => this.#call(() => this.inner.join());
  treeLengths: SharedLedgerStore['treeLengths'] = (ids) => this.#call(() => this.inner.treeLengths(ids));
  caseQuotas: SharedLedgerStore['caseQuotas'] = (ids) => this.#call(() => this.inner.caseQuotas(ids));
  labelVersion: SharedLedgerStore['labelVersion'] = (id) => this.#call(() => this.inner.labelVersion(id));
  claimDueTrees: SharedLedgerStore['claimDueTrees'] = (...args) => this.#call(() => this.inner.claimDueTrees(...args));
  claimLeases: SharedLedgerStore['claimLeases'] = (...args) => this.#call(() => this.inner.claimLeases(...args));
  hasLeases: SharedLedgerStore['hasLeases'] = (leases) => this.#call(() => this.inner.hasLeases(leases));
  returnLeases: SharedLedgerStore['returnLeases'] = (leases) => this.#call(() => this.inner.returnLeases(leases));
  releaseLeases: SharedLedgerStore['releaseLeases'] = (leases) => this.#call(() => this.inner.releaseLeases(leases));
  lead = () => this.#call(() => this.inner.lead());
  isActive = () => this.#call(() => this.inner.isActive());

  commitTrees: SharedLedgerStore['commitTrees'] = async (batch) => {
    await this.#wait();
    const fault = this.#drawFault();
    if (fault === 'late') void this.#later(batch);
    const statuses = fault === 'late' || fault === 'not written' ? [] : await this.inner.commitTrees(batch);
    await this.#wait();
    if (fault !== null) throw connectionError();
    return statuses;
  };

  commitLocked: SharedLedgerStore['commitLocked'] = async (tree_ids, decide) => {
    await this.#wait();
    const fault = this.#drawFault();
    const isWritten = fault === null || fault === 'written';
    const committed = await this.inner.commitLocked(tree_ids, async () => {
      const batch = await decide();
      if (fault === 'late') void this.#later(batch);
      return isWritten ? batch : { ...batch, trees: [] };
    });
    await this.#wait();
    if (fault !== null) throw connectionError();
    return committed;
  };

  #drawFault(): 'written' | 'not written' | 'late' | null {
    const chance = this.#scheduler.below(1_000) / 1_000;
    const { lost, late } = this.faults;
    if (chance >= lost + late || this.#lostInARow === LOST_IN_A_ROW_MAX) {
      this.#lostInARow = 0;
      return null;
    }
    this.#lostInARow += 1;
    if (chance < late) return 'late';
    return this.#scheduler.below(2) === 0 ? 'written' : 'not written';
  }

  /** The bytes were sent already: they arrive even if the worker is gone. */
  async #later(batch: SharedBatch): Promise<void> {
    for (let delays = this.#scheduler.below(8); delays >= 0; delays -= 1) await this.#scheduler.delay();
    await this.inner.commitTrees(batch).catch(() => undefined);
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    await this.#wait();
    const answer = await work();
    await this.#wait();
    return answer;
  }

  async *#list<T>(list: () => AsyncIterable<T>): AsyncGenerator<T> {
    await this.#wait();
    yield* list();
  }

  async #wait(): Promise<void> {
    await this.#scheduler.delay();
    await this.#fate.resumed;
    if (this.#fate.isDead) throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message: 'this process is dead' });
  }
}

const connectionError = (): LedgerError =>
  new LedgerError({ code: 'LEDGER_COMMIT_UNKNOWN', message: 'the connection broke' });

/** An engine sends a batch more often than that. */
const LOST_IN_A_ROW_MAX = 3;
