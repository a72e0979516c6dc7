/** What a part of long work counts. */
export type ProgressUnit = 'entries' | 'bytes' | 'files' | 'trees' | 'runs' | 'contents';

/** A part of long work, such as one pass over a log. */
export interface ProgressPart {
  /** Says what is done, as a gerund: `reading the ledger`. */
  readonly label: string;
  readonly unit: ProgressUnit;
  /** The units of the whole part; null if it is not known in advance. */
  readonly total: number | null;
}

/** Receives how far long work is, for a person who waits for it. It changes nothing and never fails. */
export interface ProgressReporter {
  /** Begins a part, and ends the one before. */
  begin(part: ProgressPart): void;
  /** So many more units of the current part are done, one by default. Without a part it does nothing. */
  advance(count?: number): void;
  /** Ends the current part. */
  end(): void;
}

/** Drops all reports. */
export const NO_PROGRESS: ProgressReporter = {
  begin: () => undefined,
  advance: () => undefined,
  end: () => undefined,
};
