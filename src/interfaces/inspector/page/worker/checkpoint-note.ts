// Verifies a signed checkpoint (C2SP signed-note and tlog-checkpoint) with the browser's own Ed25519.

import { fromBase64, hex, type Hash } from './compact-range.js';

export interface NoteCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: string;
}

/** `unknown`: this browser has no Ed25519, so the signature was not checked. */
export type SignatureState = 'right' | 'wrong' | 'unknown';

/** Parses a checkpoint without checking its signature. Null if the text is invalid. */
export function parseCheckpoint(note: string): NoteCheckpoint | null {
  const [, origin = '', size = '', root = ''] = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n/.exec(note) ?? [];
  const bytes = fromBase64(root);
  return origin === '' || bytes?.length !== 32 ? null : { origin, size: Number(size), root: hex(bytes) };
}

/** Whether the owner of `vkey` (`name+hash+base64`) has signed this note under that name. */
export async function verifySignature(note: string, vkey: string, hash: Hash): Promise<SignatureState> {
  const key = await parseKey(vkey, hash);
  const split = note.lastIndexOf('\n\n');
  if (key === null || split < 0 || !note.endsWith('\n')) return 'wrong';
  const text = note.slice(0, split + 1);
  if (parseCheckpoint(note)?.origin !== key.name) return 'wrong';
  const signatures = note
    .slice(split + 2, -1)
    .split('\n')
    .map(parseSignature);
  const own = signatures.filter((one) => one?.name === key.name && hex(one.bytes.slice(0, 4)) === key.id);
  const [signature] = own;
  if (signature === undefined || signature === null || own.length > 1) return 'wrong';
  return verifyEd25519(key.raw, signature.bytes.slice(4), new TextEncoder().encode(text));
}

async function verifyEd25519(
  raw: Uint8Array<ArrayBuffer>,
  signature: Uint8Array<ArrayBuffer>,
  text: Uint8Array<ArrayBuffer>,
) {
  let key: Awaited<ReturnType<typeof crypto.subtle.importKey>>;
  try {
    key = await crypto.subtle.importKey('raw', raw, 'Ed25519', false, ['verify']);
  } catch {
    return 'unknown' as const;
  }
  const right = signature.length === 64 && (await crypto.subtle.verify('Ed25519', key, signature, text));
  return right ? ('right' as const) : ('wrong' as const);
}

/** A key name may contain a slash and base64 a plus, so the parts are separated by their form. */
async function parseKey(vkey: string, hash: Hash) {
  const [, name = '', id = '', encoded = ''] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/.exec(vkey) ?? [];
  const bytes = fromBase64(encoded);
  if (bytes?.length !== 33 || bytes[0] !== 1) return null;
  const nameBytes = new TextEncoder().encode(`${name}\n`);
  const keyIdInput = new Uint8Array(nameBytes.length + bytes.length);
  keyIdInput.set(nameBytes);
  keyIdInput.set(bytes, nameBytes.length);
  const keyHash = hex(await hash(keyIdInput)).slice(0, 8);
  return keyHash === id ? { name, id, raw: bytes.slice(1) } : null;
}

function parseSignature(line: string) {
  const [, name = '', encoded = ''] = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  return bytes === null || name === '' ? null : { name, bytes };
}
