/** The time of day. All other code gets the time from here, as the data of an input (C39). */
export interface Clock {
  /** Milliseconds since 1970, UTC. Never decreases within one process. */
  now(): number;
  /** Milliseconds on a clock that cannot be set, from an arbitrary start. Absent: `now` serves instead. */
  monotonic?(): number;
  /** Calls `onWake` once, not before `at`. @returns a function that cancels the call */
  wake(at: number, onWake: () => void): () => void;
}

/** How the clock of a machine was set, compared with one that cannot be set. */
export interface ClockReading {
  /** How far it was set forward since the start, in ms; negative: back. */
  readonly offset_ms: number;
  /** How far it is behind the time of this process, in ms. */
  readonly behind_ms: number;
}
