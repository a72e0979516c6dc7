// The admission controller: every request over HTTP and MCP runs as work that it admits. The schedule decides; this
// class adds the promises and the timer.

import type { Clock } from '../../engine/ports/clock.js';
import type { Pace, Pause, ReadControl } from '../../engine/ports/pace.js';
import { resolveAdmissionLimits, type AdmissionLimits, type AdmissionOptions } from './admission-limits.js';
import {
  AdmissionSchedule,
  CostBucket,
  type AdmissionCounts,
  type AdmissionRefusal,
  type ScheduledRequest,
  type WorkDemand,
} from './admission-schedule.js';
import { createLruMap } from '../../system/lru-map.js';

/** What the schedule decided for a request. */
type AdmissionDecision = { readonly work: AdmittedWork } | { readonly refused: AdmissionRefusal };

interface AdmissionControllerOptions {
  readonly clock: Clock;
  readonly pace: Pace;
  readonly limits?: AdmissionOptions;
}

/** How long a client may leave its response unread, and the clock that measures it. */
export interface DrainLimits {
  readonly clock: Pick<Clock, 'now' | 'wake'>;
  /** In milliseconds. */
  readonly drainMs: number;
  /** Aborted when the connection closes: Node does not notify responses that wait behind others. */
  readonly signal: AbortSignal;
}

export class AdmissionController {
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly #pace: Pace;
  readonly #schedule: AdmissionSchedule;
  readonly #failures: AuthenticationFailures;
  /** Callbacks for waiting requests, called when they may continue or are refused. */
  readonly #resumes = new Map<ScheduledRequest, () => void>();
  #timer: { readonly at: number; readonly callOff: () => void } | null = null;

  constructor({ clock, pace, limits }: AdmissionControllerOptions) {
    this.limits = resolveAdmissionLimits(limits);
    this.clock = clock;
    this.#pace = pace;
    this.#schedule = new AdmissionSchedule(this.limits);
    this.#failures = new AuthenticationFailures(this.limits);
  }

  get counts(): AdmissionCounts {
    return this.#schedule.counts;
  }

  /** Decides synchronously if it can: a request that need not wait costs no turn of the event loop. */
  admit(demand: WorkDemand): PendingAdmission {
    return new PendingAdmission(this.#schedule.enter(demand, this.clock.now()), this);
  }

  /** Records a failed authentication. @returns milliseconds to wait if the address is over its limit; else 0 */
  recordFailure(address: string): number {
    return this.#failures.record(address, this.clock.now());
  }

  /** Resolves when the request may run or continue, is refused, or has left. */
  wait(request: ScheduledRequest): Promise<void> {
    return new Promise((resolve) => {
      this.#resumes.set(request, resolve);
      this.#runReady();
    });
  }

  charge(request: ScheduledRequest, ms: number): void {
    this.#schedule.charge(request, ms, this.clock.now());
  }

  leave(request: ScheduledRequest): void {
    this.#schedule.leave(request, this.clock.now());
    this.#resume(request);
    if (this.#schedule.waiting > 0) this.#runReady();
  }

  /** Schedules work of a token that is not a request. */
  attach(token: string): ScheduledRequest {
    return this.#schedule.attach(token, this.clock.now());
  }

  /** A pause that charges each slice. @throws the abort reason if the read was cancelled */
  createPause(request: ScheduledRequest, signal: AbortSignal): Pause {
    const pause = this.#pace.begin(this.limits.sliceMs);
    return () => {
      signal.throwIfAborted();
      const turn = pause();
      if (turn === undefined) return undefined;
      return turn.then(() => this.#slice(request)).then(() => signal.throwIfAborted());
    };
  }

  #slice(request: ScheduledRequest): Promise<void> | undefined {
    if (this.#schedule.slice(request, this.limits.sliceMs, this.clock.now())) return undefined;
    return this.wait(request);
  }

  /** Resumes the requests that may continue, and sets the timer for the others. */
  #runReady(): void {
    const now = this.clock.now();
    for (let request = this.#schedule.next(now); request !== null; request = this.#schedule.next(now)) {
      this.#resume(request);
    }
    const at = this.#schedule.nextWakeTime(now);
    if (this.#timer !== null && at !== null && this.#timer.at <= at) return;
    this.#timer?.callOff();
    this.#timer = at === null ? null : { at, callOff: this.clock.wake(at, () => this.#onTimer()) };
  }

  #onTimer(): void {
    this.#timer = null;
    this.#runReady();
  }

  #resume(request: ScheduledRequest): void {
    const resume = this.#resumes.get(request);
    this.#resumes.delete(request);
    resume?.();
  }
}

/** A request that the controller has received. */
export class PendingAdmission {
  readonly #request: ScheduledRequest;
  readonly #controller: AdmissionController;

