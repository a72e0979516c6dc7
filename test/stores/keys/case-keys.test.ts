import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { CaseKeys, caseCipher } from '../../../src/stores/keys/case-keys.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { notePrivateKey, noteSigner } from '../../../src/core/ledger/proof/signed-note.js';
import { createErasureSeal } from '../../../src/home/ledger-key.js';
import { ledgerFolder, thrownBy, type LedgerFolder } from '../sqlite/sqlite-harness.js';

const TEXT = Buffer.from('what somebody has said');
const HASH = Buffer.from(sha256(TEXT), 'hex');
const ERASURE = { at: '2026-01-01T00:00:00.000Z', by: 'a person' };
const tampered = expect.objectContaining({ code: 'LEDGER_TAMPERED' });

describe('the cipher of a case', () => {
  const [one, other] = [caseCipher(Buffer.alloc(32, 1)), caseCipher(Buffer.alloc(32, 2))];

  test.each([0, 1, 15, 16, 17, 4_096, 1_000_000])('%i bytes come back, and only with the same key', (size) => {
    const content = Buffer.alloc(size, 'content');
    const hash = Buffer.from(sha256(content), 'hex');
    const sealed = one.seal(content, hash);
    expect(sealed).toHaveLength(size + 16);
    expect(one.open(sealed, hash)).toEqual(content);
    expect(other.open(sealed, hash)).toBeNull();
    expect(one.open(sealed, HASH)).toBeNull();
  });

  test('no byte can be changed, removed or added', () => {
    const sealed = one.seal(TEXT, HASH);
    for (const at of sealed.keys()) {
      const changed = Buffer.from(sealed);
      changed[at]! ^= 1;
      expect(one.open(changed, HASH)).toBeNull();
    }
    for (const end of [0, 15, sealed.length - 1]) expect(one.open(sealed.subarray(0, end), HASH)).toBeNull();
    expect(one.open(Buffer.concat([sealed, Buffer.alloc(1)]), HASH)).toBeNull();
  });

  test('different content is sealed with a different nonce: two ciphertexts reveal nothing about the contents', () => {
    const [zeros, ones] = [Buffer.alloc(64), Buffer.alloc(64, 1)];
    const [a, b] = [zeros, ones].map((content) => one.seal(content, Buffer.from(sha256(content), 'hex')));
    const xor = a!.subarray(0, 64).map((byte, at) => byte ^ b![at]!);
    expect(new Set(xor).size).toBeGreaterThan(8);
  });
});

