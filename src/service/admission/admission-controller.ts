// The admission controller: every request of HTTP and MCP runs as work that it has admitted. The schedule decides; here
// are its promises and its timer.

import type { Clock } from '../../ports/clock.js';
import type { Pace, Pause, ReadControl } from '../../ports/pace.js';
import { AuthenticationFailures } from './authentication-failures.js';
import { resolveAdmissionLimits, type AdmissionLimits, type AdmissionOptions } from './admission-limits.js';
import type { AdmissionCounts, AdmissionRefusal, ScheduledRequest, WorkDemand } from './scheduled-request.js';
import { AdmissionSchedule } from './admission-schedule.js';

/** What the schedule decided for a request. */
export type AdmissionDecision = { readonly work: AdmittedWork } | { readonly refused: AdmissionRefusal };

export interface AdmissionControllerOptions {
  readonly clock: Clock;
  readonly pace: Pace;
  readonly limits?: AdmissionOptions;
}

/** How long a client may leave what it asked for unread, and by which clock. */
export interface DrainOptions {
  readonly clock: Clock;
  readonly drainMs: number;
  readonly signal: AbortSignal;
}

/** What its work has to know of the controller. */
interface WorkEnvironment {
  readonly clock: Clock;
  readonly drainMs: number;
  slice(request: ScheduledRequest): Promise<void>;
  charge(request: ScheduledRequest, ms: number): void;
  leave(request: ScheduledRequest): void;
  begin(): Pause;
  /** For work of a token that is no request. */
  attach(token: string): ScheduledRequest;
}

export class AdmissionController {
  readonly limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #schedule: AdmissionSchedule;
  readonly #failures: AuthenticationFailures;
  readonly #environment: WorkEnvironment;
  /** What is done when a request that waits may go on, or is refused. */
  readonly #resumes = new Map<ScheduledRequest, () => void>();
  #timer: { readonly at: number; readonly callOff: () => void } | null = null;

  constructor({ clock, pace, limits }: AdmissionControllerOptions) {
    this.limits = resolveAdmissionLimits(limits);
    this.#clock = clock;
    this.#schedule = new AdmissionSchedule(this.limits);
    this.#failures = new AuthenticationFailures(this.limits);
    this.#environment = {
      clock,
      drainMs: this.limits.drainMs,
      attach: (token) => this.#schedule.attach(token, clock.now()),
      slice: (request) => this.#slice(request),
      charge: (request, ms) => this.#schedule.charge(request, ms, clock.now()),
      leave: (request) => this.#leave(request),
      begin: () => pace.begin(this.limits.sliceMs),
    };
  }

  get counts(): AdmissionCounts {
    return this.#schedule.counts;
  }

  /** Decides at once where it can: a request that need not wait costs no turn of the event loop. */
  admit(demand: WorkDemand): PendingAdmission {
    const request = this.#schedule.enter(demand, this.#clock.now());
    return new PendingAdmission(request, this.#environment, (resume) => {
      this.#resumes.set(request, resume);
      this.#runReady();
    });
  }

  /** A failed authentication. @returns milliseconds to wait where its address had its limit before; else 0 */
  recordFailure(address: string): number {
    return this.#failures.record(address, this.#clock.now());
  }

  #slice(request: ScheduledRequest): Promise<void> {
    if (this.#schedule.slice(request, this.limits.sliceMs, this.#clock.now())) return RESOLVED;
    return new Promise((resolve) => {
      this.#resumes.set(request, resolve);
      this.#runReady();
    });
  }

  #leave(request: ScheduledRequest): void {
    this.#schedule.leave(request, this.#clock.now());
    this.#resume(request);
    if (this.#schedule.waiting > 0) this.#runReady();
  }

  /** Lets go on what may, and sets the timer for the rest. */
  #runReady(): void {
    const now = this.#clock.now();
    for (let request = this.#schedule.next(now); request !== null; request = this.#schedule.next(now)) {
      this.#resume(request);
    }
    const at = this.#schedule.nextWakeTime(now);
    if (this.#timer !== null && at !== null && this.#timer.at <= at) return;
    this.#timer?.callOff();
    this.#timer = at === null ? null : { at, callOff: this.#clock.wake(at, () => this.#onTimer()) };
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

const RESOLVED = Promise.resolve();

/** A request at the door of the controller. */
export class PendingAdmission {
  readonly #request: ScheduledRequest;
  readonly #environment: WorkEnvironment;
  readonly #wait: (resume: () => void) => void;

  constructor(request: ScheduledRequest, environment: WorkEnvironment, wait: (resume: () => void) => void) {
    this.#request = request;
    this.#environment = environment;
    this.#wait = wait;
  }

  /** What was decided; null while the request waits. */
  get currentDecision(): AdmissionDecision | null {
    const { state, refusal } = this.#request;
    if (state === 'queued') return null;
    if (refusal !== null) return { refused: refusal };
    return { work: new AdmittedWork(this.#request, this.#environment) };
  }

  /** Resolves when it is decided: with null where the client has left. */
  async decision(): Promise<AdmissionDecision | null> {
    if (this.#request.state === 'queued') await new Promise<void>((resolve) => this.#wait(resolve));
    return this.#request.state === 'left' ? null : this.currentDecision;
  }

  /** The client has left. */
  cancel(): void {
    this.#environment.leave(this.#request);
  }
}

/** Work that runs, until it is ended. */
export class AdmittedWork implements ReadControl {
  readonly #request: ScheduledRequest;
  readonly #environment: WorkEnvironment;
  #abort: AbortController | null = null;
  #isAborted = false;
  #holds = 1;
  #pause: Pause | null = null;

  constructor(request: ScheduledRequest, environment: WorkEnvironment) {
    this.#request = request;
    this.#environment = environment;
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
    this.#pause ??= createPause(this.#environment, this.#request, this.signal);
    return this.#pause();
  };

  /** Charges work that was done in one piece. @param ms how long it took, about */
  charge(ms: number): void {
    this.#environment.charge(this.#request, ms);
  }

  /** The connection was closed: what has not been done need not be done. */
  abort(): void {
    this.#isAborted = true;
    this.#abort?.abort();
  }

  /** How its answer is written. */
  get drainOptions(): DrainOptions {
    const { clock, drainMs } = this.#environment;
    return { clock, drainMs, signal: this.signal };
  }

  /** It gives back its place before its connection is closed: what follows has limits of its own. */
  detach(): void {
    this.#environment.leave(this.#request);
  }

  /** For work that continues without a place, such as a stream: it is charged and scheduled in the same way. */
  background(): ReadControl {
    const request = this.#environment.attach(this.#request.token);
    return { signal: this.signal, pause: createPause(this.#environment, request, this.signal) };
  }

  /** One more that works on it, and has to end it: it keeps its place until all have. */
  hold(): void {
    this.#holds += 1;
  }

  /** Nothing of it is left to do for one that held it. */
  end(): void {
    this.#holds -= 1;
    if (this.#holds === 0) this.#environment.leave(this.#request);
  }
}

/** Each slice is charged; a read that was cancelled meanwhile does not go on. */
function createPause(environment: WorkEnvironment, request: ScheduledRequest, signal: AbortSignal): Pause {
  const pause = environment.begin();
  return () => {
    signal.throwIfAborted();
    const turn = pause();
    if (turn === undefined) return undefined;
    return turn.then(() => environment.slice(request)).then(() => signal.throwIfAborted());
  };
}
