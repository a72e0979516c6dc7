// The key pair of the overlay on a real disk: how it is created, and which keys are refused.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { openSigningKey, readVerifyingKey } from '../../../src/stores/keys/signing-key.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { diskFolder } from '../../fixtures/temp-folder.js';

let folder: string;
let privateKeyPath: string;
let publicKeyPath: string;
beforeEach(() => {
  folder = diskFolder('key');
  privateKeyPath = join(folder, 'overlay.key');
  publicKeyPath = join(folder, 'overlay.pub');
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (make = false) => openSigningKey({ privateKeyPath, publicKeyPath, make });
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const UNREADABLE = expect.objectContaining({ code: 'POLICY_UNREADABLE' });
const INVALID = expect.objectContaining({ code: 'POLICY_INVALID' });

describe('creating a key', () => {
  test('only the owner can read the private key, everybody the public one; no other file is left', () => {
    open(true);
    expect(modeOf(privateKeyPath)).toBe('600');
    expect(modeOf(publicKeyPath)).toBe('644');
    expect(readFileSync(privateKeyPath, 'latin1')).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    expect(readFileSync(publicKeyPath, 'latin1')).toMatch(/^-----BEGIN PUBLIC KEY-----\n/);
    expect(readdirSync(folder).sort()).toEqual(['overlay.key', 'overlay.pub']);
  });

  test('it is created only on request, and only once', () => {
    expect(() => open()).toThrow(UNREADABLE);
    expect(readdirSync(folder)).toEqual([]);
    const { key_id } = open(true);
    expect(open(true).key_id).toBe(key_id);
    expect(open().key_id).toBe(key_id);
  });

  test('two generated keys differ', () => {
    const { key_id } = open(true);
    rmSync(privateKeyPath);
    expect(open(true).key_id).not.toBe(key_id);
  });

  test('a missing public key is derived from the private one', () => {
    const { key_id } = open(true);
    rmSync(publicKeyPath);
    expect(open().key_id).toBe(key_id);
    expect(readVerifyingKey(publicKeyPath).key_id).toBe(key_id);
  });

  test('the public key of another pair is replaced only on request', () => {
    const { publicKey } = generateKeyPairSync('ed25519');
    open(true);
    writeFileSync(publicKeyPath, publicKey.export({ format: 'pem', type: 'spki' }));
    const there = readFileSync(publicKeyPath);
    expect(() => open()).toThrow(INVALID);
    expect(readFileSync(publicKeyPath)).toEqual(there);
    expect(readVerifyingKey(publicKeyPath).key_id).not.toBe(open(true).key_id);
    expect(readVerifyingKey(publicKeyPath).key_id).toBe(open().key_id);
  });
});

describe('signing', () => {
  test('the signature is Ed25519, as Node and OpenSSL verify it; the id is the hash of the SPKI DER', () => {
    const key = open(true);
    const signature = key.sign('a text ü');
    const spki = createPublicKey(readFileSync(publicKeyPath, 'latin1'));
    expect(verify(null, Buffer.from('a text ü'), spki, Buffer.from(signature, 'base64'))).toBe(true);
    const der = execFileSync('openssl', ['pkey', '-pubin', '-in', publicKeyPath, '-outform', 'DER']);
    expect(key.key_id).toBe(sha256(der).slice(0, 16));
    expect(readVerifyingKey(publicKeyPath).verify('a text ü', signature)).toBe(true);
    expect(key.verify('a text ü', signature)).toBe(true);
  });

  test('no other text, no other key and no other form of the signature is accepted', () => {
    const key = open(true);
    const signature = key.sign('a text');
    const bytes = Buffer.from(signature, 'base64');
    expect(key.verify('a text ', signature)).toBe(false);
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(key.verify('a text', flipped.toString('base64'))).toBe(false);
    }
    // The same 64 bytes in other spellings: unused bits, no padding, white space, the other alphabet.
    const spare = signature.replace(/(.)==$/, (_all, digit: string) => {
      const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
      return `${digits[digits.indexOf(digit) + 1]!}==`;
    });
    expect(Buffer.from(spare, 'base64')).toEqual(bytes);
    for (const other of [spare, signature.slice(0, -2), `${signature}\n`, bytes.toString('hex'), '']) {
      expect(key.verify('a text', other)).toBe(false);
    }
    rmSync(privateKeyPath);
    expect(open(true).verify('a text', signature)).toBe(false);
  });
});

describe('refused files', () => {
  beforeEach(() => void open(true));

  test.each(['640', '604', '620', '666'])('a private key with mode %s', (mode) => {
    chmodSync(privateKeyPath, mode);
    expect(() => open()).toThrow(UNREADABLE);
  });

  test.each(['664', '646'])('a public key that others may write to, with mode %s', (mode) => {
    chmodSync(publicKeyPath, mode);
    expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
    expect(() => open()).toThrow(UNREADABLE);
  });

  test.each(['overlay.key', 'overlay.pub'])('%s as a symbolic link', (name) => {
    renameSync(join(folder, name), join(folder, 'elsewhere'));
    symlinkSync('elsewhere', join(folder, name));
    expect(() => open()).toThrow(UNREADABLE);
    if (name === 'overlay.pub') expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
  });

  test('a FIFO, without waiting for it, and a folder', () => {
    rmSync(publicKeyPath);
    execFileSync('mkfifo', [publicKeyPath]);
    expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
    rmSync(publicKeyPath);
    mkdirSync(publicKeyPath);
    expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
  });

  test('a file without a key, with another kind of key, or too large', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1_024 });
    const x25519 = generateKeyPairSync('x25519');
    const others = [rsa, x25519].map(({ publicKey }) => publicKey.export({ format: 'pem', type: 'spki' }).toString());
    for (const text of ['', 'junk', ...others]) {
      writeFileSync(publicKeyPath, text);
      expect(() => readVerifyingKey(publicKeyPath)).toThrow(INVALID);
    }
    writeFileSync(publicKeyPath, 'x'.repeat(4_097));
    expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
    rmSync(publicKeyPath);
    expect(() => readVerifyingKey(publicKeyPath)).toThrow(UNREADABLE);
  });

  test('a damaged private key is not replaced, and the error message does not quote it', () => {
    const damaged = readFileSync(privateKeyPath, 'latin1').replace('MC4', 'MC5');
    writeFileSync(privateKeyPath, damaged);
    expect(() => open(true)).toThrow(INVALID);
    expect(readFileSync(privateKeyPath, 'latin1')).toBe(damaged);
    const [, secret = ''] = damaged.split('\n');
    try {
      open(true);
    } catch (error) {
      expect(JSON.stringify([String(error), (error as Error).cause])).not.toContain(secret.slice(8, 24));
    }
  });
});
