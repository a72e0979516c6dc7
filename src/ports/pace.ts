/** Awaited between two parts of long work: undefined where the work may continue at once. */
export type Pause = () => Promise<void> | undefined;

/** Divides long work into parts, so that other work runs between them. */
export interface Pace {
  /** Begins work that yields after each `ms` milliseconds. @returns what the work awaits between its parts */
  begin(ms: number): Pause;
}
