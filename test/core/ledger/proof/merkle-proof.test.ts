// Proofs against vectors of other projects, and against every tree that is small enough to be enumerated.

import { describe, expect, test } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROOF_HASHES_MAX } from '../../../../src/core/contract/evidence/consistency-proof.js';
import { EMPTY_HEAD, extendHead, leafHash } from '../../../../src/core/ledger/proof/merkle.js';
import {
  consistencyRanges,
  verifyConsistency,
  inclusionRanges,
  verifyInclusion,
  rangeHashes,
} from '../../../../src/core/ledger/proof/merkle-proof.js';
import { suite } from '../../../fixtures/suites.js';

interface Vector {
  readonly wantErr: boolean;
  readonly proof: readonly string[] | null;
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly leafHash: string;
  readonly root: string;
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
}

const folder = suite('merkle');
const hex = (base64: string | null): string => Buffer.from(base64 ?? '', 'base64').toString('hex');

function vectors(kind: string): [string, Vector][] {
  const at = join(folder ?? '', 'testdata', kind);
  return readdirSync(at, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => [name, JSON.parse(readFileSync(join(at, name), 'utf8')) as Vector]);
}

(folder === null ? describe.skip : describe)('the vectors of transparency-dev/merkle', () => {
  test('98 inclusion proofs', () => {
    const all = vectors('inclusion');
    const wrong = all.filter(([, { leafIdx: index, treeSize: size, leafHash: leaf, root, proof, wantErr }]) => {
      const hashes = (proof ?? []).map(hex);
      return verifyInclusion({ index, size, leaf_hash: hex(leaf), root: hex(root), proof: hashes }) === wantErr;
    });
    expect([all.length, wrong]).toEqual([98, []]);
  });

  test('98 consistency proofs', () => {
    const all = vectors('consistency');
    const wrong = all.filter(([, { size1, size2, root1, root2, proof, wantErr }]) => {
      const [older, newer] = [
        { size: size1, root: hex(root1) },
        { size: size2, root: hex(root2) },
      ];
      return verifyConsistency({ older, newer, proof: (proof ?? []).map(hex) }) === wantErr;
    });
    expect([all.length, wrong]).toEqual([98, []]);
  });
});

const SIZES = Array.from({ length: 34 }, (_, size) => size);
const leaves = SIZES.map((index) => leafHash(`leaf ${index}`));
const heads = SIZES.map((size) => extendHead(EMPTY_HEAD, leaves.slice(0, size)));
const rootAt = (size: number): string => heads[size]!.root;

test('proves every leaf of every small log, in one pass, and at no other place or size', async () => {
  for (const size of SIZES.slice(1)) {
    for (let index = 0; index < size; index += 1) {
      const proof = await rangeHashes(inclusionRanges(index, size), leaves);
      const right = { index, size, leaf_hash: leaves[index]!, root: rootAt(size), proof };
      expect(verifyInclusion(right)).toBe(true);
      expect(verifyInclusion({ ...right, index: (index + 1) % size })).toBe(size === 1);
      expect(verifyInclusion({ ...right, root: rootAt(size - 1) })).toBe(false);
      expect(verifyInclusion({ ...right, leaf_hash: leafHash('another') })).toBe(false);
      expect(verifyInclusion({ ...right, proof: [...proof, leaves[0]!] })).toBe(false);
      if (proof.length > 0) expect(verifyInclusion({ ...right, proof: proof.slice(1) })).toBe(false);
    }
  }
});

test('proves that every small log extends every smaller one, and no other', async () => {
  for (const newer of SIZES) {
    for (let older = 0; older <= newer; older += 1) {
      const proof = await rangeHashes(consistencyRanges(older, newer), leaves);
      const right = { older: { size: older, root: rootAt(older) }, newer: { size: newer, root: rootAt(newer) }, proof };
      expect([older, newer, verifyConsistency(right)]).toEqual([older, newer, true]);
      const forked = { ...right, older: { size: older, root: leafHash('fork') } };
      expect(verifyConsistency(forked)).toBe(false);
      expect(verifyConsistency({ ...right, proof: [...proof, leaves[0]!] })).toBe(false);
      if (proof.length > 0) expect(verifyConsistency({ ...right, proof: proof.slice(0, -1) })).toBe(false);
      if (older < newer && older > 0)
        expect(verifyConsistency({ ...right, older: right.newer, newer: right.older })).toBe(false);
    }
  }
});

test('accepts sizes beyond 32 bits, and rejects malformed sizes and hashes', () => {
  const far = 2 ** 50;
  expect(inclusionRanges(far - 1, far)).toHaveLength(50);
  expect(consistencyRanges(2 ** 33 + 1, far).length).toBeLessThan(PROOF_HASHES_MAX);
  expect(() => inclusionRanges(3, 3)).toThrow('no leaf 3');
  expect(() => consistencyRanges(4, 3)).toThrow('does not extend');
  const [leaf] = leaves;
  for (const size of [-1, 0, 1.5, Number.NaN, Infinity]) {
    expect(verifyInclusion({ index: 0, size, leaf_hash: leaf!, root: leaf!, proof: [] })).toBe(false);
  }
  expect(verifyInclusion({ index: 0, size: 1, leaf_hash: 'x', root: 'x', proof: [] })).toBe(false);
  const long = Array.from({ length: PROOF_HASHES_MAX + 1 }, () => leaf!);
  expect(verifyInclusion({ index: 0, size: 2 ** 53 - 1, leaf_hash: leaf!, root: leaf!, proof: long })).toBe(false);
});

test('reports a log that is shorter than its proof needs', async () => {
  await expect(rangeHashes(inclusionRanges(0, 9), leaves.slice(0, 8))).rejects.toThrow('the log ends at 8');
});

describe('the leaves of a log whose beginning is archived', () => {
  test('prove every available leaf, and that the log extends every head since then', async () => {
    const small = heads.slice(0, 18);
    for (const begin of small) {
      for (const newer of small.slice(begin.size)) {
        const rest = leaves.slice(begin.size, newer.size);
        for (let index = begin.size; index < newer.size; index += 1) {
          const proof = await rangeHashes(inclusionRanges(index, newer.size), rest, begin);
          expect(proof).toEqual(await rangeHashes(inclusionRanges(index, newer.size), leaves));
        }
        for (const older of heads.slice(begin.size, newer.size + 1)) {
          const proof = await rangeHashes(consistencyRanges(older.size, newer.size), rest, begin);
          expect([begin.size, older.size, newer.size, verifyConsistency({ older, newer, proof })]).toEqual([
            ...[begin.size, older.size, newer.size],
            true,
          ]);
        }
      }
    }
  });

  test('prove nothing about missing leaves', async () => {
    const [begin, newer] = [heads[13]!, heads[20]!];
    const rest = leaves.slice(13, 20);
    await expect(rangeHashes(inclusionRanges(3, newer.size), rest, begin)).rejects.toThrow('not available');
    await expect(rangeHashes(consistencyRanges(5, newer.size), rest, begin)).rejects.toThrow('not available');
  });
});
