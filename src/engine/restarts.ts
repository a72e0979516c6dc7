import { InvariantError } from '../errors.js';
import { lastingReason } from './failures.js';
import type { Recovery } from './tree-engine.js';

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
