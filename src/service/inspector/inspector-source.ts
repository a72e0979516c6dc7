// What the inspector's routes ask of a ledger, be it a home's or an exported file's. Everything is a reading.

import type {
  Chart,
  Course,
  EventDetails,
  LedgerInfo,
  RowPage,
  SessionView,
  StepStory,
  DecisionExplanation,
} from '../../contract/inspection/inspection.js';
import type { ReadControl } from '../../ports/pace.js';

/** Rows of one answer, and bytes of entries of one answer. */
export const ROWS_MAX = 10_000;
export const ENTRY_BYTES_MAX = 4 * 1024 * 1024;

/** How entries are read: how many bytes at most, by default `ENTRY_BYTES_MAX`. */
export type EntryReading = Partial<ReadControl> & { readonly bytesMax?: number };

/** A log that can be looked at. What does not exist is null; what is archived throws LEDGER_ARCHIVED. */
export interface InspectorSource {
  /** The ledger as a whole: its identity, its range of entries and its newest checkpoint. */
  info(): Promise<LedgerInfo>;
  /** How many entries there are now: cheap, asked many times a second. */
  size(): Promise<number>;
  /** From `from` up to and without `to`, at most `ROWS_MAX`. */
  rows(from: number, to: number, control?: ReadControl): Promise<RowPage>;
  /** The exact texts, up to `to` or so many bytes, at least one where there is one. */
  entries(from: number, to: number, reading?: EntryReading): Promise<readonly string[]>;
  /** One entry with what it means and what it recorded. */
  event(log_index: number): Promise<EventDetails | null>;
  /** Content that this entry brought. */
  artifact(log_index: number, sha256: string): Promise<Uint8Array | null>;
  /** Moves after entry `after` and on; all of them where it is 0. */
  course(run_id: string, after: number, control?: ReadControl): Promise<Course | null>;
  /** The chart of the machine definitions with this hash. */
  chart(hash: string): Promise<Chart | null>;
  /** One step of an agent run, phase by phase; `step` counts from 1. */
  step(run_id: string, step: number, control?: ReadControl): Promise<StepStory | null>;
  /** Why the entry at this place was decided as it was. */
  why(log_index: number, control?: ReadControl): Promise<DecisionExplanation | null>;
  /** Of every decision of a tree, in their order, as far as they can be decided again. */
  whys(tree_id: string): AsyncIterable<DecisionExplanation>;
  /** As it stood when the entry `at` had been written; null: as it stands. */
  session(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null>;
  /** Closes the ledger or the file. */
  close(): Promise<void>;
}
