import type { Pause } from '../../core/contract/read-control.js';

export type { Pause, ReadControl } from '../../core/contract/read-control.js';

/** Divides long work into parts, so that other work runs between them. */
export interface Pace {
  /**
   * Starts work that yields after every `ms` milliseconds. @returns the pause that the work awaits between its parts
   */
  begin(ms: number): Pause;
}

/** Keeps the process running until `work` settles: timers and queued tasks of the runtime do not. */
export type KeepAlive = <T>(work: Promise<T>) => Promise<T>;
