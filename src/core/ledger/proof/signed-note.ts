// Signed notes (C2SP signed-note): a text with signature lines below it, which a person can read and send by mail.

import type { KeyObject } from 'node:crypto';
import { isUtf8 } from 'node:buffer';
import { sha256 } from '../../contract/hash.js';
import { isSigned, KEY_BYTES, keyPair, publicKey, SIGNATURE_BYTES, signMessage } from './ed25519.js';

/** Maximum size of a note with its signatures. */
export const NOTE_BYTES_MAX = 1_000_000;
const SIGNATURES_MAX = 100;
const ED25519 = 0x01;
const HASH_BYTES = 4;
const SIGNATURE_LINE = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u;
const KEY_TEXT = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/u;
const PRIVATE = 'PRIVATE+KEY+';

/** A key that a rotation has replaced. */
export interface RetiredKey {
  readonly key: NoteVerifier;
  /** The size of the largest log that it may have signed. */
  readonly size: number;
}

/** A signer's name and public key. */
export interface NoteVerifier {
  readonly name: string;
  /** For the key of a log: the keys that it has replaced, the oldest first, and the notes that say so. */
  readonly retired?: readonly RetiredKey[];
  readonly history?: readonly string[];
  /** The first 4 bytes of SHA-256(name, newline, kind of key, key), in hex. */
  readonly key_hash: string;
  /** The key as `noteVerifier` reads it. */
  readonly vkey: string;
  readonly verifies: (text: string, signature: Uint8Array) => boolean;
}

export interface NoteSigner extends NoteVerifier {
  readonly sign: (text: string) => Uint8Array;
}

export interface OpenedNote {
  /** The signed text, including its last newline. */
  readonly text: string;
  /** The verifiers whose signatures are valid, each once. */
  readonly verifiers: readonly NoteVerifier[];
}

/** Parses a vkey (`name+hash+base64`). @returns null if it is malformed or its key is rejected */
export function noteVerifier(vkey: string): NoteVerifier | null {
  const read = readKey(vkey);
  const key = read === null ? null : publicKey(read.key);
  return read === null || key === null ? null : verifierOf(read.name, read.key, key);
}

/** Parses a private key text (`PRIVATE+KEY+name+hash+base64`). @returns null if it is malformed */
export function noteSigner(skey: string): NoteSigner | null {
  if (!skey.startsWith(PRIVATE)) return null;
  const [, name = '', hash = '', encoded = ''] = KEY_TEXT.exec(skey.slice(PRIVATE.length)) ?? [];
  const seed = keyBytes(encoded);
  if (seed === null || !isName(name)) return null;
  const signer = signerOf(name, seed);
  return signer.key_hash === hash ? signer : null;
}

/** Writes the private key text of a name and a seed of 32 bytes. @returns null if the name is invalid */
export function notePrivateKey(name: string, seed: Uint8Array): string | null {
  if (!isName(name) || seed.length !== KEY_BYTES) return null;
  return `${PRIVATE}${name}+${signerOf(name, seed).key_hash}+${encodeKey(seed)}`;
}

/** Signs a text as a note. The text must end with a newline and contain no other control character. */
export function signNote(text: string, signer: NoteSigner): string {
  const line = Buffer.concat([Buffer.from(signer.key_hash, 'hex'), signer.sign(text)]).toString('base64');
  return `${text}\n— ${signer.name} ${line}\n`;
}

/**
 * Verifies and opens a note.
 * @returns null if the note is malformed, if a signature in the name of one of `verifiers` is wrong, if none of them
 * has signed it, or if two of them have the same name and key hash
 */
export function openNote(note: Uint8Array, verifiers: readonly NoteVerifier[]): OpenedNote | null {
  const read = readNote(note);
  if (read === null) return null;
  const verifiedBy: NoteVerifier[] = [];
  for (const { name, key_hash, signature } of read.signatures) {
    const known = verifiers.filter((one) => one.name === name && one.key_hash === key_hash);
    const [verifier, another] = known;
    if (another !== undefined) return null;
    if (verifier === undefined || verifiedBy.includes(verifier)) continue;
    if (!verifier.verifies(read.text, signature)) return null;
    verifiedBy.push(verifier);
  }
  return verifiedBy.length === 0 ? null : { text: read.text, verifiers: verifiedBy };
}

interface NoteSignature {
  readonly name: string;
  readonly key_hash: string;
  readonly signature: Uint8Array;
}

function readNote(note: Uint8Array): { readonly text: string; readonly signatures: readonly NoteSignature[] } | null {
  if (note.length > NOTE_BYTES_MAX || !isUtf8(note)) return null;
  const whole = Buffer.from(note).toString('utf8');
  if (/[\u0000-\u0009\u000b-\u001f]/.test(whole)) return null;
  const split = whole.lastIndexOf('\n\n');
  const below = whole.slice(split + 2);
  if (split < 0 || !below.endsWith('\n')) return null;
  const lines = below.slice(0, -1).split('\n');
  if (lines.length > SIGNATURES_MAX) return null;
  const signatures = lines.map(readSignature);
  return signatures.some((one) => one === null)
    ? null
    : { text: whole.slice(0, split + 1), signatures: signatures.filter((one) => one !== null) };
}

function readSignature(line: string): NoteSignature | null {
  const [, name = '', encoded = ''] = SIGNATURE_LINE.exec(line) ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  if (!isName(name) || bytes.toString('base64') !== encoded || bytes.length <= HASH_BYTES) return null;
  return { name, key_hash: bytes.toString('hex', 0, HASH_BYTES), signature: bytes.subarray(HASH_BYTES) };
}

function readKey(vkey: string): { readonly name: string; readonly key: Uint8Array } | null {
  const [, name = '', hash = '', encoded = ''] = KEY_TEXT.exec(vkey) ?? [];
  const key = keyBytes(encoded);
  return key !== null && isName(name) && keyHash(name, key) === hash ? { name, key } : null;
}

function keyBytes(encoded: string): Uint8Array | null {
  const bytes = Buffer.from(encoded, 'base64');
  const whole = bytes.toString('base64') === encoded && bytes.length === 1 + KEY_BYTES && bytes[0] === ED25519;
  return whole ? bytes.subarray(1) : null;
}

function signerOf(name: string, seed: Uint8Array): NoteSigner {
  const { privateKey, raw } = keyPair(seed);
  const key = publicKey(raw);
  if (key === null) throw new TypeError('a key pair without a public key');
  return { ...verifierOf(name, raw, key), sign: (text) => signMessage(Buffer.from(text), privateKey) };
}

const verifierOf = (name: string, raw: Uint8Array, key: KeyObject): NoteVerifier => ({
  name,
  key_hash: keyHash(name, raw),
  vkey: `${name}+${keyHash(name, raw)}+${encodeKey(raw)}`,
  verifies: (text, signature) => signature.length === SIGNATURE_BYTES && isSigned(Buffer.from(text), signature, key),
});

const encodeKey = (raw: Uint8Array): string => Buffer.concat([Buffer.of(ED25519), raw]).toString('base64');

const keyHash = (name: string, key: Uint8Array): string =>
  sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), key])).slice(0, 2 * HASH_BYTES);

const isName = (name: string): boolean =>
  name.length > 0 && name.length <= 255 && !/[\s+]/u.test(name) && name.isWellFormed();
