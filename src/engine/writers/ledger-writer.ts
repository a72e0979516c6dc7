import type { Batch, CommitResult, LogHead } from '../ports/ledger/ledger-store.js';
import type { GrownTree } from '../ports/ledger/shared-store.js';
import type { RecoveringEngine } from '../recovery.js';
import type { LazyLedgerFacts } from '../ledger-facts.js';
import type { Reservations } from '../reservations/quota-reservations.js';
import type { Tick } from '../tick/tick.js';
import type { Recovery } from '../tree-engine.js';

/** What a commit has written. */
export interface CommittedTick {
  /** The appends that were written. */
  readonly batch: Batch;
  readonly result: CommitResult;
  /** The trees that another worker has extended meanwhile: nothing of them was written. */
  readonly overtaken: ReadonlySet<string>;
  /** When the commit was sent, in ms of the monotonic clock. */
  readonly sentAt: number;
}

/** The engine as a shared writer uses it. */
export interface SharedEngineAccess extends RecoveringEngine {
  /** Adds to all trees in memory what other workers have appended. */
  refreshAll(): Promise<void>;
  /** The same for trees that have grown at least to these lengths. */
  refreshGrown(trees: readonly GrownTree[]): Promise<void>;
  /** Adds it to these trees, within a tick. */
  refreshLocked(tree_ids: readonly string[]): Promise<void>;
  /** The trees that another worker has to continue: this one cannot evaluate them. */
  laterTrees(): readonly string[];
  /** Fires the timers of these trees that are due, and sets the others. */
  fireDue(tree_ids: readonly string[]): void;
  /** Stops all work until a restart. */
  fail(error: unknown): void;
}

/** What a worker does with appends of all workers that are pending. */
export interface IntegrationWork {
  /** Integrates what is pending. @returns whether the log has grown; never rejects */
  readonly integrate: () => Promise<boolean>;
  /** Reads and checks the head. Never rejects. */
  readonly follow: () => Promise<void>;
}

/** Callers that wait until the log has what a tree has now. @see IntegrationWaiters in integration-waiters.ts */
export interface IntegrationWaiting {
  /** See `TreeEngine.waitUntilIntegrated`. */
  wait(tree_id: string, timeoutMs: number): Promise<LogHead | null>;
}

/** Decides when a worker integrates pending appends. @see LogLeader in log-leader.ts */
export interface IntegrationLeader {
  start(): void;
  stop(): void;
  /** This worker has committed. */
  onCommitted(): void;
}

/**
 * How an engine writes to its ledger: alone, or together with other workers.
 * @see ExclusiveWriter in embedded.ts, the only writer of a ledger
 * @see SharedWriter in shared-writer.ts, one of several writers
 */
export interface LedgerWriter {
  /** Whether other workers write to the same trees. */
  readonly sharesTrees: boolean;
  readonly reservations: Reservations;
  readonly ledgerFacts: Readonly<LazyLedgerFacts>;
  /** Absent for the only writer, which integrates at every commit. */
  readonly createLeader?: ((work: IntegrationWork) => IntegrationLeader) | undefined;
  /**
   * Absent for the only writer, which need not look at the appends of others.
   * @param confirm writes a head that covers all that was integrated before this call; null after a failure
   */
  readonly createWaiters?: ((confirm: () => Promise<LogHead | null>) => IntegrationWaiting) | undefined;
  /** The stored lengths of trees. Absent if no other worker extends them. */
  readonly treeLengths?: ((tree_ids: readonly string[]) => Promise<readonly number[]>) | undefined;
  /** See `TreeEngine.labelVersion`. Absent for the only writer. */
  readonly labelVersion?: ((case_id: string) => Promise<number>) | undefined;
  /** Becomes a writer, with nothing of this process in flight. @throws LedgerError as `acquire` or `join` */
  acquire(): Promise<void>;
  /**
   * Before a tick is decided: locks its trees if other workers extend them often.
   * @returns null if it is decided without a lock @throws LedgerError
   */
  lockContested(tick: Tick): Promise<void> | null;
  /**
   * Commits what a tick has decided. Sends it before the first wait.
   * @returns null if the tick has decided nothing @throws LedgerError if nothing may be acknowledged
   */
  commit(tick: Tick): Promise<CommittedTick | null>;
  /** Gives up the lock of a tick that has failed. Never rejects. */
  unlock(tick: Tick, error: unknown): Promise<void>;
  /** Completes what workers that are gone have left unfinished. */
  recover(engine: SharedEngineAccess): Promise<Recovery>;
  /**
   * Makes sure that this process is still the one that performs its effects.
   * @param sentAt when the commit of the effect's decision was sent
   * @returns null if an effect may start at once @throws LedgerError if it may not start
   */
  permitEffect(sentAt: number): Promise<void> | null;
  /** Starts no more background work. */
  stop(): void;
  /** Resolves when no background work is in flight. Never rejects. */
  waitUntilIdle(): Promise<void>;
}
