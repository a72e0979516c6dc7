import type { ArchivedPart, ArchivedParts } from '../../../core/ledger/readable-ledger.js';

import type { LineFile } from './line-file.js';

/** Entries to remove from the store after they were archived. */
export interface ArchiveRemoval {
  /** The fencing epoch of the writer. */
  readonly epoch: number;
  readonly part: ArchivedPart;
  /**
   * All trees with entries between the previous part and this one, with their number of entries. All of them have
   * ended.
   */
  readonly trees: readonly { readonly tree_id: string; readonly entries: number }[];
  /** The cases for which these trees were opened. */
  readonly cases: readonly string[];
}

/**
 * What a store remembers of archived entries: enough to continue the log, and to report that a requested entry is
 * archived. None of it is trusted.
 */
export interface ArchiveTable extends ArchivedParts {
  /** Why this kind of store never removes entries, and what to do instead. Absent if it does. */
  readonly obstacle?: string;
  /**
   * Removes the entries before `part.size`, and all content that only they used. Marks and run records stay. It is
   * atomic, and durable when it resolves; the former epoch is then over.
   * @returns the new fencing epoch
   * @throws LedgerError LEDGER_CONFLICT with nothing done, if the epoch is over; LEDGER_UNAVAILABLE like `commit`
   */
  remove(removal: ArchiveRemoval): Promise<number>;
  /** Vacuums the database after removals, and deletes content files that no entry uses. Only the writer calls this. */
  tidy(): Promise<void>;
}

/** An archive file that is being written. It gets its final name once it is complete and verified. */
export interface ArchiveDraft {
  write(line: string): Promise<void>;
  /** Makes the written lines durable. @returns the file, and its SHA-256 in lower-case hex */
  read(): Promise<{ readonly file: LineFile; readonly sha256: string }>;
  /** Gives the file its final name, durably. @throws UsageError if that name exists by now */
  publish(): Promise<void>;
  /** Deletes the file unless it was published. */
  close(): Promise<void>;
}
