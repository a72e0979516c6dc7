import { InvariantError } from '../errors.js';
import { lastingReason } from './failures.js';
import type { Hands } from './hands.js';
import type { HeadWriter } from './head-writer.js';
import type { InputQueue } from './input-queue.js';
import { underWay } from './refusals.js';
import { DRAIN_MS, within } from './timers.js';
import type { EngineParts, Recovery } from './tree-engine.js';

interface FailedEpoch extends Pick<EngineParts, 'clock' | 'defer'> {
  readonly queue: InputQueue;
  readonly hands: Hands;
  readonly heads: HeadWriter | null;
}

/**
 * Waits until nothing of a failed epoch is in flight: callers are rejected, and every effect has ended.
 * @throws LedgerError LEDGER_UNAVAILABLE when an effect takes too long
 */
export async function quiet({ clock, defer, queue, hands, heads }: FailedEpoch, failure: unknown): Promise<void> {
  await new Promise<void>((done) => defer(done));
  await queue.idle();
  if (!(await within(clock, DRAIN_MS, hands.idle()))) throw underWay(failure);
  await heads?.idle();
}

/** The failure of an engine, and the way out of it. */
export class Restarts {
  #failure: unknown = null;
  #refused: unknown = null;
  #recovery: Recovery | null = null;
  #underWay: Promise<Recovery> | null = null;

  /** What ended the present epoch, or null. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Why callers are refused, or null: the failure, until a restart has recovered from it. */
  get refused(): unknown {
    return this.#refused;
  }

  /** @returns whether everything went well until now */
  fail(error: unknown): boolean {
    const isFirst = this.#refused === null;
    this.#failure = error;
    this.#refused = error;
    return isFirst;
  }

  /** From now on inputs of recovery enter: what failed before is over. */
  recovering(): void {
    this.#failure = null;
  }

  /** From now on inputs of callers enter, unless something has failed again. */
  recovered(recovery: Recovery): Recovery {
    this.#recovery = recovery;
    if (this.#failure === null) this.#refused = null;
    return recovery;
  }

  /** Does `work` where something has failed and that can pass. Who asks meanwhile shares it. */
  once(work: () => Promise<Recovery>): Promise<Recovery> {
    this.#underWay ??= this.#do(work).finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  /** When no restart is under way, whatever came of it. */
  async idle(): Promise<void> {
    await this.#underWay?.catch(() => undefined);
  }

  async #do(work: () => Promise<Recovery>): Promise<Recovery> {
    if (this.#refused === null) {
      if (this.#recovery === null) throw new InvariantError('the engine was not started');
      return this.#recovery;
    }
    const lasting = lastingReason(this.#refused);
    if (lasting !== null) throw lasting;
    try {
      return await work();
    } catch (error) {
      // What a restart has met and does not pass is not tried again.
      if (lastingReason(error) !== null) this.#refused = error;
      throw error;
    }
  }
}
