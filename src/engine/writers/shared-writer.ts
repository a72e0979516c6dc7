// One of several writers of a ledger. No worker owns a tree: any of them decides any input on its copy of the tree, and
// the store refuses an append if another worker was faster.
//
//   W1. A tree that this worker has lost several times in a row is decided under its lock, so that no worker starves.
//   W2. A batch whose commit has an unknown outcome is sent again as it is. Deciding again could lose the replies of
//       results.
//       If the store then refuses a decision that depends on reservations or facts of the ledger, the first send may
//       still arrive and fit, because what is compared changes. So this worker is over and joins again, and the next
//       settlement of its leases finds what has arrived.
//   W3. An effect is performed by the worker that committed its decision, and only while that worker stands: right
//       after the commit was sent, or after asking the store. Another worker settles it only when this one is over, and
//       a grace period later (`GRACE_MS`).
//   W4. Everything else that a worker does for others is found by polling: new entries of trees in memory, timers that
//       are due, and leases of workers that are gone. A tree that a later version started is left to its workers.
//   W5. While a commit is in flight, the next tick is decided without its trees. Commits are sent in the order of their
//       ticks, but one that is sent again may follow a later one: they have no tree in common, and what they share, the
//       reservations of cases and the facts of the ledger, is compared by version (Q4).
//   W6. Two workers may decide the same request in the same millisecond, and so to the byte. The store then finds the
//       second batch present. Only a worker that sent it twice, and has the leases that the first one took, committed
//       it.

import { LedgerError } from '../../core/errors.js';
import type {
  AppendStatus,
  GrownTree,
  SharedAppend,
  SharedBatch,
  SharedLedgerStore,
  CaseLabelChange,
} from '../ports/ledger/shared-store.js';
import { BackgroundJob } from '../background-job.js';
import { LazyLedgerFacts, type SharedLedgerFacts } from '../ledger-facts.js';
import { SharedReservations } from '../reservations/shared-reservations.js';
import { isOutcomeUnknown, sendUntilKnown } from '../tick/batch-builder.js';
import type { Tick } from '../tick/tick.js';
import type { CaseLabelVersion, EngineParts, Recovery } from '../tree-engine.js';
import { LeaseSettler, leaseChanges } from './lease-settler.js';
import type { CommittedTick, LedgerWriter, SharedEngineAccess } from './ledger-writer.js';
import { IntegrationWaiters } from './integration-waiters.js';
import { LogLeader } from './log-leader.js';
import type { Label } from '../../core/contract/policy/labels.js';
import type { Decision } from '../../kernel/decision.js';
import { labelAfter } from '../../kernel/label-after.js';
import type { Tree } from '../../kernel/tree.js';

/** For so long after sending a commit, a worker performs its effects without asking, in ms. */
export const GUARD_MS = 2_000;
/** For so long after a worker is over, no worker settles its effects, unless it is known to be dead, in ms. */
export const GRACE_MS = 2 * GUARD_MS;
/** Interval between two polls, in ms. */
export const POLL_MS = 1_000;

const NO_RECOVERY: Recovery = { trees: 0, settled: 0, interrupted: 0, damaged: 0 };
const IGNORE = (): void => undefined;

type Parts = Pick<EngineParts, 'clock' | 'log' | 'effects' | 'meter'>;

export class SharedWriter implements LedgerWriter {
  readonly sharesTrees = true;
  readonly reservations: SharedReservations;
  readonly ledgerFacts: LazyLedgerFacts<SharedLedgerFacts>;
  readonly createLeader: NonNullable<LedgerWriter['createLeader']>;
  readonly createWaiters: NonNullable<LedgerWriter['createWaiters']>;
  readonly treeLengths: (tree_ids: readonly string[]) => Promise<readonly number[]>;
  readonly #store: SharedLedgerStore;
  readonly #parts: Parts;
  readonly #settler: LeaseSettler;
  readonly #races = new LostRaces();
  readonly #labels = new CaseLabels();
  readonly #locks = new WeakMap<Tick, TreeLock>();
  readonly labelVersion: (case_id: string) => Promise<number>;
  #workerId = 0;
  /** The number of batches so far. */
  #batches = 0;
  #engine: SharedEngineAccess | null = null;
  readonly #polls: BackgroundJob;
  #unsubscribe = IGNORE;

