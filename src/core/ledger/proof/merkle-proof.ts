// Inclusion and consistency proofs of RFC 6962 §2.1.1 and §2.1.2. Verification needs only the heads and no other part
// of the log. Hashes are lower-case hex.

import { PROOF_HASHES_MAX } from '../../contract/evidence/consistency-proof.js';
import { InvariantError } from '../../errors.js';
import type { LogHead } from '../readable-ledger.js';
import { appendLeaf, EMPTY_HEAD, nodeHash, rootOf } from './merkle.js';

/** The leaves from `start` up to, but not including, `end`. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Computes which subtrees' hashes are the inclusion proof of leaf `index` in a log of `size` leaves, in proof order.
 */
export function inclusionRanges(index: number, size: number): readonly LeafRange[] {
  if (!isSize(size) || !Number.isSafeInteger(index) || index < 0 || index >= size) {
    throw new InvariantError(`a log of ${size} has no leaf ${index}`);
  }
  const ranges: LeafRange[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + largestPowerBelow(end - start);
    if (index < middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  return ranges.reverse();
}

/**
 * Computes which subtrees' hashes prove that a log of `newer` leaves begins with the log of `older` leaves; no hashes
 * for `older` 0.
 */
export function consistencyRanges(older: number, newer: number): readonly LeafRange[] {
  if (!isSize(older) || !isSize(newer) || older > newer) {
    throw new InvariantError(`a log of ${newer} entries does not extend a log of ${older}`);
  }
  const ranges: LeafRange[] = [];
  let [start, end] = [0, newer];
  while (older > 0 && older < end) {
    const middle = start + largestPowerBelow(end - start);
    if (older <= middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  // The remaining range is the last subtree of the older log. If it is the whole older log, its root is already known.
  if (older > 0 && start > 0) ranges.push({ start, end });
  return ranges.reverse();
}

/**
 * Computes the hashes of subtrees in one pass over the leaves. Memory grows with the logarithm of their number.
 * @param begin the head before the first leaf; each range must end after it or lie within one of its subtrees
 */
export async function rangeHashes(
  ranges: readonly LeafRange[],
  leaves: AsyncIterable<string> | Iterable<string>,
  begin: LogHead = EMPTY_HEAD,
): Promise<readonly string[]> {
  const frontiers = ranges.map((range) => hashesBefore(range, begin));
  const last = Math.max(0, ...ranges.map(({ end }) => end));
  let index = begin.size;
  if (last > index) {
    for await (const leaf of leaves) {
      ranges.forEach(({ start, end }, at) => {
        if (index >= start && index < end) frontiers[at] = appendLeaf(frontiers[at] ?? [], index - start, leaf);
      });
      index += 1;
      if (index === last) break;
    }
  }
  if (index < last) throw new InvariantError(`the log ends at ${index}, before leaf ${last}`);
  return frontiers.map(rootOf);
}

/** The part of a subtree that lies before the given leaves, as a compact range. */
function hashesBefore({ start, end }: LeafRange, { size, frontier }: LogHead): readonly string[] {
  if (start >= size) return [];
  const found: string[] = [];
  let at = 0;
  for (const hash of frontier) {
    const width = largestPowerBelow(size - at + 1);
    if (at >= start && at + width <= end) found.push(hash);
    else if (at < end && at + width > start) throw new InvariantError(`the leaves from ${start} on are not available`);
    at += width;
  }
  return found;
}

export interface InclusionClaim {
  readonly index: number;
  readonly size: number;
  readonly leaf_hash: string;
  readonly root: string;
  readonly proof: readonly string[];
}

/** Verifies that a leaf is at `index` in the log of this size and root (RFC 9162 §2.1.3.2). Never throws. */
export function verifyInclusion({ index, size, leaf_hash, root, proof }: InclusionClaim): boolean {
  if (!isSize(size) || !Number.isSafeInteger(index) || index < 0 || index >= size) return false;
  if (![leaf_hash, root, ...proof].every(isHash) || proof.length > PROOF_HASHES_MAX) return false;
  let [at, last, hash] = [index, size - 1, leaf_hash];
  for (const sibling of proof) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      hash = nodeHash(sibling, hash);
      // Leaves on the right edge have no sibling while they are left children.
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && hash === root;
}

export interface ConsistencyClaim {
  readonly older: { readonly size: number; readonly root: string };
  readonly newer: { readonly size: number; readonly root: string };
  readonly proof: readonly string[];
}

/** Verifies that the newer log begins with the older one (RFC 9162 §2.1.4.2). Never throws. */
export function verifyConsistency({ older, newer, proof }: ConsistencyClaim): boolean {
  if (!isSize(older.size) || !isSize(newer.size) || older.size > newer.size) return false;
  // Consistency with an empty log proves nothing; an empty log has exactly one root.
  if (older.size === 0 && older.root !== EMPTY_HEAD.root) return false;
  if (older.size === newer.size) return proof.length === 0 && older.root === newer.root;
  if (![older.root, newer.root, ...proof].every(isHash) || proof.length > PROOF_HASHES_MAX) return false;
  if (older.size === 0) return proof.length === 0;
  let [at, last] = [older.size - 1, newer.size - 1];
  while (at % 2 === 1) [at, last] = [half(at), half(last)];
  const path = at === 0 ? [older.root, ...proof] : [...proof];
  const [first, ...rest] = path;
  if (first === undefined) return false;
  let [olderHash, newerHash] = [first, first];
  for (const sibling of rest) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      [olderHash, newerHash] = [nodeHash(sibling, olderHash), nodeHash(sibling, newerHash)];
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      newerHash = nodeHash(newerHash, sibling);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && olderHash === older.root && newerHash === newer.root;
}

/** The largest power of two that is smaller than `width`, which is at least 2. */
function largestPowerBelow(width: number): number {
  let power = 1;
  while (power * 2 < width) power *= 2;
  return power;
}

// Division instead of a shift: bit operators would wrap at 2^32.
const half = (value: number): number => Math.floor(value / 2);
const isSize = (size: number): boolean => Number.isSafeInteger(size) && size >= 0;
const isHash = (text: string): boolean => /^[0-9a-f]{64}$/.test(text);
