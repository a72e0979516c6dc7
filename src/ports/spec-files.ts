/** Spec documents on a disk. What they hold is unknown until it is checked. */
export interface SpecFiles {
  /** The one absolute path of a file, to be read again later. @throws UsageError where there is none */
  resolve(path: string): string;
  /** All of a regular file of at most SPEC_BYTES_MAX bytes. @throws UsageError for anything else */
  read(path: string): Uint8Array;
  /** Changes whenever the file does; null where there is none. */
  stamp(path: string): string | null;
}