  constructor(store: SharedLedgerStore, parts: Parts) {
    this.#store = store;
    this.#parts = parts;
    this.#settler = new LeaseSettler(store, parts, GRACE_MS);
    this.reservations = new SharedReservations(store, parts.effects);
    this.ledgerFacts = new LazyLedgerFacts((source) => source.ofSharedWorker(store));
    this.createLeader = (work) => new LogLeader({ store, clock: parts.clock, log: parts.log, ...work });
    this.createWaiters = (confirm) => new IntegrationWaiters({ store, clock: parts.clock, confirm });
    this.treeLengths = (tree_ids) => store.treeLengths(tree_ids);
    this.labelVersion = (case_id) => store.labelVersion(case_id);
    this.#polls = new BackgroundJob({
      clock: parts.clock,
      run: () => this.#poll(),
      onFailed: (error) => this.#onPollFailed(error),
    });
  }

  async acquire(): Promise<void> {
    this.ledgerFacts.created?.clear();
    this.#workerId = await this.#store.join();
  }

  /** W1. */
  lockContested(tick: Tick): Promise<void> | null {
    return tick.tree_ids.some((tree_id) => this.#races.isContested(tree_id)) ? this.#lock(tick) : null;
  }

  async commit(tick: Tick): Promise<CommittedTick | null> {
    const decided = this.#build(tick);
    this.#parts.meter?.prepare({ ...decided, epoch: this.#workerId });
    const sentAt = this.#monotonic();
    const lock = this.#locks.get(tick);
    const { batch, statuses } = await (lock === undefined
      ? this.#commitFree(decided)
      : this.#commitLocked(lock, decided));
    if (batch.trees.length === 0) return null;
    this.#updateLabels(batch, statuses);
    await this.reservations.onCommitted(batch, statuses);
    this.ledgerFacts.created?.onCommitted(batch, statuses);
    return { ...this.#toCommitted(batch, statuses), sentAt };
  }

  async unlock(tick: Tick, error: unknown): Promise<void> {
    const lock = this.#locks.get(tick);
    lock?.abandoned(error);
    await lock?.committed.catch(IGNORE);
  }

  async recover(engine: SharedEngineAccess): Promise<Recovery> {
    this.#engine = engine;
    // The connection may be lost meanwhile, for so long that this worker is over: then it joins again.
    const recovery = await this.#send(() => this.#workForOthers(engine), false);
    // The engine may have failed meanwhile, and `stop` was called.
    if (this.#engine !== engine) return recovery;
    this.#polls.stop();
    this.#polls.restart(POLL_MS);
    this.#unsubscribe();
    this.#unsubscribe = this.#store.subscribe?.((trees) => void this.#onGrown(trees)) ?? IGNORE;
    return recovery;
  }

  /** W3. */
  permitEffect(sentAt: number): Promise<void> | null {
    return this.#monotonic() - sentAt < GUARD_MS ? null : this.#requireStanding();
  }

  async #requireStanding(): Promise<void> {
    if (!(await this.#store.isActive())) throw overError();
  }

  stop(): void {
    this.#polls.stop();
    this.#unsubscribe();
    this.#engine = null;
  }

  waitUntilIdle(): Promise<void> {
    return this.#polls.settled();
  }

  /** W5. @param sends how often the batch was sent before */
  async #commitFree(batch: SharedBatch, sends = 0): Promise<Decided> {
    if (batch.trees.length === 0) return { batch, statuses: [] };
    let count = sends;
    const statuses = await this.#send(() => {
      count += 1;
      return this.#store.commitTrees(batch);
    });
    if (count > 1 && mayStillFit(batch, statuses)) throw overError();
    return { batch, statuses: await this.#checkPresent(batch, statuses, count > 1) };
  }

  /** W6. */
  async #checkPresent(
    { trees }: SharedBatch,
    statuses: readonly AppendStatus[],
    isRepeated: boolean,
  ): Promise<readonly AppendStatus[]> {
    const checked = [...statuses];
    for (const [index, { taken }] of trees.entries()) {
      if (statuses[index] !== 'present') continue;
      if (!isRepeated || !(await this.#send(() => this.#store.hasLeases(taken)))) checked[index] = 'conflict';
    }
    return checked;
  }

  /** Locks the trees of a tick until `commit` or `unlock`, and reads what other workers have changed. */
  #lock(tick: Tick): Promise<void> {
    const { tree_ids } = tick;
    return new Promise((resolve, reject) => {
      const waitUntilDecided = async (): Promise<SharedBatch> => {
        await this.#engine?.refreshLocked(tree_ids);
        await this.reservations.refresh(tree_ids);
        return new Promise((decided, abandoned) => {
          this.#locks.set(tick, { committed, decided, abandoned });
          resolve();
        });
      };
      const committed = this.#send(() => this.#store.commitLocked(tree_ids, waitUntilDecided), false);
      committed.catch(reject);
    });
  }

  /** W1. If the outcome is unknown, the batch is sent again without the lock: it still fits, or was overtaken. */
  async #commitLocked({ committed, decided }: TreeLock, batch: SharedBatch): Promise<Decided> {
    decided(batch);
    try {
      return await committed;
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      return this.#commitFree(batch, 1);
    }
  }

  /** A worker that is over joins again after a restart of the engine. */
  async #send<T>(send: () => Promise<T>, again = true): Promise<T> {
    try {
      return await (again ? sendUntilKnown(send) : send());
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== 'LEDGER_CONFLICT') throw error;
      throw overError();
    }
  }

  #build(tick: Tick): SharedBatch {
    const decisions = new Map<string, Tick['outcomes'][number]['decisions'][number][]>();
    const labels = new Map<string, CaseLabelVersion>();
    for (const outcome of tick.outcomes) {
      if (outcome.decisions.length === 0) continue;
      const { caseLabel } = outcome.item.submission;
      if (caseLabel !== undefined) labels.set(outcome.tree_id, caseLabel);
      decisions.set(outcome.tree_id, [...(decisions.get(outcome.tree_id) ?? []), ...outcome.decisions]);
    }
    const { trees } = tick.batch.build(this.#workerId);
    const facts = this.ledgerFacts.created;
    const changes = trees.map(({ tree_id }) => [
      ...this.reservations.changesOf(tree_id),
      ...(facts?.changesOf(tree_id) ?? []),
    ]);
    const quotas = facts?.joinChecks(changes) ?? changes;
    this.#batches += 1;
    const batch = {
      worker_id: this.#workerId,
      quota_version: `${this.#workerId}.${this.#batches}`,
      trees: trees.map((append, index): SharedAppend => {
        const { tree_id } = append;
        const [tree, decided] = [tick.tree(tree_id), decisions.get(tree_id) ?? []];
        return {
          ...append,
          ...leaseChanges(tree, decided),
          quotas: quotas[index] ?? [],
          label: this.#labels.changeOf(tree, decided, labels.get(tree_id) ?? null),
        };
      }),
    };
    this.reservations.onSent(batch);
    facts?.onSent(batch);
    return batch;
  }

  #updateLabels({ trees }: SharedBatch, statuses: readonly AppendStatus[]): void {
    for (const [index, { label }] of trees.entries())
      if (label !== null && statuses[index] !== 'conflict') this.#labels.onCommitted(label);
  }

  #toCommitted({ worker_id, trees }: SharedBatch, statuses: readonly AppendStatus[]): Omit<CommittedTick, 'sentAt'> {
    const overtaken = new Set<string>();
    const written = trees.filter(({ tree_id }, index) => {
      if (statuses[index] !== 'conflict') return true;
      overtaken.add(tree_id);
      return false;
    });
    for (const { tree_id } of trees) this.#races.note(tree_id, overtaken.has(tree_id));
    const batch = { epoch: worker_id, trees: written };
    this.#parts.meter?.onCommitted(batch);
    return { batch, result: { head: null, first_log_indexes: null }, overtaken };
  }

  async #poll(): Promise<number | null> {
    const engine = this.#engine;
    if (engine === null) return null;
    await engine.refreshAll();
    await this.#workForOthers(engine);
    return POLL_MS;
  }

  /** W4. A failed poll is repeated, unless it shows that this worker is over: then the engine stops. */
  #onPollFailed(error: unknown): number {
    this.#parts.log.warn('a poll of the shared ledger failed', { error });
    // A worker that is over cannot commit: it joins again before a caller learns that from a lost step.
    if (error instanceof LedgerError && error.code === 'LEDGER_CONFLICT') this.#engine?.fail(overError());
    return POLL_MS;
  }

  /** W4. Not without a sandbox: the effects that this starts or settles need it. */
  async #workForOthers(engine: SharedEngineAccess): Promise<Recovery> {
    if (this.#parts.effects.isElsewhere) return NO_RECOVERY;
    const settled = await this.#settler.settleAll(engine);
    await this.#claimDueTrees(engine);
    return settled;
  }

  /** W4. What an announcement does not bring, the next poll does. */
  async #onGrown(trees: readonly GrownTree[]): Promise<void> {
    try {
      await this.#engine?.refreshGrown(trees);
    } catch (error) {
      this.#parts.log.warn('entries of other workers could not be read', { error });
    }
  }

  /** The timers of these trees run in this worker now. If it dies, another one takes the trees over. */
  async #claimDueTrees(engine: SharedEngineAccess): Promise<void> {
    const now = this.#parts.clock.now();
    const [from, until] = [now, now + DUE_MS].map((at) => new Date(at).toISOString());
    if (from === undefined || until === undefined) return;
    engine.fireDue(await this.#store.claimDueTrees(from, until, DUE_TREES_MAX, engine.laterTrees()));
  }

  #monotonic(): number {
    const { clock } = this.#parts;
    return clock.monotonic?.() ?? clock.now();
  }
}

