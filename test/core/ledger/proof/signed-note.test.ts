// Notes, keys and checkpoints against vectors of other projects (C2SP, golang.org/x/mod, transparency-dev, Wycheproof).

import { beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  checkpointText,
  openCheckpoint,
  readCheckpoint,
  signCheckpoint,
} from '../../../../src/core/ledger/proof/checkpoint.js';
import { isSigned, publicKey } from '../../../../src/core/ledger/proof/ed25519.js';
import { EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import { sha256 } from '../../../../src/core/contract/hash.js';
import {
  notePrivateKey,
  noteSigner,
  noteVerifier,
  openNote,
  signNote,
  type NoteVerifier,
} from '../../../../src/core/ledger/proof/signed-note.js';
import { suite } from '../../../fixtures/suites.js';

const folder = suite('signed-note');

interface Vectors {
  readonly skey: string;
  readonly vkey: string;
  readonly bad_vkeys: readonly string[];
  readonly notes: readonly { name: string; note_b64: string; vkeys: readonly string[]; want: string }[];
  readonly checkpoints: readonly { text: string; ok: boolean }[];
  readonly rfc6962: { readonly leaf_inputs_hex: readonly string[]; readonly roots_hex: readonly string[] };
}

(folder === null ? describe.skip : describe)('the vectors of signed notes', () => {
  let vectors: Vectors;
  beforeAll(() => {
    vectors = JSON.parse(readFileSync(join(folder ?? '', 'vectors.json'), 'utf8')) as Vectors;
  });
  const known = (vkeys: readonly string[]): NoteVerifier[] => vkeys.map((vkey) => noteVerifier(vkey)!);

  test('16 notes', () => {
    const seen = vectors.notes.map(({ name, note_b64, vkeys, want }) => {
      const opened = openNote(Buffer.from(note_b64, 'base64'), known(vkeys));
      return [name, opened === null ? 'refuse' : `ok:${opened.verifiers.length}`, want];
    });
    expect(seen).toHaveLength(16);
    for (const [name, got, want] of seen) expect([name, got]).toEqual([name, want]);
  });

  test('a key is rejected without any of its parts, and with any byte of it one higher', () => {
    const { vkey } = vectors;
    expect(noteVerifier(vkey)).not.toBeNull();
    const parts: string[] = [...vectors.bad_vkeys];
    for (let start = 0; start < vkey.length; start += 1) {
      for (let end = start; end <= vkey.length; end += 1)
        if (end - start < vkey.length) parts.push(vkey.slice(start, end));
    }
    for (let at = 0; at < vkey.length; at += 1) {
      parts.push(vkey.slice(0, at) + String.fromCharCode(vkey.charCodeAt(at) + 1) + vkey.slice(at + 1));
    }
    expect(parts.length).toBeGreaterThan(2_276);
    expect(parts.filter((part) => noteVerifier(part) !== null)).toEqual([]);
  });

  test('a 17th: the public key verifies what its private key signs', () => {
    const signer = noteSigner(vectors.skey)!;
    expect(signer.vkey).toBe(vectors.vkey);
    const note = signNote('If you think cryptography is the answer to your problem.\n', signer);
    expect(openNote(Buffer.from(note), [signer])?.verifiers).toEqual([signer]);
    expect(noteSigner(vectors.vkey)).toBeNull();
    expect(noteSigner(vectors.skey.slice(0, -4))).toBeNull();
  });

  test('10 checkpoints', () => {
    const wrong = vectors.checkpoints.filter(({ text, ok }) => (readCheckpoint(text, null) !== null) !== ok);
    expect([vectors.checkpoints.length, wrong]).toEqual([10, []]);
  });

  test('9 roots of trees', () => {
    const { leaf_inputs_hex, roots_hex } = vectors.rfc6962;
    const leaves = leaf_inputs_hex.map((hex) => sha256(Buffer.from(`00${hex}`, 'hex')));
    expect(roots_hex.map((_, size) => extendHead(EMPTY_HEAD, leaves.slice(0, size)).root)).toEqual(roots_hex);
    expect(roots_hex).toHaveLength(9);
  });
});

const ed25519 = suite('wycheproof-ed25519');

(ed25519 === null ? test.skip : test)('151 signatures of Wycheproof', () => {
  const file = join(ed25519 ?? '', 'testvectors_v1/ed25519_test.json');
  const { testGroups } = JSON.parse(readFileSync(file, 'utf8')) as {
    testGroups: { publicKey: { pk: string }; tests: { tcId: number; msg: string; sig: string; result: string }[] }[];
  };
  const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
  const all = testGroups.flatMap(({ publicKey: { pk }, tests }) => tests.map((one) => ({ ...one, pk })));
  const wrong = all.filter(({ pk, msg, sig, result }) => {
    const key = publicKey(bytes(pk));
    return (key !== null && isSigned(bytes(msg), bytes(sig), key)) !== (result === 'valid');
  });
  expect([all.length, wrong.map(({ tcId }) => tcId)]).toEqual([151, []]);
});

describe('an unsafe key is rejected', () => {
  /** The eight points of small order, in every encoding of 32 bytes. */
  const SMALL = [
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0000000000000000000000000000000000000000000000000000000000000080',
    '0100000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000080',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  ];

  test.each(SMALL)('%s', (hex) => expect(publicKey(Buffer.from(hex, 'hex'))).toBeNull());

  test('and one of another length', () => {
    for (const length of [0, 31, 33]) expect(publicKey(Buffer.alloc(length, 9))).toBeNull();
  });
});

describe('a checkpoint', () => {
  const signer = noteSigner(notePrivateKey('example.org/log', Buffer.alloc(32, 7))!)!;
  const head = { size: 7, root: sha256('root') };
  const note = signCheckpoint(head, signer);

  test('is read as it was signed', () => {
    expect(openCheckpoint(Buffer.from(note), noteVerifier(signer.vkey)!)).toEqual({
      origin: 'example.org/log',
      ...head,
    });
    expect(note).toBe(
      `example.org/log\n7\n${Buffer.from(head.root, 'hex').toString('base64')}\n\n— example.org/log ${note.split(' ')[2]}`,
    );
  });

  test('is invalid with any byte changed', () => {
    const bytes = Buffer.from(note);
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(openCheckpoint(changed, signer)).toBeNull();
    }
    expect(openCheckpoint(bytes.subarray(0, -1), signer)).toBeNull();
    expect(openCheckpoint(Buffer.concat([bytes, bytes]), signer)).toBeNull();
  });

  test('of another log, by another key of the same name, or under another name is rejected', () => {
    const other = noteSigner(notePrivateKey('example.org/log', Buffer.alloc(32, 8))!)!;
    const renamed = noteSigner(notePrivateKey('example.org/other', Buffer.alloc(32, 7))!)!;
    expect(openCheckpoint(Buffer.from(signCheckpoint(head, other)), signer)).toBeNull();
    expect(openCheckpoint(Buffer.from(signCheckpoint(head, renamed)), signer)).toBeNull();
    const foreign = signNote(checkpointText({ origin: 'example.org/other', ...head }), signer);
    expect(openCheckpoint(Buffer.from(foreign), signer)).toBeNull();
  });

  test('names with spaces or plus signs cannot sign', () => {
    for (const name of ['', 'a b', 'a+b', 'a\nb', 'x'.repeat(256)])
      expect(notePrivateKey(name, Buffer.alloc(32, 7))).toBeNull();
  });
});
