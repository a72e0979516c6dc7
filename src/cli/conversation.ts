import { setTimeout as delay } from 'node:timers/promises';
import { RunError } from '../errors.js';
import type { AgentRun, RunEnding } from '../runtime/agent-run.js';
import { OutputClosed, type Io } from './io.js';
import type { Payloads } from './payloads.js';
import { Progress } from './progress.js';
import { escaped } from './terminal.js';

/** How long it is waited to see whether the input has anything behind what ended the run. */
const REST_MS = 50;

export interface Talk {
  readonly ending: RunEnding;
  /** Responses by their outcome, or by their decision where the exposure hides that. */
  readonly counts: ReadonlyMap<string, number>;
  /** The run ended before its input did. */
  readonly rest: boolean;
  /** Why the input could not be read to its end; null when nothing was wrong with it. */
  readonly failure: Error | null;
}

/** The loop of S2-05: a payload goes in, its one response comes out, until the input or the run ends. */
export class Conversation {
  readonly #agent: AgentRun;
  readonly #payloads: Payloads;
  readonly #io: Io;
  readonly #progress: Progress;
  readonly #counts = new Map<string, number>();
  #over = false;
  #wake: () => void = () => undefined;

  constructor(agent: AgentRun, payloads: Payloads, io: Io) {
    this.#agent = agent;
    this.#payloads = payloads;
    this.#io = io;
    this.#progress = new Progress(io);
    const over = (): void => {
      this.#over = true;
      this.#wake();
    };
    agent.finished.then(over, over);
  }

  /** Talks until the end. @throws RunError CLOSED when the process that has the home is gone */
  async talk(): Promise<Talk> {
    const stop = this.#io.stop();
    const interrupt = (): void => void this.#interrupt().catch(() => undefined);
    if (stop.aborted) interrupt();
    stop.addEventListener('abort', interrupt, { once: true });
    try {
      return await this.#loop();
    } finally {
      stop.removeEventListener('abort', interrupt);
      this.#payloads.close();
      await this.#progress.clear();
    }
  }

  async #loop(): Promise<Talk> {
    // An agent that was denied at once has ended already; that is known a moment later.
    await Promise.resolve();
    try {
      for (;;) {
        const payload = await this.#nextPayload();
        if (payload === null) break;
        await this.#answer(await this.#agent.respond(payload));
      }
    } catch (error) {
      return await this.#brokenOff(error);
    }
    if (!this.#over) return this.#told(await this.#agent.end(), false);
    const ending = await this.#agent.finished;
    return this.#told(ending, !this.#io.stop().aborted && (await this.#hasMore()));
  }

  /** The next payload, or null when there is none, or the run has ended while it was waited for. */
  #nextPayload(): Promise<Uint8Array | null> {
    if (this.#over) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(null);
      this.#payloads.next().then(resolve, reject);
    });
  }

  async #answer(response: string): Promise<void> {
    const outcome = outcomeOf(response);
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
    await this.#io.stdout.write(`${this.#io.stdout.isTTY ? escaped(response) : response}\n`);
    await this.#progress.show(this.#counts);
  }

  async #brokenOff(error: unknown): Promise<Talk> {
    // The run had ended, and it was only not known yet.
    if (error instanceof RunError && error.code === 'RUN_ENDED') return this.#told(await this.#agent.finished, true);
    if (error instanceof RunError && error.code === 'CLOSED') throw error;
    const ending = await this.#interrupt();
    if (error instanceof OutputClosed) return this.#told(ending, false);
    return { ...this.#told(ending, false), failure: error as Error };
  }

  async #hasMore(): Promise<boolean> {
    const more = this.#payloads.next().then(
      (payload) => payload !== null,
      () => true,
    );
    return Promise.race([more, delay(REST_MS, true)]);
  }

  #interrupt(): Promise<RunEnding> {
    return this.#agent.interrupt().catch(() => this.#agent.finished);
  }

  #told(ending: RunEnding, rest: boolean): Talk {
    return { ending, counts: this.#counts, rest, failure: null };
  }
}

/** A response is JSON of our own making. */
function outcomeOf(response: string): string {
  const { outcome, decision } = JSON.parse(response) as { readonly outcome?: string; readonly decision?: string };
  return outcome ?? decision ?? 'unknown';
}
