// The keys of a log in their order. The owner replaces a key with a rotation: a note that the old key and the new one
// have both signed. So who trusts any key of the chain can follow it to all others, without other evidence.
//
//   Y1. The first three lines of the note are a checkpoint: the last one that the old key signs. A note of the old key
//       about a larger log is not valid.
//   Y2. Each note has its number and the hash of the note before, so none can be left out, moved or added.
//   Y3. That the end of a history is missing shows in the key in use, which it does not reach, and in the log, which
//       records each rotation.

import { sha256 } from '../../contract/hash.js';
import type { LogHead } from '../readable-ledger.js';
import { checkpointText, readCheckpoint } from './checkpoint.js';
import { noteVerifier, openNote, signNote, type NoteSigner, type NoteVerifier } from './signed-note.js';

/** Limit of a history. Its notes precede the evidence that they are needed for. */
export const ROTATIONS_MAX = 200;
/** Limit of a note with both signatures. */
export const ROTATION_CHARS_MAX = 2_048;

const NO_ROTATION = '0'.repeat(64);
const LINES =
  /^turnpike key rotation ([1-9]\d{0,3})\nprevious ([0-9a-f]{64})\nold (\S+)\nnew (\S+)\nat (\S+)\nby ([^\n]+)\nrole (\S+)\n$/u;

/** One replacement of the key of a log. */
export interface KeyRotation {
  /** Counts from 1. */
  readonly number: number;
  /** Both keys, as `noteVerifier` reads them. */
  readonly old_key: string;
  readonly new_key: string;
  /** The last head that the old key signs. */
  readonly head: Pick<LogHead, 'size' | 'root'>;
  readonly at: string;
  readonly actor: string;
  readonly role: string;
}

/** A checked chain of rotations. */
export interface KeyHistory {
  readonly notes: readonly string[];
  readonly rotations: readonly KeyRotation[];
  /** The current key, with those that it has replaced. */
  readonly verifier: NoteVerifier;
}

/** Signs a rotation with both keys. `previous`: the note of the rotation before it. */
export function signRotation(
  rotation: Omit<KeyRotation, 'old_key' | 'new_key'>,
  previous: string | null,
  { old, next }: { readonly old: NoteSigner; readonly next: NoteSigner },
): string {
  const { number, head, at, actor, role } = rotation;
  const text =
    checkpointText({ origin: old.name, ...head }) +
    `turnpike key rotation ${number}\nprevious ${previous === null ? NO_ROTATION : hashOf(previous)}\n` +
    `old ${old.vkey}\nnew ${next.vkey}\nat ${at}\nby ${actor}\nrole ${role}\n`;
  return signNote(text, old) + signNote(text, next).slice(text.length + 1);
}

/** Of the signed text: signatures are not part of the chain. */
const hashOf = (note: string): string => sha256(textOf(note));
const textOf = (note: string): string => note.slice(0, note.lastIndexOf('\n\n') + 1);

/**
 * Checks a chain of rotations, of which nothing is trusted.
 * @returns what is wrong with it, or its keys; null for a log that has never rotated its key
 */
export function readKeyHistory(notes: readonly string[]): KeyHistory | string | null {
  if (notes.length === 0) return null;
  if (notes.length > ROTATIONS_MAX) return `the key history has more than ${ROTATIONS_MAX} rotations`;
  const rotations: KeyRotation[] = [];
  const keys: NoteVerifier[] = [];
  for (const [index, note] of notes.entries()) {
    const read = readRotation(note);
    if (read === null) return `rotation ${index + 1} of the key history is malformed`;
    const { rotation, old, next, previous } = read;
    const problem = problemOf(read, { number: index + 1, keys, before: rotations.at(-1) });
    if (problem !== null) return problem;
    if (previous !== (index === 0 ? NO_ROTATION : hashOf(notes[index - 1] ?? ''))) {
      return `rotation ${index + 1} of the key history does not continue the one before it`;
    }
    if (openNote(Buffer.from(note), [old, next])?.verifiers.length !== 2) {
      return `rotation ${index + 1} of the key history is not signed by both keys`;
    }
    if (keys.length === 0) keys.push(old);
    keys.push(next);
    rotations.push(rotation);
  }
  const [current = keys[0] as NoteVerifier, ...earlier] = keys.toReversed();
  const retired = earlier.toReversed().map((key, index) => ({ key, size: rotations[index]?.head.size ?? 0 }));
  return { notes, rotations, verifier: { ...current, retired, history: notes } };
}

