/** Why something in a tree was rejected. */
export type BagTreeProblem =
  | 'symlink'
  | 'special_file' // a FIFO, a socket, a device
  | 'name_unfit' // absolute, leads upwards, not UTF-8, a backslash, too long, too deep
  | 'duplicate_name' // two things of one name, or a file where a directory must be
  | 'encrypted'
  | 'compression_method'
  | 'compression_ratio'
  | 'contradiction'; // the archive says two different things about it

/** One item of a tree. `path` is relative to its root, with slashes. */
export type BagTreeEntry =
  | { readonly kind: 'file'; readonly path: string; readonly bytes: number }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'refused'; readonly path: string; readonly reason: BagTreeProblem };

/** A tree of files to read. Its origin is untrusted, including all sizes that it states. */
export interface BagTree {
  /** Everything below the root, in any order. @throws BagError BAG_UNREADABLE, BAG_HOSTILE */
  entries(): AsyncIterable<BagTreeEntry>;
  /**
   * The bytes of a file that `entries` named, in pieces of bounded size. Returns at most one piece beyond the listed
   * size.
   * @throws BagError BAG_UNREADABLE, BAG_HOSTILE
   */
  read(path: string): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** The destination of a tree of files. Nothing appears under the final name before `finish`. */
export interface BagSink {
  writeDirectory(path: string): Promise<void>;
  /**
   * Writes one file and resolves at its end. It writes each piece before it requests the next one, so that the caller
   * may reuse one buffer.
   * @throws BagError BAG_UNWRITABLE
   */
  writeFile(path: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Makes the tree durable and gives it its final name. @throws BagError BAG_EXISTS if the name exists by now */
  finish(): Promise<void>;
  /** Deletes what was written. */
  discard(): Promise<void>;
}
