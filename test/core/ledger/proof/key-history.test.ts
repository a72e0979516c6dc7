// Chains of rotations, of which each way to forge one is generated.

import { describe, expect, test } from '@jest/globals';
import { openCheckpoint, openSignedHead, signCheckpoint } from '../../../../src/core/ledger/proof/checkpoint.js';
import {
  followKeys,
  keysOf,
  readKeyHistory,
  readRotation,
  ROTATIONS_MAX,
  signRotation,
} from '../../../../src/core/ledger/proof/key-history.js';
import {
  notePrivateKey,
  noteSigner,
  noteVerifier,
  signNote,
  type NoteSigner,
} from '../../../../src/core/ledger/proof/signed-note.js';
import { editedHistories } from '../../../fixtures/edited-histories.js';

const signerOf = (seed: number, name = 'turnpike/test'): NoteSigner => {
  const signer = noteSigner(notePrivateKey(name, Buffer.alloc(32, seed)) ?? '');
  if (signer === null) throw new Error('no key');
  return signer;
};
const publicOf = (signer: NoteSigner) => noteVerifier(signer.vkey)!;
const root = (size: number): string => size.toString(16).padStart(64, '0');
const headAt = (size: number) => ({ size, root: root(size) });

const SIZES = [10, 25, 25, 70];
const SIGNERS = [1, 2, 3, 4, 5].map((seed) => signerOf(seed));
const facts = (number: number, size: number) => ({
  number,
  head: headAt(size),
  at: '2026-03-01T12:00:00.000Z',
  actor: 'otto operator',
  role: 'operator',
});

function chainOf(signers: readonly NoteSigner[], sizes = SIZES): string[] {
  const notes: string[] = [];
  for (const [index, old] of signers.slice(0, -1).entries()) {
    const next = signers[index + 1];
    if (next !== undefined)
      notes.push(signRotation(facts(index + 1, sizes[index] ?? 0), notes.at(-1) ?? null, { old, next }));
  }
  return notes;
}
const NOTES = chainOf(SIGNERS);
const problemOf = (notes: readonly string[]): string | null => {
  const read = readKeyHistory(notes);
  return typeof read === 'string' ? read : null;
};

