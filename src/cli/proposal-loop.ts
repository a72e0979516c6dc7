import { setTimeout as delay } from 'node:timers/promises';
import { RunError } from '../errors.js';
import type { AgentRun, RunEnding } from '../runtime/agents/agent-run.js';
import { OutputClosedError, type Io } from './io.js';
import type { Payloads } from './payloads.js';
import { Progress } from './progress.js';
import { escapeText } from './text/terminal.js';

/** How long it is waited to see whether the input has anything behind what ended the run. */
const INPUT_PROBE_MS = 50;

export interface ProposalLoopResult {
  readonly ending: RunEnding;
  /** Responses by their outcome, or by their decision where the exposure hides that. */
  readonly counts: ReadonlyMap<string, number>;
  /** The run ended before its input did. */
  readonly hasMoreInput: boolean;
  /** Why the input could not be read to its end; null when nothing was wrong with it. */
  readonly failure: Error | null;
}

/** The loop of S2-05: a payload goes in, its one response comes out, until the input or the run ends. */
export class ProposalLoop {
  readonly #agent: AgentRun;
  readonly #payloads: Payloads;
  readonly #io: Io;
  readonly #progress: Progress;
  readonly #counts = new Map<string, number>();
  #hasRunEnded = false;
  #wake: () => void = () => undefined;

  constructor(agent: AgentRun, payloads: Payloads, io: Io) {
    this.#agent = agent;
    this.#payloads = payloads;
    this.#io = io;
    this.#progress = new Progress(io);
    const onRunEnded = (): void => {
      this.#hasRunEnded = true;
      this.#wake();
    };
    agent.finished.then(onRunEnded, onRunEnded);
  }

  /** Talks until the end. @throws RunError CLOSED when the process that has the home is gone */
  async run(): Promise<ProposalLoopResult> {
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

  async #loop(): Promise<ProposalLoopResult> {
    // An agent that was denied at once has ended already; that is known a moment later.
    await Promise.resolve();
    try {
      for (;;) {
        const payload = await this.#nextPayload();
        if (payload === null) break;
        await this.#writeResponse(await this.#agent.respond(payload));
      }
    } catch (error) {
      return await this.#endAfterFailure(error);
    }
    if (!this.#hasRunEnded) return this.#toResult(await this.#agent.end(), false);
    const ending = await this.#agent.finished;
    return this.#toResult(ending, !this.#io.stop().aborted && (await this.#hasMore()));
  }

  /** The next payload, or null when there is none, or the run has ended while it was waited for. */
  #nextPayload(): Promise<Uint8Array | null> {
    if (this.#hasRunEnded) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(null);
      this.#payloads.next().then(resolve, reject);
    });
  }

  async #writeResponse(response: string): Promise<void> {
    const outcome = outcomeOf(response);
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
    await this.#io.stdout.write(`${this.#io.stdout.isTTY ? escapeText(response) : response}\n`);
    await this.#progress.show(this.#counts);
  }

  async #endAfterFailure(error: unknown): Promise<ProposalLoopResult> {
    // The run had ended, and it was only not known yet.
    if (error instanceof RunError && error.code === 'RUN_ENDED')
      return this.#toResult(await this.#agent.finished, true);
    if (error instanceof RunError && error.code === 'CLOSED') throw error;
    const ending = await this.#interrupt();
    if (error instanceof OutputClosedError) return this.#toResult(ending, false);
    return { ...this.#toResult(ending, false), failure: error as Error };
  }

  async #hasMore(): Promise<boolean> {
    const more = this.#payloads.next().then(
      (payload) => payload !== null,
      () => true,
    );
    return Promise.race([more, delay(INPUT_PROBE_MS, true)]);
  }

  #interrupt(): Promise<RunEnding> {
    return this.#agent.interrupt().catch(() => this.#agent.finished);
  }

  #toResult(ending: RunEnding, hasMoreInput: boolean): ProposalLoopResult {
    return { ending, counts: this.#counts, hasMoreInput, failure: null };
  }
}

/** A response is JSON of our own making. */
function outcomeOf(response: string): string {
  const { outcome, decision } = JSON.parse(response) as { readonly outcome?: string; readonly decision?: string };
  return outcome ?? decision ?? 'unknown';
}
