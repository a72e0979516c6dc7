/** The position of a line in its file, in bytes, without its newline. */
export interface LinePlace {
  readonly offset: number;
  readonly length: number;
}

/** Maximum length of the first and the last line, in bytes. */
export interface BoundaryLineLimits {
  readonly firstMax: number;
  readonly lastMax: number;
}

export interface BoundaryLines {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
  /** Where the last line begins. That line describes everything before it. */
  readonly lastOffset: number;
}

/** A file of lines that is read once from start to end, and then at single lines. Its bytes are untrusted. */
export interface LineFile {
  /** All lines in order. @throws UsageError for a line that is too long, or a last line without a newline */
  lines(lineMax?: number): AsyncIterable<{ readonly bytes: Uint8Array; readonly place: LinePlace }>;
  read(place: LinePlace): Promise<Uint8Array>;
  /**
   * Reads only the first and the last line, so that both can be checked before the whole file is read.
   * @returns null if there are fewer than two lines @throws UsageError like `lines`
   */
  boundaryLines(limits: BoundaryLineLimits): Promise<BoundaryLines | null>;
  /**
   * SHA-256 of the bytes before `end`, in lower-case hex. Reads the file in pieces and holds one at a time in memory.
   */
  sha256Before(end: number): Promise<string>;
  close(): Promise<void>;
}
