/** Reads spec documents from disk. Their content is unverified. */
export interface SpecFiles {
  /** The absolute path of a file, for later reads. @throws UsageError if there is no such file */
  resolve(path: string): string;
  /** Reads a regular file of at most SPEC_BYTES_MAX bytes. @throws UsageError for anything else */
  read(path: string): Uint8Array;
  /** A value that changes whenever the file does; null if there is no file. */
  stamp(path: string): string | null;
}
