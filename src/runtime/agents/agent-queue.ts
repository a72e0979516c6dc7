import { RunError } from '../../core/errors.js';

/** The limit of queued proposals of one agent run (D4). The next one fails with AGENT_BUSY, which is not a step. */
export const QUEUED_PROPOSALS_MAX = 64;

/** Processes one proposal at a time, in order of arrival. */
export class AgentQueue {
  #last: Promise<unknown> = Promise.resolve();
  #queued = 0;

  /** @throws RunError AGENT_BUSY */
  async enqueue<T>(work: () => Promise<T>): Promise<T> {
    if (this.#queued > QUEUED_PROPOSALS_MAX) {
      throw new RunError({
        code: 'AGENT_BUSY',
        message: `${QUEUED_PROPOSALS_MAX} proposals already wait for this agent run: wait for a response before the next one`,
      });
    }
    this.#queued += 1;
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#queued -= 1;
    }
  }
}
