// Checkpoints (C2SP tlog-checkpoint): the head of a log as three lines of text, signed as a note.

import type { LogHead } from '../readable-ledger.js';
import { openNote, signNote, type NoteSigner, type NoteVerifier } from './signed-note.js';

/** The name of a log, its number of entries, and its root. */
export interface Checkpoint extends Pick<LogHead, 'size' | 'root'> {
  /** The name of the log, which is the name of its key. */
  readonly origin: string;
}

const HASH_BYTES = 32;
const SIZE = /^(?:0|[1-9]\d{0,15})$/;

/** The text that is signed. */
export const checkpointText = ({ origin, size, root }: Checkpoint): string =>
  `${origin}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`;

/**
 * Parses a checkpoint. Lines after the third are extensions and are ignored.
 * @param hashBytes length of a root in bytes; null accepts any
 * @returns null if it is malformed
 */
export function readCheckpoint(text: string, hashBytes: number | null = HASH_BYTES): Checkpoint | null {
  const [origin = '', size = '', root = '', ...rest] = text.split('\n');
  const bytes = Buffer.from(root, 'base64');
  // Every line ends with a newline, the third one too.
  if (rest.length === 0 || origin === '' || !SIZE.test(size) || !Number.isSafeInteger(Number(size))) return null;
  if (root === '' || bytes.toString('base64') !== root || bytes.length !== (hashBytes ?? bytes.length)) return null;
  return { origin, size: Number(size), root: bytes.toString('hex') };
}

/** The signed note of a head, in the name of the signer. */
export const signCheckpoint = ({ size, root }: Pick<LogHead, 'size' | 'root'>, signer: NoteSigner): string =>
  signNote(checkpointText({ origin: signer.name, size, root }), signer);

/**
 * Opens a checkpoint that `verifier` has signed for the log of that name, or a key that it has replaced since.
 * @returns null for any other bytes, which must not be trusted
 */
export function openCheckpoint(note: Uint8Array, verifier: NoteVerifier): Checkpoint | null {
  const opened = openSignedHead(note, verifier);
  return typeof opened === 'string' ? null : opened.checkpoint;
}

/** A checkpoint, and the key that has signed it. */
export interface SignedHead {
  readonly checkpoint: Checkpoint;
  readonly key: NoteVerifier;
}

/** Like `openCheckpoint`. @returns what is wrong, for a sentence that begins with "its checkpoint" */
export function openSignedHead(note: Uint8Array, verifier: NoteVerifier): SignedHead | string {
  const { retired = [] } = verifier;
  const opened = openNote(note, [verifier, ...retired.map(({ key }) => key)]);
  const checkpoint = opened === null ? null : readCheckpoint(opened.text);
  const [key] = opened?.verifiers ?? [];
  if (checkpoint === null || key === undefined || checkpoint.origin !== verifier.name) {
    return 'is not signed by this key';
  }
  const end = retired.find((one) => one.key === key)?.size ?? Infinity;
  if (checkpoint.size <= end) return { checkpoint, key };
  return `has ${checkpoint.size} entries, and is signed by the key ${key.name}+${key.key_hash}, which was retired at ${end}`;
}
