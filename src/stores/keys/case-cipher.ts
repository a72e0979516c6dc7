// Encrypts the stored content of a case: AES-256-GCM, with the hash of the content as associated data.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

export const CASE_KEY_BYTES = 32;
/** Length of the authentication tag: sealed content is longer than the content by this number of bytes. */
export const SEAL_BYTES = 16;

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;

/** Encrypts and decrypts content with one key. */
export interface CaseCipher {
  /** @param hash SHA-256 of the content */
  seal(content: Uint8Array, hash: Uint8Array): Buffer;
  /** @returns null if the bytes were not sealed with this key for this hash */
  open(sealed: Uint8Array, hash: Uint8Array): Buffer | null;
  /** Encrypts the one key that this key replaces. @param name its case and number */
  wrap(replaced: Uint8Array, name: string): Buffer;
  /** @returns null if the bytes were not wrapped with this key under this name */
  unwrap(wrapped: Uint8Array, name: string): Buffer | null;
}

/**
 * Creates the cipher of a case key. The nonce is derived from the hash of the content with a separate key. So equal
 * content gives equal bytes, different content gets another nonce, and an agent cannot choose two contents that share a
 * nonce.
 */
export function caseCipher(key: Uint8Array): CaseCipher {
  const contentKey = deriveKey(key, 'turnpike content');
  const nonceKey = deriveKey(key, 'turnpike nonce');
  const nonceOf = (hash: Uint8Array): Buffer =>
    createHmac('sha256', nonceKey).update(hash).digest().subarray(0, NONCE_BYTES);
  // A key of its own: an agent chooses contents, and no content may share key and nonce with a wrapped key.
  const wrapKey = (): Buffer => deriveKey(key, 'turnpike replaced key');
  return {
    seal: (content, hash) => encrypt({ key: contentKey, nonce: nonceOf(hash), about: hash }, content),
    open: (sealed, hash) => decrypt({ key: contentKey, nonce: nonceOf(hash), about: hash }, sealed),
    wrap: (replaced, name) => {
      const nonce = randomBytes(NONCE_BYTES);
      return Buffer.concat([nonce, encrypt({ key: wrapKey(), nonce, about: Buffer.from(name) }, replaced)]);
    },
    unwrap: (wrapped, name) => {
      const [nonce, sealed] = [wrapped.subarray(0, NONCE_BYTES), wrapped.subarray(NONCE_BYTES)];
      return decrypt({ key: wrapKey(), nonce: Buffer.from(nonce), about: Buffer.from(name) }, sealed);
    },
  };
}

interface CipherParts {
  readonly key: Buffer;
  readonly nonce: Buffer;
  /** The associated data. */
  readonly about: Uint8Array;
}

function encrypt({ key, nonce, about }: CipherParts, content: Uint8Array): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(about);
  return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]);
}

function decrypt({ key, nonce, about }: CipherParts, sealed: Uint8Array): Buffer | null {
  const end = sealed.byteLength - SEAL_BYTES;
  if (end < 0 || nonce.byteLength !== NONCE_BYTES) return null;
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: SEAL_BYTES });
  decipher.setAAD(about).setAuthTag(sealed.subarray(end));
  const content = decipher.update(sealed.subarray(0, end));
  try {
    decipher.final();
  } catch {
    return null;
  }
  return content;
}

const deriveKey = (key: Uint8Array, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', purpose, CASE_KEY_BYTES));
