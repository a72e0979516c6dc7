// One proof that several leaves are in a log: the hashes of the largest perfect subtrees that contain none of them,
// from left to right. Together with the leaves they give the root of the log (RFC 6962 §2.1). These are fewer hashes
// than inclusion proofs of the single leaves would need. Hashes are lower-case hex.

import type { LogHead } from '../../core/ledger/readable-ledger.js';
import { nodeHash, rootOf } from '../../core/ledger/proof/merkle.js';

/** A perfect subtree of `width` leaves, from `start` on. `width` is a power of two, and `start` is a multiple of it. */
interface Subtree {
  readonly start: number;
  readonly width: number;
  readonly hash: string;
}

/** Takes all leaves of a log in order. Memory: the hashes of the proof. */
export class SubsetProof {
  readonly #hashes: string[] = [];
  /** The subtrees since the last member, each as large as possible. */
  #gap: Subtree[];
  #size: number;

  /** @param begin the head before the first leaf; no member is in that part */
  constructor(begin: LogHead) {
    this.#gap = subtreesOf(begin);
    this.#size = begin.size;
  }

  push(leaf_hash: string, isMember: boolean): void {
    if (isMember) this.#flush();
    else appendSubtree(this.#gap, { start: this.#size, width: 1, hash: leaf_hash });
    this.#size += 1;
  }

  /** The proof for all members that were taken. */
  finish(): readonly string[] {
    this.#flush();
    return this.#hashes;
  }

  #flush(): void {
    for (const { hash } of this.#gap) this.#hashes.push(hash);
    this.#gap = [];
  }
}

/** Appends a subtree and joins pairs that are the halves of a larger one. */
function appendSubtree(subtrees: Subtree[], next: Subtree): void {
  let added = next;
  for (let last = subtrees.at(-1); last !== undefined; last = subtrees.at(-1)) {
    if (last.width !== added.width || last.start % (2 * last.width) !== 0) break;
    subtrees.pop();
    added = { start: last.start, width: 2 * last.width, hash: nodeHash(last.hash, added.hash) };
  }
  subtrees.push(added);
}

function subtreesOf({ size, frontier }: LogHead): Subtree[] {
  let start = 0;
  return frontier.map((hash) => {
    const width = largestWidthAt(start, size);
    const subtree = { start, width, hash };
    start += width;
    return subtree;
  });
}

/** The width of the largest perfect subtree that begins at `start` and does not reach beyond `end`. */
function largestWidthAt(start: number, end: number): number {
  let width = 1;
  while (start % (2 * width) === 0 && start + 2 * width <= end) width *= 2;
  return width;
}

/** Computes the root of a log from its members, in order, and the hashes of a proof. Never throws. */
export class SubsetRoot {
  readonly #size: number;
  readonly #hashes: readonly string[];
  readonly #range: Subtree[] = [];
  #used = 0;
  #at = 0;
  #broken = false;

  constructor(size: number, hashes: readonly string[]) {
    this.#size = size;
    this.#hashes = hashes;
    this.#broken = !Number.isSafeInteger(size) || size < 1 || !hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash));
  }

  /** @returns false if the member is out of order, beyond the log, or not covered by the proof */
  take(index: number, leaf_hash: string): boolean {
    if (this.#broken || !Number.isSafeInteger(index) || index < this.#at || index >= this.#size) this.#broken = true;
    else if (this.#fill(index)) this.#append(1, leaf_hash);
    return !this.#broken;
  }

  /** @returns the root; null if the members and hashes do not fit a log of this size */
  root(): string | null {
    if (this.#broken || !this.#fill(this.#size) || this.#used !== this.#hashes.length) return null;
    return rootOf(this.#range.map(({ hash }) => hash));
  }

  /** Consumes hashes of the proof up to `end`. */
  #fill(end: number): boolean {
    while (this.#at < end) {
      const hash = this.#hashes[this.#used];
      if (hash === undefined) {
        this.#broken = true;
        return false;
      }
      this.#used += 1;
      this.#append(largestWidthAt(this.#at, end), hash);
    }
    return true;
  }

  #append(width: number, hash: string): void {
    appendSubtree(this.#range, { start: this.#at, width, hash });
    this.#at += width;
  }
}
