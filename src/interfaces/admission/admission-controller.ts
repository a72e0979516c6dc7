// The admission controller: every request over HTTP and MCP runs as work that it admits. The schedule decides; this
// class adds the promises and the timer.

import type { Clock } from '../../engine/ports/clock.js';
import type { Pace, Pause, ReadControl } from '../../engine/ports/pace.js';
import { AuthenticationFailures } from './authentication-failures.js';
import { resolveAdmissionLimits, type AdmissionLimits, type AdmissionOptions } from './admission-limits.js';
import type { AdmissionCounts, AdmissionRefusal, ScheduledRequest, WorkDemand } from './scheduled-request.js';
import { AdmissionSchedule } from './admission-schedule.js';

/** What the schedule decided for a request. */
type AdmissionDecision = { readonly work: AdmittedWork } | { readonly refused: AdmissionRefusal };

interface AdmissionControllerOptions {
  readonly clock: Clock;
  readonly pace: Pace;
  readonly limits?: AdmissionOptions;
}

/** How long a client may leave its response unread, and the clock that measures it. */
interface DrainOptions {
  readonly clock: Clock;
  readonly drainMs: number;
  readonly signal: AbortSignal;
}

/** The parts of the controller that admitted work uses. */
interface WorkEnvironment {
  readonly clock: Clock;
  readonly drainMs: number;
  slice(request: ScheduledRequest): Promise<void>;
  charge(request: ScheduledRequest, ms: number): void;
  leave(request: ScheduledRequest): void;
  begin(): Pause;
  /** Schedules work of a token that is not a request. */
  attach(token: string): ScheduledRequest;
}

export class AdmissionController {
  readonly limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #schedule: AdmissionSchedule;
  readonly #failures: AuthenticationFailures;
  readonly #environment: WorkEnvironment;
  /** Callbacks for waiting requests, called when they may continue or are refused. */
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

  /** Decides synchronously if it can: a request that need not wait costs no turn of the event loop. */
  admit(demand: WorkDemand): PendingAdmission {
    const request = this.#schedule.enter(demand, this.#clock.now());
    return new PendingAdmission(request, this.#environment, (resume) => {
      this.#resumes.set(request, resume);
      this.#runReady();
    });
  }

  /** Records a failed authentication. @returns milliseconds to wait if the address is over its limit; else 0 */
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

  /** Resumes the requests that may continue, and sets the timer for the others. */
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

/** A request that the controller has received. */
export class PendingAdmission {
  readonly #request: ScheduledRequest;
  readonly #environment: WorkEnvironment;
  readonly #wait: (resume: () => void) => void;

  constructor(request: ScheduledRequest, environment: WorkEnvironment, wait: (resume: () => void) => void) {
    this.#request = request;
    this.#environment = environment;
    this.#wait = wait;
  }

  /** The decision; null while the request waits. */
  get currentDecision(): AdmissionDecision | null {
    const { state, refusal } = this.#request;
    if (state === 'queued') return null;
    if (refusal !== null) return { refused: refusal };
    return { work: new AdmittedWork(this.#request, this.#environment) };
  }

  /** Resolves with the decision, or null if the client has left. */
  async decision(): Promise<AdmissionDecision | null> {
    if (this.#request.state === 'queued') await new Promise<void>((resolve) => this.#wait(resolve));
    return this.#request.state === 'left' ? null : this.currentDecision;
  }

  /** Cancels the request, because its client has left. */
  cancel(): void {
    this.#environment.leave(this.#request);
  }
}

/** Admitted work, from its start until it ends. */
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

  /** Charges work that was done in one piece. @param ms its approximate duration */
  charge(ms: number): void {
    this.#environment.charge(this.#request, ms);
  }

  /** Aborts the rest of the work, because the connection is closed. */
  abort(): void {
    this.#isAborted = true;
    this.#abort?.abort();
  }

  /** The limits for writing the response. */
  get drainOptions(): DrainOptions {
    const { clock, drainMs } = this.#environment;
    return { clock, drainMs, signal: this.signal };
  }

  /** Releases the slot before the connection closes: what follows has limits of its own. */
  detach(): void {
    this.#environment.leave(this.#request);
  }

  /**
   * The control for work that continues without a slot, such as a stream; it is charged and scheduled in the same way.
   */
  background(): ReadControl {
    const request = this.#environment.attach(this.#request.token);
    return { signal: this.signal, pause: createPause(this.#environment, request, this.signal) };
  }

  /** Adds a holder, which must call `end`. The slot is released when all holders have ended. */
  hold(): void {
    this.#holds += 1;
  }

  /** Ends the work of one holder. */
  end(): void {
    this.#holds -= 1;
    if (this.#holds === 0) this.#environment.leave(this.#request);
  }
}

/** A pause that charges each slice. @throws the abort reason if the read was cancelled */
function createPause(environment: WorkEnvironment, request: ScheduledRequest, signal: AbortSignal): Pause {
  const pause = environment.begin();
  return () => {
    signal.throwIfAborted();
    const turn = pause();
    if (turn === undefined) return undefined;
    return turn.then(() => environment.slice(request)).then(() => signal.throwIfAborted());
  };
}
