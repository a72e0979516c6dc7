// RFC 6962 §2.1 as a compact range: of a log that only grows, the hashes of its perfect subtrees are all that is
// needed to go on and to know its root. Hashes are lower-case hex throughout, as in the port and in every entry.

import { sha256 } from '../../contract/hash.js';
import { InvariantError } from '../../errors.js';
import type { LogHead } from '../../ports/ledger/ledger-store.js';

const HASH_BYTES = 32;
const EMPTY_ROOT = sha256('');

/** The head of a log without entries. */
export const EMPTY_HEAD: LogHead = { size: 0, root: EMPTY_ROOT, frontier: [] };

/** SHA-256(0x00 || text as UTF-8): what stands for an entry in the tree, and in the `prev` of the next one. */
export const leafHash = (text: string): string => sha256(`\0${text}`);

// One buffer for all nodes: it is filled and hashed within one synchronous call, and allocating would double the cost.
const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 0x01;

/** SHA-256(0x01 || left || right). @throws InvariantError if one of them is not 64 hex digits */
export function nodeHash(left: string, right: string): string {
  // A hash that is cut short would leave bytes of an earlier node in the buffer.
  if (left.length !== 2 * HASH_BYTES || node.write(left, 1, 'hex') !== HASH_BYTES) throw notAHashError(left);
  if (right.length !== 2 * HASH_BYTES || node.write(right, 1 + HASH_BYTES, 'hex') !== HASH_BYTES)
    throw notAHashError(right);
  return sha256(node);
}

const notAHashError = (text: string): InvariantError =>
  new InvariantError(`not a hash in hex: ${JSON.stringify(text)}`);

/**
 * The compact range of a log of `size` leaves after one more leaf.
 * Every trailing one bit of `size` is a perfect subtree that now has a sibling of its own height.
 */
export function appendLeaf(frontier: readonly string[], size: number, leaf: string): readonly string[] {
  const grown = [...frontier];
  pushLeaf(grown, size, leaf);
  return grown;
}

function pushLeaf(frontier: string[], size: number, leaf: string): void {
  let subtree = leaf;
  // Division and not a shift: bit operators would wrap at 2^32.
  for (let rest = size; rest % 2 === 1; rest = (rest - 1) / 2) {
    const left = frontier.pop();
    if (left === undefined) throw new InvariantError(`the frontier is too short for a log of ${size}`);
    subtree = nodeHash(left, subtree);
  }
  frontier.push(subtree);
}

/** The root of the log whose compact range this is: its subtrees joined from the smallest, on the right, leftwards. */
export function rootOf(frontier: readonly string[]): string {
  return frontier.length === 0 ? EMPTY_ROOT : frontier.reduceRight((right, left) => nodeHash(left, right));
}

/** Whether a log of this size can have this compact range, and this root comes out of it: a head may be of anybody. */
export function isHead({ size, root, frontier }: LogHead): boolean {
  let subtrees = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) subtrees += rest % 2;
  const hashes = [root, ...frontier];
  if (!Number.isSafeInteger(size) || size < 0 || frontier.length !== subtrees) return false;
  return hashes.every((hash) => /^[0-9a-f]{64}$/.test(hash)) && rootOf(frontier) === root;
}

/** The head of the log after `leaves`, in their order. `head` is not changed. */
export function extendHead(head: LogHead, leaves: readonly string[]): LogHead {
  const frontier = [...head.frontier];
  let { size } = head;
  for (const leaf of leaves) pushLeaf(frontier, size++, leaf);
  return { size, root: rootOf(frontier), frontier };
}

/**
 * Where a log of the head's size departs from the head at the latest: a head has the hash of each perfect subtree.
 * @returns the first and last leaf of the first subtree that differs; null where none does, or this is no head
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
