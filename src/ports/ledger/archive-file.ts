import type { LineFile } from './line-file.js';

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
