import { RunError } from '../errors.js';

/** Proposals that may wait for one agent run (D4). One more is AGENT_BUSY, which is no step. */
export const WAITING_MAX = 64;

/** One proposal at a time, in the order in which they came. */
export class AgentQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** @throws RunError AGENT_BUSY */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting > WAITING_MAX) {
      throw new RunError({
        code: 'AGENT_BUSY',
        message: `${WAITING_MAX} proposals already wait for this agent run: wait for a response before the next one`,
      });
    }
    this.#waiting += 1;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#waiting -= 1;
    }
  }
}
