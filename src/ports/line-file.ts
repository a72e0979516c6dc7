/** Where a line stands in its file, in bytes, without its newline. */
export interface LinePlace {
  readonly offset: number;
  readonly length: number;
}

/** A file of lines that is read through, and then here and there. Its bytes are whatever somebody wrote. */
export interface LineFile {
  /** In order. @throws UsageError for a line that is too long, and for a last one without a newline */
  lines(): AsyncIterable<{ readonly bytes: Uint8Array; readonly place: LinePlace }>;
  read(place: LinePlace): Promise<Uint8Array>;
  close(): Promise<void>;
}
