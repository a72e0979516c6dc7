/** Bytes of a file system. */
export interface FreeSpace {
  /** What this process can still write. */
  readonly free: number;
  readonly total: number;
}

/** The file system that stores a ledger, and the part of it that is reserved for recording what is in flight. */
export interface DiskSpace {
  /** @returns null where it cannot be measured */
  measure(): FreeSpace | null;
  /** How much is reserved, also by a process before this one. */
  reservedBytes(): number;
  /** Takes `bytes` of the file system, so that nothing else gets them. @returns false where they are not there */
  reserve(bytes: number): boolean;
  /** Gives what was reserved back to the file system. */
  release(): void;
}
