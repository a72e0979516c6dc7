/** The time of day. Everything that knows the time got it from here, as the data of an input (C39). */
export interface Clock {
  /** Milliseconds since 1970, UTC; never goes back within one process. */
  now(): number;
  /** Calls `ring` once, not before `at`. @returns a function that calls it off */
  wake(at: number, onWake: () => void): () => void;
}