describe('a key history', () => {
  test('gives the current key with those that it has replaced, and null without rotations', () => {
    const history = readKeyHistory(NOTES);
    if (history === null || typeof history === 'string') throw new Error(String(history));
    expect(keysOf(history.verifier).map(({ vkey }) => vkey)).toEqual(
      [SIGNERS[4], SIGNERS[0], SIGNERS[1], SIGNERS[2], SIGNERS[3]].map((signer) => signer?.vkey),
    );
    expect(history.verifier.retired?.map(({ size }) => size)).toEqual(SIZES);
    expect(history.rotations[0]).toMatchObject({ actor: 'otto operator', role: 'operator' });
    expect(readKeyHistory([])).toBeNull();
  });

  test('lets each key vouch for heads up to the one at which it was retired, and for none after it', () => {
    const history = readKeyHistory(NOTES);
    if (history === null || typeof history === 'string') throw new Error(String(history));
    for (const [index, signer] of SIGNERS.entries()) {
      const end = SIZES[index] ?? Infinity;
      for (const size of [0, 10, 25, 26, 70, 71]) {
        const note = Buffer.from(signCheckpoint(headAt(size), signer));
        expect(openCheckpoint(note, history.verifier)?.size ?? null).toBe(size <= end ? size : null);
      }
    }
    const late = openSignedHead(Buffer.from(signCheckpoint(headAt(11), SIGNERS[0]!)), history.verifier);
    expect(late).toContain('which was retired at 10');
  });

  test('is itself a checkpoint of both keys', () => {
    expect(openCheckpoint(Buffer.from(NOTES[0] ?? ''), publicOf(SIGNERS[0]!))).toMatchObject(headAt(10));
    expect(openCheckpoint(Buffer.from(NOTES[0] ?? ''), publicOf(SIGNERS[1]!))).toMatchObject(headAt(10));
  });

  const forgeries = [...editedHistories(NOTES)];
  const [k0, k1, k2] = SIGNERS as [NoteSigner, NoteSigner, NoteSigner];
  const thief = signerOf(99);
  const signed = (old: NoteSigner, next: NoteSigner, by: readonly [NoteSigner, NoteSigner], size = 10): string => {
    const text = signRotation(facts(1, size), null, { old, next }).split('\n\n')[0] ?? '';
    return signNote(`${text}\n`, by[0]) + signNote(`${text}\n`, by[1]).slice(text.length + 2);
  };
  forgeries.push(
    ['whose new key the old one has not signed', [signed(k0, thief, [thief, thief])]],
    ['whose new key has not signed', [signed(k0, k1, [k0, k0])]],
    [
      'that begins with a key of another log',
      [signRotation(facts(1, 10), null, { old: signerOf(1, 'other'), next: k1 })],
    ],
    ['that goes back to an old key', chainOf([k0, k1, k0])],
    ['that replaces a key with itself', [signRotation(facts(1, 10), null, { old: k0, next: k0 })]],
    ['with a gap in its numbers', [NOTES[0] ?? '', signRotation(facts(3, 25), NOTES[0] ?? '', { old: k1, next: k2 })]],
    ['that continues nothing', [NOTES[0] ?? '', signRotation(facts(2, 25), null, { old: k1, next: k2 })]],
    ['whose log becomes shorter', chainOf([k0, k1, k2], [20, 19])],
    ['with another branch', [NOTES[0] ?? '', signRotation(facts(2, 30), NOTES[0] ?? '', { old: thief, next: k2 })]],
    ['that is too long', Array.from({ length: ROTATIONS_MAX + 1 }, () => NOTES[0] ?? '')],
  );

  test.each(forgeries)('%s is rejected', (_, notes) => {
    expect(problemOf(notes)).not.toBeNull();
  });

  test('cut off at its end is a history of the keys before, which the key in use reveals', () => {
    for (const length of [1, 2, 3]) {
      const notes = NOTES.slice(0, length);
      expect(problemOf(notes)).toBeNull();
      const key = SIGNERS.at(-1)?.vkey ?? '';
      expect(followKeys(publicOf(k0), { key, chain: notes })).toContain('the end of the history is missing');
    }
  });
});

describe('a verifier with one key', () => {
  const key = SIGNERS.at(-1)?.vkey ?? '';

  test('follows the history from any key of it to the current one', () => {
    for (const signer of SIGNERS) {
      expect(followKeys(publicOf(signer), { key, chain: NOTES })).toMatchObject({ vkey: key });
    }
    expect(followKeys(publicOf(signerOf(99)), { key, chain: NOTES })).toContain('does not contain the key');
    expect(followKeys(publicOf(signerOf(1, 'other')), { key, chain: NOTES })).toContain('does not contain the key');
  });

  test('takes the longer one of its own history and that of the evidence, and no other branch', () => {
    const own = readKeyHistory(NOTES.slice(0, 2));
    if (own === null || typeof own === 'string') throw new Error(String(own));
    expect(followKeys(own.verifier, { key, chain: NOTES })).toMatchObject({ vkey: key });
    const whole = followKeys(publicOf(SIGNERS[0]!), { key, chain: NOTES });
    if (typeof whole === 'string') throw new Error(whole);
    expect(followKeys(whole, { key: SIGNERS[1]!.vkey, chain: NOTES.slice(0, 1) })).toBe(whole);
    const branch = chainOf([SIGNERS[0]!, signerOf(99), signerOf(98)]);
    expect(followKeys(own.verifier, { key: signerOf(98).vkey, chain: branch })).toContain('differs');
  });

  test('reads no rotation from other notes', () => {
    expect(readRotation(signCheckpoint(headAt(3), SIGNERS[0]!))).toBeNull();
    expect(readRotation('')).toBeNull();
  });
});
