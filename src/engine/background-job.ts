// Work that no input waits for, such as run records, replay points and polls. A job works in passes, called runs here:
// one at a time, and no runs of a tree.
//
//   J1. `JOB_TRANSITIONS` has every state, and what each event does in it. An event that it does not name changes
//       nothing.
//   J2. A request during a run leads to one more run, however many there are. Of several times the earliest counts.
//   J3. A stopped job can be restarted, which waits for the run in progress. A closed job never runs again. In both
//       states the run in progress has to end at its next step, when it reads `isStopped`.
//   J4. A run that fails is reported once. The report says whether the job is tried again, and when. What fails after a
//       stop is not reported, because the stop may have caused it.

import type { Clock } from './ports/clock.js';

/** The states of a background job. */
export type JobState =
  | 'new'
  /** No run is due. */
  | 'idle'
  /** The next run begins at a certain time. */
  | 'waiting'
  | 'running'
  /** A run is in progress, and another one follows. */
  | 'due'
  /** A run is in progress, and a last one follows at once. */
  | 'finishing'
  /** The last run is in progress. */
  | 'last'
  /** A run is in progress that has to end. */
  | 'stopping'
  | 'stopped'
  | 'closed';

/** What happens to a background job. `begin` and `end` are those of a run. */
export type JobEvent = 'start' | 'request' | 'begin' | 'end' | 'finish' | 'stop' | 'restart' | 'close';

/** The next state, by state and event. */
export const JOB_TRANSITIONS: Readonly<Record<JobState, Readonly<Partial<Record<JobEvent, JobState>>>>> = {
  new: { start: 'waiting', finish: 'last', stop: 'stopped', close: 'closed' },
  idle: { request: 'waiting', finish: 'last', stop: 'stopped', close: 'closed' },
  waiting: { begin: 'running', finish: 'last', stop: 'stopped', close: 'closed' },
  running: { request: 'due', end: 'idle', finish: 'finishing', stop: 'stopping', close: 'closed' },
  due: { end: 'waiting', finish: 'finishing', stop: 'stopping', close: 'closed' },
  finishing: { end: 'last', stop: 'closed', close: 'closed' },
  last: { end: 'closed', stop: 'closed', close: 'closed' },
  stopping: { end: 'stopped', restart: 'due', finish: 'closed', close: 'closed' },
  stopped: { restart: 'waiting', finish: 'closed', close: 'closed' },
  closed: {},
};

/** The state after an event. */
export const nextJobState = (state: JobState, event: JobEvent): JobState => JOB_TRANSITIONS[state][event] ?? state;

interface JobParts {
  readonly clock: Clock;
  /** Does the work of one run. @returns the milliseconds until the next run; null: the job waits for a request */
  readonly run: () => Promise<number | null>;
  /** Reports that a run has failed. @returns the milliseconds until the next try; null: the job waits for a request */
  readonly onFailed: (error: unknown) => number | null;
}

export class BackgroundJob {
  readonly #parts: JobParts;
  #state: JobState = 'new';
  /** When the next run begins. */
  #at = Infinity;
  /** Ends the wait for the next run, or the rest of the run in progress. */
  #endWait = (): void => undefined;
  /** The last run that has begun. It rejects only if `onFailed` throws. */
  #run: Promise<void> = Promise.resolve();
  #isRunning = false;

  constructor(parts: JobParts) {
    this.#parts = parts;
  }

  /** Whether it was started, and neither finished nor stopped. */
  get isActive(): boolean {
    return this.#state === 'idle' || this.#state === 'waiting' || this.#state === 'running' || this.#state === 'due';
  }

  /** Whether a run is in progress. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Whether the run in progress has to end. */
  get isStopped(): boolean {
    return this.#state === 'stopping' || this.#state === 'stopped' || this.#state === 'closed';
  }

  /** Begins the first run after this time. */
  start(ms: number): void {
    this.#open('start', ms);
  }

  /** Requests a run after this time, at the latest. */
  request(ms: number): void {
    const now = this.#parts.clock.now();
    if (now + ms >= this.#at) {
      // The time of the next run has come, and its timer not yet.
      if (this.#state === 'waiting' && this.#at <= now) this.#wait();
      return;
    }
    this.#at = now + ms;
    if (this.#state === 'waiting') this.#wait();
    else this.#send('request');
  }

  /** Ends the run in progress and begins none, until a restart. */
  stop(): void {
    this.#send('stop');
  }

  /** Begins a run after this time, if the job was stopped. */
  restart(ms: number): void {
    this.#open('restart', ms);
  }

  /** Ends the run in progress and begins none any more. */
  close(): void {
    this.#send('close');
  }

  /** Makes one more run without rests, unless the job is stopped. Resolves after it: then the job is closed. */
  async finish(): Promise<void> {
    this.#send('finish');
    await this.settled();
  }

  /** Resolves when no run is in progress. */
  async settled(): Promise<void> {
    for (let run: Promise<void> | null = null; run !== this.#run;) {
      run = this.#run;
      await run;
    }
  }

  /** Rests in the middle of a run, until the job is finished, stopped or closed. */
  async rest(ms: number): Promise<void> {
    if (this.#state !== 'running' && this.#state !== 'due') return;
    const { clock } = this.#parts;
    await new Promise<void>((resume) => {
      const cancelTimer = clock.wake(clock.now() + ms, resume);
      this.#endWait = () => {
        cancelTimer();
        resume();
      };
    });
  }

  #open(event: 'start' | 'restart', ms: number): void {
    if (nextJobState(this.#state, event) === this.#state) return;
    this.#at = this.#parts.clock.now() + ms;
    this.#send(event);
  }

  #send(event: JobEvent): void {
    const state = nextJobState(this.#state, event);
    if (state === this.#state) return;
    this.#state = state;
    // A request does not shorten the rest of the run in progress.
    if (state !== 'due') this.#endWait();
    if (state === 'waiting') this.#wait();
    if (state === 'running' || state === 'last') this.#run = this.#runOnce();
  }

  #wait(): void {
    const { clock } = this.#parts;
    this.#endWait();
    if (this.#at <= clock.now()) this.#send('begin');
    else this.#endWait = clock.wake(this.#at, () => this.#send('begin'));
  }

  async #runOnce(): Promise<void> {
    const { run, onFailed } = this.#parts;
    this.#at = Infinity;
    this.#isRunning = true;
    let next: number | null = null;
    try {
      next = await run();
    } catch (error) {
      if (!this.isStopped) next = onFailed(error);
    } finally {
      this.#isRunning = false;
      if (next !== null) this.request(next);
      this.#send('end');
    }
  }
}
