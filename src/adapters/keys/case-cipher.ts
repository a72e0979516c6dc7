// How the content of a case is encrypted where it lies: AES-256-GCM, with the hash of the content as associated data.

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';

export const CASE_KEY_BYTES = 32;
/** So much longer than the content is what lies there. */
export const SEAL_BYTES = 16;

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;

/** Seals and opens content under one key. */
export interface CaseCipher {
  /** @param hash SHA-256 of the content */
  seal(content: Uint8Array, hash: Uint8Array): Buffer;
  /** @returns null for what was not sealed with this key and for this hash */
  open(sealed: Uint8Array, hash: Uint8Array): Buffer | null;
}

/**
 * The nonce is drawn from the content's hash under a key of its own: equal content is sealed equally, other content
 * with another nonce, and whoever chooses contents cannot choose two whose nonces are the same.
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
