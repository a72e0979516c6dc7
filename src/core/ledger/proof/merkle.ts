// RFC 6962 §2.1 as a compact range: the hashes of a log's perfect subtrees are enough to append to it and to compute
// its root. Hashes are lower-case hex everywhere, as in the port and in every entry.

import { sha256 } from '../../contract/hash.js';
import { InvariantError } from '../../errors.js';
import type { LogHead } from '../readable-ledger.js';

const HASH_BYTES = 32;
const EMPTY_ROOT = sha256('');

/** The head of a log without entries. */
export const EMPTY_HEAD: LogHead = { size: 0, root: EMPTY_ROOT, frontier: [] };

/** SHA-256(0x00 || text as UTF-8): the leaf of an entry in the tree, and the `prev` of the next entry. */
export const leafHash = (text: string): string => sha256(`\0${text}`);

// One buffer for all nodes: it is filled and hashed within one synchronous call, and allocating would double the cost.
const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 0x01;

/** SHA-256(0x01 || left || right). @throws InvariantError if one of them is not 64 hex digits */
export function nodeHash(left: string, right: string): string {
  // A truncated hash would leave bytes of an earlier node in the buffer.
  if (left.length !== 2 * HASH_BYTES || node.write(left, 1, 'hex') !== HASH_BYTES) throw notAHashError(left);
  if (right.length !== 2 * HASH_BYTES || node.write(right, 1 + HASH_BYTES, 'hex') !== HASH_BYTES)
    throw notAHashError(right);
  return sha256(node);
}

const notAHashError = (text: string): InvariantError =>
  new InvariantError(`not a hash in hex: ${JSON.stringify(text)}`);

/**
 * Extends the compact range of a log of `size` leaves by one leaf. Every trailing one bit of `size` is a perfect
 * subtree that now has a sibling of the same height.
 */
export function appendLeaf(frontier: readonly string[], size: number, leaf: string): readonly string[] {
  const grown = [...frontier];
  pushLeaf(grown, size, leaf);
  return grown;
}

function pushLeaf(frontier: string[], size: number, leaf: string): void {
  let subtree = leaf;
  // Division instead of a shift: bit operators would wrap at 2^32.
  for (let rest = size; rest % 2 === 1; rest = (rest - 1) / 2) {
    const left = frontier.pop();
    if (left === undefined) throw new InvariantError(`the frontier is too short for a log of ${size}`);
    subtree = nodeHash(left, subtree);
  }
  frontier.push(subtree);
}

/** Computes the root from a compact range: joins its subtrees from the smallest, on the right, to the left. */
export function rootOf(frontier: readonly string[]): string {
  return frontier.length === 0 ? EMPTY_ROOT : frontier.reduceRight((right, left) => nodeHash(left, right));
}

/** Whether a log of this size can have this compact range and this root. A head may come from an untrusted source. */
export function isHead({ size, root, frontier }: LogHead): boolean {
  let subtrees = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) subtrees += rest % 2;
  const hashes = [root, ...frontier];
  if (!Number.isSafeInteger(size) || size < 0 || frontier.length !== subtrees) return false;
  return hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)) && rootOf(frontier) === root;
}

/** The head of the log after appending `leaves` in order. `head` is not changed. */
export function extendHead(head: LogHead, leaves: readonly string[]): LogHead {
  const frontier = [...head.frontier];
  let { size } = head;
  for (const leaf of leaves) pushLeaf(frontier, size++, leaf);
  return { size, root: rootOf(frontier), frontier };
}

/**
 * Finds the leaves among which a log of the head's size must differ from the head: a head has the hash of each perfect
 * subtree.
 * @returns the first and last leaf of the first subtree that differs; null if none differs or `head` is invalid
 */
export function findFirstDifference(frontier: readonly string[], head: LogHead): readonly [number, number] | null {
  if (!isHead(head)) return null;
  let begin = 0;
  for (const [place, expected] of head.frontier.entries()) {
    const leaves = 2 ** Math.floor(Math.log2(head.size - begin));
    if (frontier[place] !== expected) return [begin, begin + leaves - 1];
    begin += leaves;
  }
  return null;
}