/** W2. Whether a refused append may be accepted later. A tree that has grown never accepts it. */
const mayStillFit = ({ trees }: SharedBatch, statuses: readonly AppendStatus[]): boolean =>
  trees.some(({ quotas }, index) => statuses[index] === 'conflict' && quotas.some(({ isChecked }) => isChecked));

const overError = (): LedgerError =>
  new LedgerError({
    code: 'LEDGER_UNAVAILABLE',
    message: 'this worker was declared over, because its connection was lost: a restart lets it join again',
  });

/** Maximum trees whose timers one poll takes over. */
const DUE_TREES_MAX = 64;
/** How long a worker may take to fire the timers of a tree that it took over, in ms. */
const DUE_MS = 10_000;

interface Decided {
  readonly batch: SharedBatch;
  readonly statuses: readonly AppendStatus[];
}

/** The lock of the trees of one tick, while the store waits for its batch. */
interface TreeLock {
  readonly committed: Promise<Decided>;
  readonly decided: (batch: SharedBatch) => void;
  readonly abandoned: (error: unknown) => void;
}

// Which appends may raise the label of their case: the join of the labels of everything that its runs have read.
//
//   L1. A worker remembers for each case a label for which it has raised the version. An append whose runs have read
//       nothing above it raises nothing, so few commits lock the row of their case.
//   L2. If the label of a read is not known here, the append counts as raising: a version too many costs one repeated
//       computation.