interface ReadRotation {
  readonly rotation: KeyRotation;
  readonly old: NoteVerifier;
  readonly next: NoteVerifier;
  readonly previous: string;
}

/** Parses a note without its signatures. */
export function readRotation(note: string): ReadRotation | null {
  if (note.length > ROTATION_CHARS_MAX) return null;
  const text = textOf(note);
  const head = readCheckpoint(text);
  const [, number, previous = '', old_key = '', new_key = '', at = '', actor = '', role = ''] =
    LINES.exec(text.split('\n').slice(3).join('\n')) ?? [];
  const [old, next] = [noteVerifier(old_key), noteVerifier(new_key)];
  if (head === null || old === null || next === null || old.name !== head.origin || next.name !== head.origin)
    return null;
  const { size, root } = head;
  const rotation = { number: Number(number), old_key, new_key, head: { size, root }, at, actor, role };
  return { rotation, old, next, previous };
}

function problemOf(
  { rotation, next }: ReadRotation,
  chain: {
    readonly number: number;
    readonly keys: readonly NoteVerifier[];
    readonly before: KeyRotation | undefined;
  },
): string | null {
  const { number, keys, before } = chain;
  if (rotation.number !== number) {
    return `the key history has rotation ${rotation.number} in the place of rotation ${number}: one is missing or moved`;
  }
  if (before !== undefined && before.new_key !== rotation.old_key) {
    return `rotation ${number} of the key history replaces another key than the current one of that time`;
  }
  const isReused = rotation.old_key === rotation.new_key || keys.some(({ key_hash }) => key_hash === next.key_hash);
  if (isReused) return `rotation ${number} of the key history introduces a key that was used before`;
  if (before !== undefined && before.head.size > rotation.head.size) {
    return `rotation ${number} of the key history is about a shorter log than the one before it`;
  }
  return null;
}

/**
 * The keys by which evidence is verified that names its own key and brings the history of it.
 * @param trusted a key of the chain that the verifier trusts; null: the evidence itself
 * @returns what is wrong with the history
 */
export function followKeys(
  trusted: NoteVerifier | null,
  evidence: { readonly key: string; readonly chain?: readonly string[] | undefined },
): NoteVerifier | string {
  const found = readKeyHistory(evidence.chain ?? []);
  if (typeof found === 'string') return found;
  const own = found === null ? noteVerifier(evidence.key) : found.verifier;
  if (own === null) return 'its key is malformed';
  if (own.vkey !== evidence.key) {
    return `its key history ends with the key ${nameOf(own)}, and it names another key: the end of the history is missing`;
  }
  if (trusted === null) return own;
  return joinKeys(trusted, own);
}

/** Of two chains with a common key, the longer one. */
function joinKeys(trusted: NoteVerifier, own: NoteVerifier): NoteVerifier | string {
  const [known, brought] = [trusted.history ?? [], own.history ?? []];
  const isSame = known.every((note, index) => brought[index] === undefined || textOf(brought[index]) === textOf(note));
  if (!isSame) return 'its key history differs from the one that is trusted';
  if (known.length >= brought.length) return trusted;
  return keysOf(own).some(({ vkey }) => vkey === trusted.vkey)
    ? own
    : `its key history does not contain the key that must have signed, ${nameOf(trusted)}`;
}

/** The key and those that it has replaced, the current one first. */
export const keysOf = (key: NoteVerifier): readonly NoteVerifier[] => [
  key,
  ...(key.retired ?? []).map(({ key: retired }) => retired),
];

/** The part of a key that people compare. */
export const nameOf = ({ name, key_hash }: Pick<NoteVerifier, 'name' | 'key_hash'>): string => `${name}+${key_hash}`;

/** The member of evidence with which a verifier follows the key: none if it was never rotated. */
export const keyNotesOf = ({ history = [] }: NoteVerifier): { readonly chain?: string[] } =>
  history.length === 0 ? {} : { chain: [...history] };
