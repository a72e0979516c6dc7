/** Why something that stands in a tree was not taken. */
export type BagTreeProblem =
  | 'symlink'
  | 'special_file' // a FIFO, a socket, a device
  | 'name_unfit' // absolute, leads upwards, not UTF-8, a backslash, too long, too deep
  | 'duplicate_name' // two things of one name, or a file where a directory must be
  | 'encrypted'
  | 'compression_method'
  | 'compression_ratio'
  | 'contradiction'; // the archive says two different things about it

/** One thing in a tree. `path` is relative to its root, with slashes. */
export type BagTreeEntry =
  | { readonly kind: 'file'; readonly path: string; readonly bytes: number }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'refused'; readonly path: string; readonly reason: BagTreeProblem };

/** A tree of files to read, by whomever it was made: nothing it says is trusted before the bytes were counted. */
export interface BagTree {
  /** Everything below the root, in no order. @throws BagError BAG_UNREADABLE, BAG_HOSTILE */
  entries(): AsyncIterable<BagTreeEntry>;
  /**
   * The bytes of a file that `entries` named, in pieces of bounded size. Gives no more than one piece beyond the size
   * that was listed. @throws BagError BAG_UNREADABLE, BAG_HOSTILE
   */
  read(path: string): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Where a tree of files is written. Nothing shows under the final name before `finish`. */
export interface BagSink {
  writeDirectory(path: string): Promise<void>;
  /**
   * Writes one file from beginning to end before it resolves. A piece is written before the next one is asked for, so
   * that one buffer may serve for all. @throws BagError BAG_UNWRITABLE
   */
  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Makes it durable and gives it its name. @throws BagError BAG_EXISTS when the name is taken by now */
  finish(): Promise<void>;
  /** Takes away what was written. */
  discard(): Promise<void>;
}
