// Encrypts the stored content of a case: AES-256-GCM, with the hash of the content as associated data.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';

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
  return {
    seal: (content, hash) => {
      const cipher = createCipheriv(ALGORITHM, contentKey, nonceOf(hash)).setAAD(hash);
      return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]);
    },
    open: (sealed, hash) => {
      const end = sealed.byteLength - SEAL_BYTES;
      if (end < 0) return null;
      const decipher = createDecipheriv(ALGORITHM, contentKey, nonceOf(hash), { authTagLength: SEAL_BYTES });
      decipher.setAAD(hash).setAuthTag(sealed.subarray(end));
      const content = decipher.update(sealed.subarray(0, end));
      try {
        decipher.final();
      } catch {
        return null;
      }
      return content;
    },
  };
}

const deriveKey = (key: Uint8Array, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, '', purpose, CASE_KEY_BYTES));
