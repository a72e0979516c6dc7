// What the inspector routes read from a ledger, in a home directory or in an exported file. Read-only.

import type {
  Chart,
  CoverageReport,
  Course,
  EventDetails,
  LedgerInfo,
  ReplayedInfo,
  RowPage,
  StepStory,
  DecisionExplanation,
} from '../../core/contract/inspection/inspection.js';
import type { SessionView } from './contract/session-view.js';
import type { ReadControl } from '../../engine/ports/pace.js';

/** Limits of one response: rows, and bytes of entries. */
export const ROWS_MAX = 10_000;
export const ENTRY_BYTES_MAX = 4 * 1024 * 1024;

/** Options of a read of entries; `bytesMax` is by default `ENTRY_BYTES_MAX`. */
export type EntryReading = Partial<ReadControl> & { readonly bytesMax?: number };

/**
 * A log that can be inspected. Methods return null for what does not exist, and throw LEDGER_ARCHIVED for archived
 * entries.
 */
export interface InspectorSource {
  /** The ledger as a whole: its identity, its range of entries and its newest checkpoint. */
  info(): Promise<LedgerInfo>;
  /** Replays all entries, once; null for a ledger that is written to, or a changed file, which are not replayed. */
  replayed(): Promise<ReplayedInfo | null>;
  /** The present number of entries. Cheap: called many times a second. */
  size(): Promise<number>;
  /** The rows from `from` up to but not including `to`, at most `ROWS_MAX`. */
  rows(from: number, to: number, control?: ReadControl): Promise<RowPage>;
  /** The exact texts up to `to` or the byte limit; at least one if there is one. */
  entries(from: number, to: number, reading?: EntryReading): Promise<readonly string[]>;
  /** One entry with what it means and what it recorded. */
  event(log_index: number): Promise<EventDetails | null>;
  /** Content that this entry attached. */
  artifact(log_index: number, sha256: string): Promise<Uint8Array | null>;
  /** The moves after entry `after`; all moves if it is 0. */
  course(run_id: string, after: number, control?: ReadControl): Promise<Course | null>;
  /** The chart of the machine definitions with this hash. */
  chart(hash: string): Promise<Chart | null>;
  /** One step of an agent run, phase by phase; `step` counts from 1. */
  step(run_id: string, step: number, control?: ReadControl): Promise<StepStory | null>;
  /** Why the entry at this place was decided as it was. */
  why(log_index: number, control?: ReadControl): Promise<DecisionExplanation | null>;
  /** Explains every decision of a tree that can be evaluated again, in order. */
  whys(tree_id: string): AsyncIterable<DecisionExplanation>;
  /** How often each element of the pinned policies decided in the entries from `from` up to but not including `to`. */
  coverage(from: number, to: number, control?: ReadControl): Promise<CoverageReport>;
  /** The session after the entry `at`; null: at present. */
  session(session_id: string, at: number | null, control?: ReadControl): Promise<SessionView | null>;
  /** Closes the ledger or the file. */
  close(): Promise<void>;
}
