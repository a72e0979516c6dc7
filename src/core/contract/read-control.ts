// Lives in the contract because pure folds of a log are also divided into parts and cancelled.

/** Awaited between two parts of long work; undefined if the work may continue at once. */
export type Pause = () => Promise<void> | undefined;

/** How the caller of a long read divides and cancels it. */
export interface ReadControl {
  /** Aborted when the client has disconnected. Cursors of a store check it before each page. */
  readonly signal: AbortSignal;
  /** Awaited for each entry that is read. @throws the signal's reason if the signal is aborted */
  readonly pause: Pause;
}
