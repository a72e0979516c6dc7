import { setTimeout as delay } from 'node:timers/promises';
import { parseOwnJson } from '../../core/contract/json.js';
import { RunError } from '../../core/errors.js';
import type { AgentRun, RunEnding } from '../../runtime/agents/agent-run.js';
import { OutputClosedError, type Io } from './io.js';
import type { Payloads } from './payloads.js';
import { escapeText, countText } from './text/terminal.js';

/** How long the loop waits for further input after the run ended, to report whether there is any; in milliseconds. */
const INPUT_PROBE_MS = 1_000;

export interface ProposalLoopResult {
  readonly ending: RunEnding;
  /** Counts of responses by outcome, or by decision if the exposure hides the outcome. */
  readonly counts: ReadonlyMap<string, number>;
  /** The run ended before its input did. */
  readonly hasMoreInput: boolean;
  /** Why the input could not be read to its end; null if it could. */
  readonly failure: Error | null;
}

/** The loop of S2-05: submits a payload and prints its one response, until the input or the run ends. */
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

  /**
   * Runs until the end.
   * @throws RunError CLOSED if the process that owns the home is gone
   */
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
    // A run that was denied in `created` has ended already, but its promise settles only after this turn.
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

  /** The next payload; null if no payload is left or the run ended while waiting. */
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
    // The run had ended, and the loop had not seen that yet.
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

/** Responses come from this platform, so they parse as JSON. */
function outcomeOf(response: string): string {
  const { outcome, decision } = parseOwnJson(response) as { readonly outcome?: string; readonly decision?: string };
  return outcome ?? decision ?? 'unknown';
}

const PROPOSALS_PER_UPDATE = 64;

/** A progress line on stderr for long inputs, shown only if stderr is a terminal and the responses are not. */
class Progress {
  readonly #io: Io;
  readonly #active: boolean;
  #shown = false;
  #count = 0;

  constructor(io: Io) {
    this.#io = io;
    this.#active = io.stderr.isTTY && !io.stdout.isTTY;
  }

  async show(counts: ReadonlyMap<string, number>): Promise<void> {
    this.#count += 1;
    if (!this.#active || this.#count % PROPOSALS_PER_UPDATE !== 0) return;
    this.#shown = true;
    await this.#write(`\r\u001b[K${proposalCountText(counts)}`);
  }

  async clear(): Promise<void> {
    if (this.#shown) await this.#write('\r\u001b[K');
    this.#shown = false;
  }

  async #write(text: string): Promise<void> {
    await this.#io.stderr.write(text).catch(() => undefined);
  }
}

/** `3 proposals: 2 SUCCESS, 1 DENIED` */
export function proposalCountText(counts: ReadonlyMap<string, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const by = [...counts].map(([outcome, count]) => `${count} ${escapeText(outcome)}`).join(', ');
  return `${countText(total, 'proposal')}${by === '' ? '' : `: ${by}`}`;
}
