import { InvariantError, type LedgerError } from '../core/errors.js';
import { findPermanentFailure } from './failures.js';
import type { EffectRunner } from './effect-runner.js';
import type { HeadWriter } from './head-writer.js';
import type { InputQueue } from './tick/input-queue.js';
import { effectsInFlightError, ledgerUnavailableError } from './engine-errors.js';
import { DRAIN_MS, waitAtMost } from './timers.js';
import type { EngineCondition, EngineParts, Recovery } from './tree-engine.js';
import type { LedgerWriter } from './writers/ledger-writer.js';

interface FailedEpoch extends Pick<EngineParts, 'clock' | 'defer'> {
  readonly queue: InputQueue;
  readonly effectRunner: EffectRunner;
  readonly heads: HeadWriter | null;
  readonly writer: Pick<LedgerWriter, 'waitUntilIdle'>;
}

/**
 * Waits until nothing of a failed epoch is in flight: callers are rejected, and every effect has ended.
 * @throws LedgerError LEDGER_UNAVAILABLE if an effect takes too long
 */
export async function waitForQuiescence(
  { clock, defer, queue, effectRunner, heads, writer }: FailedEpoch,
  failure: unknown,
): Promise<void> {
  await new Promise<void>((done) => defer(done));
  // A poll that goes on in the next epoch would settle effects by what it knew of their trees in this one.
  if (!(await waitAtMost(clock, DRAIN_MS, writer.waitUntilIdle()))) throw effectsInFlightError(failure);
  await queue.waitUntilIdle();
  if (!(await waitAtMost(clock, DRAIN_MS, effectRunner.waitUntilIdle()))) throw effectsInFlightError(failure);
  await heads?.waitUntilIdle();
}

type RestartCondition = Omit<EngineCondition, 'laterTrees'>;

const RUNNING: RestartCondition = { state: 'running', permanentCode: null };
const RECOVERING: RestartCondition = { state: 'recovering', permanentCode: null };

/** Tracks the failure of an engine and its restart. */
export class Restarts {
  #failure: unknown = null;
  #rejectionCause: unknown = null;
  #recovery: Recovery | null = null;
  #pendingRestart: Promise<Recovery> | null = null;

  /** The error that ended the current epoch, or null. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Why the engine rejects callers, or null: the failure, until a restart has recovered from it. */
  get rejectionCause(): unknown {
    return this.#rejectionCause;
  }

  /** The error for callers that read trees; null while the ledger is open. */
  get unavailability(): LedgerError | null {
    return this.#failure === null ? null : ledgerUnavailableError(this.#failure);
  }

  get condition(): RestartCondition {
    if (this.#rejectionCause === null) return RUNNING;
    // The failure is cleared when the ledger is open again, and the cause when recovery has ended.
    if (this.#failure === null) return RECOVERING;
    return { state: 'failed', permanentCode: findPermanentFailure(this.#rejectionCause)?.code ?? null };
  }

  /** @returns whether this is the first failure */
  fail(error: unknown): boolean {
    const isFirst = this.#rejectionCause === null;
    this.#failure = error;
    this.#rejectionCause = error;
    return isFirst;
  }

  /** Accepts inputs of recovery from now on, and clears the failure. */
  beginRecovery(): void {
    this.#failure = null;
  }

  /** Accepts inputs of callers from now on, unless a new failure has happened. */
  completeRecovery(recovery: Recovery): Recovery {
    this.#recovery = recovery;
    if (this.#failure === null) this.#rejectionCause = null;
    return recovery;
  }

  /** Runs `work` after a transient failure. Concurrent callers share one attempt. */
  runOnce(work: () => Promise<Recovery>): Promise<Recovery> {
    this.#pendingRestart ??= this.#attemptRestart(work).finally(() => {
      this.#pendingRestart = null;
    });
    return this.#pendingRestart;
  }

  /** Resolves when no restart is in flight, whatever its result. */
  async waitUntilIdle(): Promise<void> {
    await this.#pendingRestart?.catch(() => undefined);
  }

  async #attemptRestart(work: () => Promise<Recovery>): Promise<Recovery> {
    if (this.#rejectionCause === null) {
      if (this.#recovery === null) throw new InvariantError('the engine was not started');
      return this.#recovery;
    }
    const permanentFailure = findPermanentFailure(this.#rejectionCause);
    if (permanentFailure !== null) throw permanentFailure;
    try {
      return await work();
    } catch (error) {
      // A permanent failure during a restart is not retried.
      if (findPermanentFailure(error) !== null) this.#rejectionCause = error;
      throw error;
    }
  }
}
