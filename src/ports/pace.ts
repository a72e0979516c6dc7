/** Awaited between two parts of long work; undefined if the work may continue at once. */
export type Pause = () => Promise<void> | undefined;

/** Divides long work into parts, so that other work runs between them. */
export interface Pace {
  /**
   * Starts work that yields after every `ms` milliseconds. @returns the pause that the work awaits between its parts
   */
  begin(ms: number): Pause;
}

/** How the caller of a long read divides and cancels it. */
export interface ReadControl {
  /** Aborted when the client has disconnected. Cursors of a store check it before each page. */
  readonly signal: AbortSignal;
  /** Awaited for each entry that is read. @throws the signal's reason if the signal is aborted */
  readonly pause: Pause;
}

/** Keeps the process running until `work` settles: timers and queued tasks of the runtime do not. */
export type KeepAlive = <T>(work: Promise<T>) => Promise<T>;