  constructor(request: ScheduledRequest, controller: AdmissionController) {
    this.#request = request;
    this.#controller = controller;
  }

  /** The decision; null while the request waits. */
  get currentDecision(): AdmissionDecision | null {
    const { state, refusal } = this.#request;
    if (state === 'queued') return null;
    if (refusal !== null) return { refused: refusal };
    return { work: new AdmittedWork(this.#request, this.#controller) };
  }

  /** Resolves with the decision, or null if the client has left. */
  async decision(): Promise<AdmissionDecision | null> {
    if (this.#request.state === 'queued') await this.#controller.wait(this.#request);
    return this.#request.state === 'left' ? null : this.currentDecision;
  }

  /** Cancels the request, because its client has left. */
  cancel(): void {
    this.#controller.leave(this.#request);
  }
}

/** Admitted work, from its start until it ends. */
export class AdmittedWork implements ReadControl {
  readonly #request: ScheduledRequest;
  readonly #controller: AdmissionController;
  #abort: AbortController | null = null;
  #isAborted = false;
  #holds = 1;
  #pause: Pause | null = null;

  constructor(request: ScheduledRequest, controller: AdmissionController) {
    this.#request = request;
    this.#controller = controller;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#isAborted) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  /** Charges the entry to its token, and yields after each slice of work. */
  readonly pause: Pause = () => {
    this.#pause ??= this.#controller.createPause(this.#request, this.signal);
    return this.#pause();
  };

  /** Charges work that was done in one piece. @param ms its approximate duration */
  charge(ms: number): void {
    this.#controller.charge(this.#request, ms);
  }

  /** Aborts the rest of the work, because the connection is closed. */
  abort(): void {
    this.#isAborted = true;
    this.#abort?.abort();
  }

  /** The limits for writing the response. */
  get drainOptions(): DrainLimits {
    const { clock, limits } = this.#controller;
    return { clock, drainMs: limits.drainMs, signal: this.signal };
  }

  /** Releases the slot before the connection closes: what follows has limits of its own. */
  detach(): void {
    this.#controller.leave(this.#request);
  }

  /**
   * The control for work that continues without a slot, such as a stream; it is charged and scheduled in the same way.
   */
  background(): ReadControl {
    const request = this.#controller.attach(this.#request.token);
    return { signal: this.signal, pause: this.#controller.createPause(request, this.signal) };
  }

  /** Adds a holder, which must call `end`. The slot is released when all holders have ended. */
  hold(): void {
    this.#holds += 1;
  }

  /** Ends the work of one holder. */
  end(): void {
    this.#holds -= 1;
    if (this.#holds === 0) this.#controller.leave(this.#request);
  }
}

// Failed authentications by client address. An address over its limit gets another refusal, but a valid token is still
// accepted: an attacker must not lock out the clients behind the same address.

/** Limit of the stored addresses; the one that failed longest ago is evicted first. */
const ADDRESSES_MAX = 4_096;

class AuthenticationFailures {
  readonly #limits: Pick<AdmissionLimits, 'failures' | 'failuresPerSecond'>;
  readonly #addresses = createLruMap<CostBucket>(ADDRESSES_MAX);

  constructor(limits: Pick<AdmissionLimits, 'failures' | 'failuresPerSecond'>) {
    this.#limits = limits;
  }

  /** Records a failure. @returns milliseconds to wait if the address was over its limit; else 0 */
  record(address: string, now: number): number {
    const { failures, failuresPerSecond } = this.#limits;
    const source = sourceOf(address);
    const bucket = this.#addresses.get(source) ?? new CostBucket(failuresPerSecond, failures, now);
    // A new place behind all others: LruMap leaves an entry in its place below half of the limit.
    this.#addresses.delete(source);
    this.#addresses.set(source, bucket);
    const wait = bucket.waitFor(1, now);
    if (wait === 0) bucket.spend(1, now);
    return wait;
  }
}

/** The address range of one client: an IPv4 address, or the 64-bit prefix of an IPv6 address. */
function sourceOf(address: string): string {
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address;
  const [head = '', tail = ''] = address.split('::', 2);
  const left = head === '' ? [] : head.split(':');
  const right = tail === '' ? [] : tail.split(':');
  const zeros = address.includes('::')
    ? Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0')
    : [];
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}