describe('the keys of cases', () => {
  const signer = noteSigner(notePrivateKey('test/log', Buffer.alloc(32, 7))!)!;
  let at: LedgerFolder;
  let folder: string;
  beforeEach(() => {
    at = ledgerFolder();
    folder = join(at.artifactsDir, 'keys');
  });
  afterEach(() => at.remove());
  const open = (seal: ReturnType<typeof createErasureSeal> = createErasureSeal(signer)): CaseKeys =>
    new CaseKeys(folder, () => seal);

  test('a key is created once, only its owner can read it, and it is found again', () => {
    const { no, cipher } = open().currentKey('case-1');
    expect(no).toBe(1);
    expect([statSync(folder).mode & 0o777, statSync(join(folder, 'case-1.1.key')).mode & 0o777]).toEqual([
      0o700, 0o600,
    ]);
    const sealed = cipher.seal(TEXT, HASH);
    const again = open().get('case-1', 1);
    expect('open' in again && again.open(sealed, HASH)).toEqual(TEXT);
    const second = open().currentKey('case-2').cipher;
    expect(second.open(sealed, HASH)).toBeNull();
  });

  test('D14: a destroyed key leaves only a signed note; the case continues with another key', () => {
    const keys = open();
    const { cipher } = keys.currentKey('case-1');
    const line = readFileSync(join(folder, 'case-1.1.key'), 'utf8');
    const sealed = cipher.seal(TEXT, HASH);
    expect(keys.destroy('case-1', 12, ERASURE)).toBe(1);
    expect(readdirSync(folder)).toEqual(['case-1.1.erased', 'erasures.list', 'erasures.list.lock']);
    expect(readFileSync(join(folder, 'case-1.1.erased'), 'utf8')).not.toContain(line.split(' ')[1]!.trim());
    for (const reader of [keys, open()]) {
      expect(reader.get('case-1', 1)).toEqual({ erased_below: 12 });
      expect(reader.lastErased('case-1')).toBe(1);
    }
    const next = keys.currentKey('case-1');
    expect(next.no).toBe(2);
    expect(next.cipher.open(sealed, HASH)).toBeNull();
    expect(keys.destroy('case-1', 20, ERASURE)).toBe(2);
    expect(open().get('case-1', 2)).toEqual({ erased_below: 20 });
  });

  test('a reader with a cached key cannot use it after another process has destroyed it', () => {
    const writer = open();
    writer.currentKey('case-1');
    const reader = open();
    expect(reader.get('case-1', 1)).toHaveProperty('open');
    writer.destroy('case-1', 3, ERASURE);
    expect(reader.get('case-1', 1)).toEqual({ erased_below: 3 });
  });

  test('a key that is missing without a note, damaged, or readable by others does not count as erased', () => {
    open().currentKey('case-1');
    const path = join(folder, 'case-1.1.key');
    const key = readFileSync(path);
    for (const bytes of ['', 'rubbish\n', key.subarray(0, -2), Buffer.alloc(key.length), Buffer.alloc(100_000)]) {
      writeFileSync(path, bytes);
      expect(thrownBy(() => open().get('case-1', 1))).toEqual(tampered);
    }
    rmSync(path);
    expect(thrownBy(() => open().get('case-1', 1))).toEqual(tampered);
    writeFileSync(path, key, { mode: 0o644 });
    expect(thrownBy(() => open().get('case-1', 1))).toEqual(tampered);
  });

  test('only the ledger key can sign that a case was erased', () => {
    const keys = open();
    keys.currentKey('case-1');
    const stranger = noteSigner(notePrivateKey('test/log', Buffer.alloc(32, 8))!)!;
    const plain = 'turnpike erasure\ncase-1\n1\n99\n2026\nme\n';
    const other = createErasureSeal(signer)!.seal('turnpike erasure\ncase-2\n1\n99\n2026\nme\n');
    for (const note of [
      plain,
      createErasureSeal(stranger)!.seal(plain),
      other,
      '',
      `${createErasureSeal(signer)!.seal(plain)}x`,
    ]) {
      writeFileSync(join(folder, 'case-1.1.erased'), note, { mode: 0o600 });
      expect(thrownBy(() => open().get('case-1', 1))).toEqual(tampered);
      expect(thrownBy(() => open().currentKey('case-1'))).toEqual(tampered);
    }
    writeFileSync(join(folder, 'case-1.1.erased'), createErasureSeal(signer)!.seal(plain), { mode: 0o600 });
    expect(open().get('case-1', 1)).toEqual({ erased_below: 99 });
  });

  test('an erasure that was interrupted after its note is finished by the next writer', () => {
    const keys = open();
    keys.currentKey('case-1');
    keys.currentKey('case-10');
    const key = readFileSync(join(folder, 'case-1.1.key'));
    keys.destroy('case-1', 5, ERASURE);
    writeFileSync(join(folder, 'case-1.1.key'), key, { mode: 0o600 });
    expect(open().get('case-1', 1)).toEqual({ erased_below: 5 });
    open().finishErasures();
    expect(existsSync(join(folder, 'case-1.1.key'))).toBe(false);
    expect(existsSync(join(folder, 'case-10.1.key'))).toBe(true);
    rmSync(folder, { recursive: true });
    open().finishErasures();
  });

  test('an unsigned note removes no key: after its removal nothing is lost', () => {
    open().currentKey('case-1');
    const note = join(folder, 'case-1.1.erased');
    writeFileSync(note, 'turnpike erasure\ncase-1\n1\n99\n2026\nme\n', { mode: 0o600 });
    writeFileSync(join(folder, '...1.erased'), 'x');
    open().finishErasures();
    expect(existsSync(join(folder, 'case-1.1.key'))).toBe(true);
    rmSync(note);
    expect(open().get('case-1', 1)).toHaveProperty('open');
  });

  test('after an erasure that fails after its note, no content is encrypted with the erased key', () => {
    const keys = open();
    keys.currentKey('case-1');
    rmSync(join(folder, 'case-1.1.key'));
    // This cannot be overwritten.
    mkdirSync(join(folder, 'case-1.1.key'));
    expect(thrownBy(() => keys.destroy('case-1', 3, ERASURE))).toMatchObject({ code: 'EISDIR' });
    expect(keys.get('case-1', 1)).toEqual({ erased_below: 3 });
    expect(keys.currentKey('case-1').no).toBe(2);
  });

  test('a case id from a tampered database leads to no other path', () => {
    mkdirSync(folder, { recursive: true });
    for (const id of ['../x', '..', '.', 'a/b', '', '_system']) {
      expect(thrownBy(() => open().get(id, 1))).toEqual(tampered);
    }
  });
});