/** Maximum cases that are remembered. */
const CASES_MAX = 4_096;

class CaseLabels {
  readonly #raised = new Map<string, Label>();
  /** The labels after the appends, as far as they are known. */
  readonly #labels = new WeakMap<CaseLabelChange, Label>();

  /**
   * @param tree the tree after all of the decisions of the append
   * @param contained the label that the append contains, or null
   */
  changeOf(tree: Tree, decisions: readonly Decision[], contained: CaseLabelVersion | null): CaseLabelChange | null {
    const case_id = contained?.case_id ?? tree.case_id;
    if (case_id === null) return null;
    const raised = this.#raised.get(case_id) ?? null;
    const label = labelAfter(tree, decisions, raised);
    const isRaised = label === null || (label !== raised && hasOrigin(label));
    if (!isRaised && contained === null) return null;
    const change = { case_id, version: contained?.version ?? null, isRaised };
    if (label !== null) this.#labels.set(change, label);
    return change;
  }

  /** The append with this change was committed. */
  onCommitted(change: CaseLabelChange): void {
    const label = this.#labels.get(change);
    if (label === undefined) return;
    if (this.#raised.size >= CASES_MAX) this.#raised.clear();
    this.#raised.set(change.case_id, label);
  }
}

/** Whether it is not the label of data without an origin. */
const hasOrigin = ({ cases, flags, many }: Label): boolean => cases.length > 0 || flags.length > 0 || many;

/** A tree that was lost so often in a row is decided under its lock. */
const LOSSES_MAX = 2;
/** A contested tree stays so for this many commits of this worker. */
const CONTESTED_COMMITS = 64;
/** Maximum trees that are remembered. */
const TREES_MAX = 4_096;

/** The trees that several workers extend at once. */
class LostRaces {
  /** Losses in a row, by tree. */
  readonly #losses = new Map<string, number>();
  /** Commits for which a tree is still contested. */
  readonly #contested = new Map<string, number>();

  isContested(tree_id: string): boolean {
    return this.#contested.has(tree_id);
  }

  note(tree_id: string, lost: boolean): void {
    if (lost) this.#noteLoss(tree_id);
    else this.#noteSuccess(tree_id);
  }

  #noteLoss(tree_id: string): void {
    const losses = (this.#losses.get(tree_id) ?? 0) + 1;
    if (this.#losses.size >= TREES_MAX) this.#losses.clear();
    this.#losses.set(tree_id, losses);
    if (losses < LOSSES_MAX) return;
    if (this.#contested.size >= TREES_MAX) this.#contested.clear();
    this.#contested.set(tree_id, CONTESTED_COMMITS);
  }

  #noteSuccess(tree_id: string): void {
    this.#losses.delete(tree_id);
    const left = this.#contested.get(tree_id);
    if (left === undefined) return;
    if (left <= 1) this.#contested.delete(tree_id);
    else this.#contested.set(tree_id, left - 1);
  }
}
