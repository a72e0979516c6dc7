// Ed25519 (RFC 8032) with raw keys and signatures, as in signed notes.

import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';

export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/** The DER prefix of a raw public key. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** 2^255 - 19 */
const FIELD = 2n ** 255n - 19n;
/** The y coordinates of the eight points of small order, little-endian, with either sign. */
const SMALL_ORDER: ReadonlySet<bigint> = new Set(
  [
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000000',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  ].map((hex) => fromLittleEndian(Buffer.from(hex, 'hex'))),
);

/**
 * Parses a public key. A key of small order is rejected, because one signature by it is valid for many texts. A key in
 * non-canonical form is rejected, because it would have two names.
 * @returns null if the key is malformed or rejected
 */
export function publicKey(raw: Uint8Array): KeyObject | null {
  if (raw.length !== KEY_BYTES) return null;
  const y = fromLittleEndian(raw) & (2n ** 255n - 1n);
  if (y >= FIELD || SMALL_ORDER.has(y)) return null;
  try {
    return createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' });
  } catch {
    return null;
  }
}

/** Derives the private key from a seed of 32 bytes, and its public half. */
export function keyPair(seed: Uint8Array): { readonly privateKey: KeyObject; readonly raw: Uint8Array } {
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
  const der = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, raw: der.subarray(SPKI.length) };
}

export const signMessage = (message: Uint8Array, key: KeyObject): Uint8Array => sign(null, message, key);

/** Whether the owner of `key` has signed `message`. Never throws. */
export const isSigned = (message: Uint8Array, signature: Uint8Array, key: KeyObject): boolean =>
  signature.length === SIGNATURE_BYTES && verify(null, message, key, signature);

function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
