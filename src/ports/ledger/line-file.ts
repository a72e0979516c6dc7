/** Where a line stands in its file, in bytes, without its newline. */
export interface LinePlace {
  readonly offset: number;
  readonly length: number;
}

/** How long the first and the last line may be, in bytes. */
export interface BoundaryLineLimits {
  readonly firstMax: number;
  readonly lastMax: number;
}

export interface BoundaryLines {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
  /** Where the last line begins: everything before is what it is about. */
  readonly lastOffset: number;
}

/** A file of lines that is read through, and then here and there. Its bytes are whatever somebody wrote. */
export interface LineFile {
  /** In order. @throws UsageError for a line that is too long, and for a last one without a newline */
  lines(lineMax?: number): AsyncIterable<{ readonly bytes: Uint8Array; readonly place: LinePlace }>;
  read(place: LinePlace): Promise<Uint8Array>;
  /**
   * The first line and the last one, without what is between them, so that both can be checked before it is read.
   * @returns null where there are fewer than two lines @throws UsageError like `lines`
   */
  boundaryLines(limits: BoundaryLineLimits): Promise<BoundaryLines | null>;
  /** SHA-256 of the bytes before `end`, in lower-case hex. Memory: one piece. */
  sha256Before(end: number): Promise<string>;
  close(): Promise<void>;
}
