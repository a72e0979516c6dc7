import { describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../src/core/contract/hash.js';
import { EMPTY_HEAD, extendHead } from '../../../src/core/ledger/proof/merkle.js';
import { SubsetProof, SubsetRoot } from '../../../src/features/exports/subset-proof.js';
import { random } from '../../fixtures/random.js';

const leaves = Array.from({ length: 70 }, (_, index) => sha256(`leaf ${index}`));

/** The root of RFC 6962 §2.1, implemented literally. */
function rootOf(of: readonly string[]): string {
  if (of.length === 1) return of[0]!;
  const split = 2 ** Math.ceil(Math.log2(of.length) - 1);
  const node = Buffer.from(`01${rootOf(of.slice(0, split))}${rootOf(of.slice(split))}`, 'hex');
  return sha256(node);
}

function proofOf(size: number, members: readonly number[], begin = 0): readonly string[] {
  const proof = new SubsetProof(extendHead(EMPTY_HEAD, leaves.slice(0, begin)));
  for (let index = begin; index < size; index += 1) proof.push(leaves[index]!, members.includes(index));
  return proof.finish();
}

function rootBy(size: number, members: readonly number[], hashes: readonly string[]): string | null {
  const root = new SubsetRoot(size, hashes);
  for (const index of members) root.take(index, leaves[index]!);
  return root.root();
}

describe('a proof of several leaves', () => {
  test('gives the root of RFC 6962, for every subset of small logs', () => {
    for (let size = 1; size <= 9; size += 1) {
      for (let mask = 0; mask < 2 ** size; mask += 1) {
        const members = leaves.flatMap((_, index) => ((mask >> index) & 1 && index < size ? [index] : []));
        expect(rootBy(size, members, proofOf(size, members))).toBe(rootOf(leaves.slice(0, size)));
      }
    }
  });

  test('gives it from any beginning before the first member', () => {
    const draw = random(7);
    for (let n = 0; n < 200; n += 1) {
      const size = 1 + Math.floor(draw() * leaves.length);
      const begin = Math.floor(draw() * size);
      const members = leaves.flatMap((_, index) => (index >= begin && index < size && draw() < 0.3 ? [index] : []));
      const hashes = proofOf(size, members, begin);
      expect(hashes).toEqual(proofOf(size, members));
      expect(rootBy(size, members, hashes)).toBe(rootOf(leaves.slice(0, size)));
    }
  });

  // The checkpoint ensures the right size: it signs size and root together.
  test('with another leaf, place or hash gives another root, or none', () => {
    const members = [3, 4, 17, 40];
    const hashes = proofOf(50, members);
    const root = rootOf(leaves.slice(0, 50));
    const tries: (string | null)[] = [
      rootBy(50, [3, 4, 17], hashes),
      rootBy(50, [3, 4, 18, 40], hashes),
      rootBy(50, [4, 3, 17, 40], hashes),
      rootBy(50, [3, 3, 4, 17, 40], hashes),
      rootBy(50, [...members, 50], hashes),
      rootBy(50, members, hashes.slice(1)),
      rootBy(50, members, [...hashes, hashes[0]!]),
      rootBy(50, members, hashes.toReversed()),
      rootBy(
        50,
        members,
        hashes.map((hash) => hash.toUpperCase()),
      ),
      rootBy(0, [], []),
      rootBy(2 ** 60, members, hashes),
    ];
    for (const found of tries) expect(found).not.toBe(root);
  });

  test('accepts no member out of place, even if its leaf is the next one', () => {
    const hashes = proofOf(8, [3, 4]);
    for (const index of [3, 2, 8, 4.5, -1, Number.NaN, 2 ** 53]) {
      const root = new SubsetRoot(8, hashes);
      expect(root.take(3, leaves[3]!)).toBe(true);
      expect(root.take(index, leaves[4]!)).toBe(false);
      expect(root.take(4, leaves[4]!)).toBe(false);
      expect(root.root()).toBeNull();
    }
    const beyond = new SubsetRoot(8, hashes);
    expect([beyond.take(3, leaves[3]!), beyond.take(4, leaves[4]!), beyond.take(8, leaves[8]!)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(beyond.root()).toBeNull();
  });

  test('has a root only with all of its hashes, and only for a valid log size', () => {
    const members = [3, 4, 17, 40];
    const hashes = proofOf(50, members);
    for (let kept = 0; kept < hashes.length; kept += 1) {
      expect(rootBy(50, members, hashes.slice(0, kept))).toBeNull();
    }
    for (const size of [0, -1, 0.5, 50.5, Number.NaN, Infinity, 2 ** 53]) {
      expect(rootBy(size, [], [])).toBeNull();
      expect(rootBy(size, [], [leaves[0]!])).toBeNull();
    }
  });
});
