// The Merkle tree against the vectors of other projects, and against the definition in RFC 6962 §2.1, which is
// implemented here literally.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  appendLeaf,
  EMPTY_HEAD,
  extendHead,
  findFirstDifference,
  leafHash,
  nodeHash,
  rootOf,
} from '../../../../src/core/ledger/proof/merkle.js';
import { suite } from '../../../fixtures/suites.js';

const sha256 = (...parts: readonly Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();

/** MTH(D[n]) of RFC 6962: splits at the largest power of two below n. */
function treeHash(leaves: readonly string[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), Buffer.from(leaves[0]!));
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256(Buffer.of(1), treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)));
}

const hex = (base64: string): string => Buffer.from(base64, 'base64').toString('hex');

function rootsOf(texts: readonly string[]): readonly string[] {
  let frontier: readonly string[] = [];
  return [
    rootOf(frontier),
    ...texts.map((text, size) => {
      frontier = appendLeaf(frontier, size, leafHash(text));
      return rootOf(frontier);
    }),
  ];
}

const signedNote = suite('signed-note');
const merkle = suite('merkle');
const VECTORS =
  signedNote === null
    ? null
    : (JSON.parse(readFileSync(`${signedNote}/vectors.json`, 'utf8')) as {
        rfc6962: { leaf_inputs_hex: string[]; roots_hex: string[] };
      });
const vectorTexts = VECTORS?.rfc6962.leaf_inputs_hex.map((input) => Buffer.from(input, 'hex').toString('latin1')) ?? [];

describe('RFC 6962', () => {
  test('D15: gives the nine roots of the reference log', () => {
    if (VECTORS === null) return;
    expect(rootsOf(vectorTexts)).toEqual(VECTORS.rfc6962.roots_hex);
  });

  test('D15: gives every root and leaf hash in the happy proofs of transparency-dev', () => {
    if (VECTORS === null || merkle === null) return;
    const roots = rootsOf(vectorTexts);
    let compared = 0;
    for (const kind of ['inclusion', 'consistency']) {
      for (const folder of readdirSync(`${merkle}/testdata/${kind}`).filter((name) => /^\d+$/.test(name))) {
        const text = readFileSync(`${merkle}/testdata/${kind}/${folder}/happy-path.json`, 'utf8');
        const proof = JSON.parse(text) as Record<string, string> &
          Record<'leafIdx' | 'treeSize' | 'size1' | 'size2', number>;
        if (kind === 'inclusion') {
          expect(hex(proof['root']!)).toBe(roots[proof.treeSize]);
          expect(hex(proof['leafHash']!)).toBe(leafHash(vectorTexts[proof.leafIdx]!));
        } else {
          expect([hex(proof['root1']!), hex(proof['root2']!)]).toEqual([roots[proof.size1], roots[proof.size2]]);
        }
        compared += 1;
      }
    }
    expect(compared).toBe(10);
  });

  test('the root of a log of any size equals that of the definition', () => {
    const texts = Array.from({ length: 300 }, (_, i) => `entry ${i} – ü`);
    const roots = rootsOf(texts);
    for (const size of [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300]) {
      expect(roots[size]).toBe(treeHash(texts.slice(0, size)).toString('hex'));
    }
  });

  test('a leaf cannot pass for a node: the hashes differ in their first byte', () => {
    const [left, right] = [leafHash('left'), leafHash('right')];
    const forged = Buffer.concat([Buffer.from(left, 'hex'), Buffer.from(right, 'hex')]).toString('latin1');
    expect(leafHash(forged)).not.toBe(nodeHash(left, right));
    expect(nodeHash(left, right)).toBe(
      sha256(Buffer.of(1), Buffer.from(left, 'hex'), Buffer.from(right, 'hex')).toString('hex'),
    );
  });
});

describe('the compact range', () => {
  test('does not depend on the batches of the leaves', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.string(), { maxLength: 9 }), { maxLength: 12 }), (batches) => {
        const hashes = batches.map((texts) => texts.map(leafHash));
        const oneByOne = extendHead(EMPTY_HEAD, hashes.flat());
        expect(hashes.reduce(extendHead, EMPTY_HEAD)).toEqual(oneByOne);
        expect(oneByOne.root).toBe(treeHash(batches.flat()).toString('hex'));
      }),
    );
  });

  test('has one hash for each one bit of the size, also above 2^32', () => {
    const leaf = leafHash('');
    expect(extendHead(EMPTY_HEAD, Array<string>(7).fill(leaf)).frontier).toHaveLength(3);
    const full = appendLeaf(Array<string>(33).fill(leaf), 2 ** 33 - 1, leaf);
    expect(full).toHaveLength(1);
    expect(appendLeaf([leaf, leaf, leaf], 2 ** 40 + 2 ** 33 + 1, leaf)).toEqual([leaf, leaf, nodeHash(leaf, leaf)]);
  });

  test('finds the first subtree in which another log of its size differs', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 70 }), fc.nat(), (size, pick) => {
        const leaves = Array.from({ length: size }, (_, place) => leafHash(String(place)));
        const head = extendHead(EMPTY_HEAD, leaves);
        expect(findFirstDifference(head.frontier, head)).toBeNull();
        const changed = pick % size;
        const other = extendHead(EMPTY_HEAD, leaves.with(changed, leafHash('other')));
        const [first = NaN, last = NaN] = findFirstDifference(other.frontier, head) ?? [];
        expect(first).toBeLessThanOrEqual(changed);
        expect(last).toBeGreaterThanOrEqual(changed);
        // A perfect subtree: a power of two of leaves, from a multiple of it.
        expect(Number.isInteger(Math.log2(last - first + 1)) && first % (last - first + 1) === 0).toBe(true);
      }),
    );
  });

  test('does not change its input', () => {
    const head = Object.freeze({ ...extendHead(EMPTY_HEAD, [leafHash('a')]) });
    const before = JSON.stringify(head);
    extendHead(head, [leafHash('b'), leafHash('c')]);
    appendLeaf(head.frontier, 1, leafHash('d'));
    expect(JSON.stringify(head)).toBe(before);
  });

  test.each([
    { what: 'a hash that is cut short', left: 'ab'.repeat(31), right: 'cd'.repeat(32) },
    { what: 'a hash that is too long', left: 'ab'.repeat(32), right: 'cd'.repeat(33) },
    { what: 'a hash that is not hex', left: 'ab'.repeat(32), right: `${'cd'.repeat(31)}zz` },
  ])('$what is a bug, never a node', ({ left, right }) => {
    expect(() => nodeHash(left, right)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
    expect(() => nodeHash(right, left)).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });

  test('a range that is too short for its size is a bug', () => {
    expect(() => appendLeaf([], 1, leafHash(''))).toThrow(expect.objectContaining({ code: 'INVARIANT' }));
  });
});
