// Agents that work through HTTP. A request goes to the worker that a hash of its run chooses, and to the next one if
// there is no answer. A repeated request has the same `Idempotency-Key`, so it takes effect once.

import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

/** How long a client waits for an answer, in ms. */
const ANSWER_MS = 3_000;

export class Clients {
  /** Every answered step: its run and the id of its proposal. */
  answered = [];
  /** How many requests were sent to another worker, because one did not answer. */
  repeated = 0;
  /** The longest time from a request to its answer, in ms. */
  slowestMs = 0;
  #workers;
  #token;
  #isOver = false;
  #working = Promise.resolve();

  /** @param workers have a `url`, which is null while they do not run */
  constructor(workers, token) {
    this.#workers = workers;
    this.#token = token;
  }

  /** Starts agents; each writes one file after another in a case of its own. */
  start(agents) {
    const work = Array.from({ length: agents }, (_, index) => this.#work(`case-${String(index).padStart(4, '0')}`));
    this.#working = Promise.all(work);
  }

  /** Sends no new request, and waits for the answers of the others. */
  async end() {
    this.#isOver = true;
    await this.#working;
  }

  async #work(case_id) {
    const { run_id } = await this.#send(case_id, '/api/v1/agents', JSON.stringify({ case: case_id }));
    for (let step = 1; !this.#isOver; step += 1) {
      const id = randomUUID();
      const args = { path: `/sandbox/${step}.txt`, content: `${case_id} ${step}` };
      const proposal = { schema_version: '1.0.0', id, reasoning: 'It is my task.', action: 'WRITE_FILE', args };
      const { outcome } = await this.#send(run_id, `/api/v1/agents/${run_id}/steps`, JSON.stringify(proposal), id);
      this.answered.push({ run_id, id, outcome, case_id, file: `${step}.txt`, content: args.content });
    }
  }

  async #send(key, path, body, idempotencyKey) {
    const from = performance.now();
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#try(this.#route(key, tries), path, body, idempotencyKey);
      if (answer !== null) {
        this.slowestMs = Math.max(this.slowestMs, performance.now() - from);
        return answer;
      }
      this.repeated += 1;
      await pause(50);
    }
  }

  #route(key, tries) {
    const live = this.#workers.filter(({ url }) => url !== null);
    return live[(createHash('sha256').update(key).digest().readUInt32BE() + tries) % live.length];
  }

  /** @returns null if the worker has not answered, or cannot */
  async #try({ url }, path, body, idempotencyKey) {
    try {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#token}`,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        body,
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const answer = await response.json();
      if (!response.ok) return null;
      // The worker has lost its database: nothing of this step was recorded.
      return answer.error?.error_code === 'AUDIT_FAILURE' ? null : answer;
    } catch {
      return null;
    }
  }
}
