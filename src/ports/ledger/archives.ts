import type { LineFile } from './line-file.js';

/** The beginning of a log that was moved to an archive file: what is left goes on from it. A head of the log. */
export interface ArchivedPart {
  /** The entries below it are in archive files. */
  readonly size: number;
  /** Lower-case hex; so are the others. */
  readonly root: string;
  readonly frontier: readonly string[];
  /** Of the file that ends here. */
  readonly sha256: string;
  /** The signed checkpoint at `size` that names the file, as `check-archives.ts` reads it. Null: no signer. */
  readonly note: string | null;
}

/** What leaves the store for good, when it is in an archive file. */
export interface ArchiveRemoval {
  /** The fencing epoch of the writer. */
  readonly epoch: number;
  readonly part: ArchivedPart;
  /** All trees that have entries between the former part and this one, with how many. All of them have ended. */
  readonly trees: readonly { readonly tree_id: string; readonly entries: number }[];
  /** The cases that they were opened for. */
  readonly cases: readonly string[];
}

/**
 * What a store remembers of entries that it has no more: enough to go on from them, and to say of everything that is
 * asked of them that it is archived. None of it is trusted.
 */
export interface ArchiveTable {
  /** In their order: the log goes on from the last one. */
  parts(): Promise<readonly ArchivedPart[]>;
  /** How many entries an archived tree had; null for any other tree. */
  tree(tree_id: string): Promise<number | null>;
  /** How many trees are archived. */
  treeCount(): Promise<number>;
  /** Whether a tree of this case is archived. */
  hasCase(case_id: string): Promise<boolean>;
  /**
   * Removes the entries below `part.size`, and what was kept for them alone. Marks and run records stay. All of it or
   * nothing; durable when it resolves, and the former epoch is over then.
   * @returns the fencing epoch from now on
   * @throws LedgerError LEDGER_CONFLICT with nothing done, if the epoch is over; LEDGER_UNAVAILABLE like `commit`
   */
  remove(removal: ArchiveRemoval): Promise<number>;
  /** As the writer: gives the room back that removals have left, and removes files of contents that nobody has. */
  tidy(): Promise<void>;
}

/** A file on its way: it gets its name when it is whole, and found to be right. */
export interface ArchiveDraft {
  write(line: string): Promise<void>;
  /** Makes durable what was written. @returns the file as it lies there, and its SHA-256 in lower-case hex */
  read(): Promise<{ readonly file: LineFile; readonly sha256: string }>;
  /** Gives it its name, durably. @throws UsageError where something has that name by now */
  publish(): Promise<void>;
  /** Leaves nothing of it, unless it is settled. */
  close(): Promise<void>;
}
