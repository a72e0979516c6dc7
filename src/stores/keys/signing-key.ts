// The key pair that signs the emergency overlay: Ed25519, in two PEM files. A user who can write to its folder can also
// sign, so only the owner may access the folder.

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { sha256 } from '../../core/contract/hash.js';
import { PolicyError } from '../../core/errors.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';

const PEM_BYTES_MAX = 4_096;
const SIGNATURE_BYTES = 64;

export interface VerifyingKey {
  /** The first 16 hex digits of the SHA-256 of the public key's SPKI DER. */
  readonly key_id: string;
  /** Verifies the signature of `text`. Also false if `signature` is not the canonical base64 form of 64 bytes. */
  readonly verify: (text: string, signature: string) => boolean;
}

export interface SigningKey extends VerifyingKey {
  /** @returns the signature of `text` in base64 */
  readonly sign: (text: string) => string;
}

/** Reads the public key at `path` (SPKI). @throws PolicyError if it is missing or other users may write to it */
export function readVerifyingKey(path: string): VerifyingKey {
  const pem = readSmallFile(path, { bytesMax: PEM_BYTES_MAX, forbiddenMode: 0o022 });
  if (pem === null) throw new PolicyError({ code: 'POLICY_UNREADABLE', message: `the public key ${path} is missing` });
  return verifyingKey(parseEd25519Key(path, () => createPublicKey({ key: textOf(pem), format: 'pem', type: 'spki' })));
}

export interface SigningKeyFiles {
  /** PKCS8, mode 0600. */
  readonly privateKeyPath: string;
  /** SPKI; derived from the private key if it is missing. */
  readonly publicKeyPath: string;
  /** Creates a key pair if there is no private key, and replaces the public key of another pair. */
  readonly make: boolean;
}

/**
 * Opens the key pair in these files. Not for two processes at a time.
 * @throws PolicyError if a key is missing, damaged or of another pair, or other users may access the private key
 */
export function openSigningKey({ privateKeyPath, publicKeyPath, make }: SigningKeyFiles): SigningKey {
  const privateKey = readPrivateKey(privateKeyPath) ?? (make ? makePrivateKey(privateKeyPath) : null);
  if (privateKey === null)
    throw new PolicyError({ code: 'POLICY_UNREADABLE', message: `${privateKeyPath} is missing` });
  const publicKey = createPublicKey(privateKey);
  const verifying = verifyingKey(publicKey);
  if (!hasMatchingPublicKey(publicKeyPath, verifying.key_id, make)) {
    replaceFile(publicKeyPath, pemOf(publicKey, 'spki'), 0o644);
  }
  return { ...verifying, sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64') };
}

/** @throws PolicyError if the file holds another or a damaged key and must not be replaced */
function hasMatchingPublicKey(path: string, key_id: string, replaceable: boolean): boolean {
  if (readSmallFile(path, { bytesMax: PEM_BYTES_MAX }) === null) return false;
  try {
    if (readVerifyingKey(path).key_id === key_id) return true;
  } catch (error) {
    if (!replaceable) throw error;
  }
  if (replaceable) return false;
  throw invalidKeyError(path, 'is not the public key of the private key next to it');
}

function readPrivateKey(path: string): KeyObject | null {
  const pem = readSmallFile(path, { bytesMax: PEM_BYTES_MAX, forbiddenMode: 0o077 });
  if (pem === null) return null;
  return parseEd25519Key(path, () => createPrivateKey({ key: textOf(pem), format: 'pem', type: 'pkcs8' }));
}

function makePrivateKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync('ed25519');
  replaceFile(path, pemOf(privateKey, 'pkcs8'), 0o600);
  return privateKey;
}

const verifyingKey = (key: KeyObject): VerifyingKey => ({
  key_id: sha256(key.export({ format: 'der', type: 'spki' })).slice(0, 16),
  verify(text, signature) {
    const bytes = Buffer.from(signature, 'base64');
    // The last base64 digit has unused bits: without this check, one signature would have several texts.
    const one = bytes.length === SIGNATURE_BYTES && bytes.toString('base64') === signature;
    return one && verify(null, Buffer.from(text), key, bytes);
  },
});

/** @throws PolicyError POLICY_INVALID if it is not an Ed25519 key. Omits the cause, which may quote the key. */
function parseEd25519Key(path: string, parse: () => KeyObject): KeyObject {
  let key: KeyObject | null;
  try {
    key = parse();
  } catch {
    key = null;
  }
  if (key?.asymmetricKeyType !== 'ed25519') throw invalidKeyError(path, 'is not an Ed25519 key in PEM');
  return key;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const pemOf = (key: KeyObject, type: 'pkcs8' | 'spki'): string => key.export({ format: 'pem', type }).toString();

const invalidKeyError = (path: string, why: string): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `${path} ${why}` });
