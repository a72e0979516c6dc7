/** The space of a file system, in bytes. */
export interface FreeSpace {
  /** Bytes that this process can still write. */
  readonly free: number;
  readonly total: number;
}

/** The file system that stores a ledger. A part of it is reserved for recording work in flight. */
export interface DiskSpace {
  /** @returns null if it cannot be measured */
  measure(): FreeSpace | null;
  /** Reserved bytes, including those that an earlier process reserved. */
  reservedBytes(): number;
  /** Allocates `bytes`, so that no other program can use them. @returns false if there is too little space */
  reserve(bytes: number): boolean;
  /** Frees the reserved space. */
  release(): void;
  /** Whether the file system accepts a write now. Absent: it is not known. */
  isWritable?(): Promise<boolean>;
}
