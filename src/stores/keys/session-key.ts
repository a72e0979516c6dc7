// The key for step proofs and gate checksums: 32 random bytes in a file with mode 0600. If the key is lost, outstanding
// proofs become invalid and clients get new ones; nothing else is lost.

import { createHmac, randomBytes } from 'node:crypto';
import { canonicalJson } from '../../core/contract/json.js';
import { PolicyError } from '../../core/errors.js';
import type { Secrets } from '../../core/contract/secrets.js';
import { createFile, readSmallFile } from '../../system/files/small-file.js';

const KEY_BYTES = 32;

/**
 * The secrets of a key folder; the key is created on first use. Of several processes, the first creates it for all.
 * @throws PolicyError on first use, if the key is damaged or other users may read it
 */
export function sessionKey(path: string): Secrets {
  let key: Uint8Array | null = null;
  return secretsOf(() => (key ??= readKey(path) ?? createKey(path) ?? readKey(path) ?? missingKey(path)));
}

/** Secrets of this process, for a ledger without a home directory: proofs become invalid when the process ends. */
export const ephemeralKey = (key: Uint8Array = randomBytes(KEY_BYTES)): Secrets => secretsOf(() => key);

const secretsOf = (key: () => Uint8Array): Secrets => ({
  computeMac: (purpose, parts) =>
    createHmac('sha256', key())
      .update(canonicalJson([purpose, ...parts]))
      .digest(),
});

function readKey(path: string): Uint8Array | null {
  const text = readSmallFile(path, { bytesMax: 2 * KEY_BYTES + 1, forbiddenMode: 0o077 });
  if (text === null) return null;
  const hex = Buffer.from(text).toString('latin1').trim();
  if (/^[0-9a-f]{64}$/.test(hex)) return Buffer.from(hex, 'hex');
  throw new PolicyError({
    code: 'POLICY_INVALID',
    message: `${path} is not a key: it must contain 64 hexadecimal digits`,
  });
}

/** Reads the key, if there is one. @throws PolicyError if it is damaged or other users may read it */
export function checkSessionKey(path: string): void {
  readKey(path);
}

/** @returns null if another process has created a key meanwhile */
function createKey(path: string): Uint8Array | null {
  const key = randomBytes(KEY_BYTES);
  return createFile(path, `${key.toString('hex')}\n`, 0o600) ? key : null;
}

function missingKey(path: string): never {
  throw new PolicyError({ code: 'POLICY_UNREADABLE', message: `${path} was removed while it was read: try again` });
}
