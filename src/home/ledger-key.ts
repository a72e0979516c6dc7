// The key that signs the checkpoints of a home's ledger, and its public form: the name of the log with the verification
// key (a vkey of C2SP). The name is drawn together with the first key, so no two logs share a name. A rotation
// (decision 0022) replaces the key: it counts from the moment at which the key history names the new key.

import {
  createPrivateLine,
  drawSeed,
  hasFile,
  linkIntoPlace,
  readPrivateLine,
  readPublicLine,
  removeDraft,
  writePrivateLine,
  writePublicLine,
} from '../stores/keys/key-file.js';
import { HISTORY_FILE, readHistoryFile } from '../stores/keys/key-history-file.js';
import { PolicyError, usageError } from '../core/errors.js';
import { openCheckpoint, signCheckpoint } from '../core/ledger/proof/checkpoint.js';
import { KEY_BYTES } from '../core/ledger/proof/ed25519.js';
import { keysOf, nameOf, readKeyHistory, type KeyHistory } from '../core/ledger/proof/key-history.js';
import {
  notePrivateKey,
  noteSigner,
  noteVerifier,
  openNote,
  signNote,
  type NoteSigner,
  type NoteVerifier,
} from '../core/ledger/proof/signed-note.js';
import type { ErasureSeal, HeadSeal } from '../engine/ports/ledger/ledger-store.js';
import { dirname, join } from 'node:path';

/** Random bytes of a generated log name. */
const NAME_BYTES = 9;

export interface LedgerKeyPaths {
  /** `PRIVATE+KEY+name+hash+base64`, mode 0600. */
  readonly privateKey: string;
  /** `name+hash+base64`, for verifiers. */
  readonly publicKey: string;
}

/** Creates a private key of a log. @throws UsageError for an invalid name */
export function generateLedgerKey(name: string | null = null): string {
  const origin = name ?? `turnpike/${Buffer.from(drawSeed(NAME_BYTES)).toString('base64url')}`;
  const key = origin.length <= NAME_CHARS_MAX ? notePrivateKey(origin, drawSeed(KEY_BYTES)) : null;
  if (key !== null) return key;
  throw usageError(`the name of a log has 1 to ${NAME_CHARS_MAX} characters, without spaces and plus signs`);
}

/** Limit that makes a signed checkpoint fit into a slot of the head file. */
const NAME_CHARS_MAX = 100;

/** Writes a private key of a log, and its public half. @throws UsageError for an invalid key */
export function installLedgerKey(paths: LedgerKeyPaths, skey: string): NoteSigner {
  const signer = parseSigner(skey);
  writePublicLine(paths.publicKey, signer.vkey);
  writePrivateLine(paths.privateKey, skey);
  return signer;
}

function parseSigner(skey: string): NoteSigner {
  const signer = noteSigner(skey);
  if (signer !== null && signer.name.length <= NAME_CHARS_MAX) return signer;
  throw usageError('this is not a private key of a log (PRIVATE+KEY+name+hash+key)');
}

/** The files of a rotation, next to the key. */
export const rotationFiles = ({ privateKey }: Pick<LedgerKeyPaths, 'privateKey'>) => ({
  /** One line for each rotation: its note as a JSON string. Public. */
  history: join(dirname(privateKey), HISTORY_FILE),
  /** The new private key, until it has the name of the key. */
  next: join(dirname(privateKey), 'ledger.next.key'),
  /** The old private key, until it is destroyed. */
  retired: join(dirname(privateKey), 'ledger.retired.key'),
});

let lastRead: { readonly text: string; readonly history: KeyHistory | null } | null = null;

/** The key history of a home; null if its key was never rotated. @throws PolicyError for a damaged one */
export function readHomeHistory(paths: LedgerKeyPaths): KeyHistory | null {
  const { history } = rotationFiles(paths);
  const notes = readHistoryFile(history);
  const text = notes.join();
  // Read often, and each note has two signatures.
  if (text === lastRead?.text) return lastRead.history;
  const found = readKeyHistory(notes);
  if (typeof found !== 'string') {
    lastRead = { text, history: found };
    return found;
  }
  throw new PolicyError({ code: 'POLICY_INVALID', message: `${history}: ${found}: restore it from a backup` });
}

/** The signer of a home, or null if its heads are not signed. @throws PolicyError for a damaged key */
export function readLedgerSigner(paths: LedgerKeyPaths): NoteSigner | null {
  const signer = readSigner(paths.privateKey);
  const history = readHomeHistory(paths);
  if (history === null) return signer;
  const { verifier } = history;
  // A rotation that was interrupted has not given the new key its name yet.
  for (const found of [signer, readSigner(rotationFiles(paths).next)]) {
    if (found?.vkey === verifier.vkey) return { ...verifier, sign: found.sign };
  }
  if (signer === null) return null;
  const message = `${paths.privateKey} is not the current key of this log, ${nameOf(verifier)}: restore that from a backup`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

/** The key in one file, whether or not it is the current one. */
export function readSigner(path: string): NoteSigner | null {
  const skey = readPrivateLine(path);
  if (skey === null) return null;
  const signer = noteSigner(skey);
  if (signer === null) throw damagedKeyError(path);
  return signer;
}

/**
 * The public half, which is enough for a reader. @returns null if heads are not signed
 * @throws PolicyError for a damaged key
 */
export function readLedgerVerifier(paths: LedgerKeyPaths): NoteVerifier | null {
  const vkey = readPublicLine(paths.publicKey);
  const history = readHomeHistory(paths);
  if (vkey === null && history === null) return hasFile(paths.privateKey) ? readLedgerSigner(paths) : null;
  const verifier = vkey === null ? null : noteVerifier(vkey);
  if (vkey !== null && verifier === null) throw damagedKeyError(paths.publicKey);
  if (history === null) return verifier;
  if (verifier === null || keysOf(history.verifier).some((key) => key.vkey === verifier.vkey)) return history.verifier;
  const message = `${rotationFiles(paths).history} does not contain the key ${nameOf(verifier)}: restore it from a backup`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

/** Whether a rotation was begun that counts, and is not finished. */
export const isRotating = (paths: LedgerKeyPaths): boolean => {
  const history = readHomeHistory(paths);
  return history !== null && readPublicLine(paths.publicKey) !== history.verifier.vkey;
};

/** @throws PolicyError if only the public half exists: then heads were signed, and must still be */
export function refuseLostKey(paths: LedgerKeyPaths): void {
  if (readPublicLine(paths.publicKey) === null) return;
  const message = `${paths.privateKey} is missing: restore it from a backup`;
  throw new PolicyError({ code: 'POLICY_UNREADABLE', message });
}

/** A key that has not taken effect: until the first signed head is durable, heads may be unsigned. */
export function readDraftedSigner(paths: LedgerKeyPaths): NoteSigner | null {
  // The draft is read first: after the key has taken effect, a late process may create another draft.
  const drafted = readLedgerSigner({ ...paths, privateKey: draftOf(paths) });
  return hasFile(paths.privateKey) ? null : drafted;
}

/**
 * Like `readDraftedSigner`, but creates a missing key. `settle` makes it take effect. Of several processes the first
 * draws the key for all, also if another one has made it take effect meanwhile.
 */
export function draftLedgerKey(paths: LedgerKeyPaths): { readonly signer: NoteSigner; readonly settle: () => void } {
  const signer = readLedgerSigner(paths) ?? draftSigner(paths);
  return {
    signer,
    settle: () => {
      writePublicLine(paths.publicKey, signer.vkey);
      linkIntoPlace(draftOf(paths), paths.privateKey);
    },
  };
}

function draftSigner(paths: LedgerKeyPaths): NoteSigner {
  const draft = draftOf(paths);
  const isOurs = createPrivateLine(draft, generateLedgerKey());
  // The draft is read before the key: a draft is removed only after a key has taken effect, and what a late process
  // creates then is not the draft that counts.
  const drafted = readLedgerSigner({ ...paths, privateKey: draft });
  const settled = readLedgerSigner(paths);
  if (settled !== null && isOurs) removeDraft(draft);
  const signer = settled ?? drafted;
  if (signer === null) throw damagedKeyError(draft);
  return signer;
}

/**
 * The key of a folder that several processes share. The first of them creates it for all.
 * @param chosen the private key that the user wants; null: any
 * @throws UsageError if the folder has another key than the chosen one, or the chosen one is invalid
 */
export function ensureLedgerKey(paths: LedgerKeyPaths, chosen: string | null): NoteSigner {
  const wanted = chosen === null ? null : parseSigner(chosen);
  createPrivateLine(paths.privateKey, chosen ?? generateLedgerKey());
  const signer = readLedgerSigner(paths);
  if (signer === null) throw damagedKeyError(paths.privateKey);
  if (wanted !== null && wanted.vkey !== signer.vkey) {
    throw usageError(`${paths.privateKey} is another key: omit --ledger-key and --ledger-name, or name another folder`);
  }
  writePublicLine(paths.publicKey, signer.vkey);
  return signer;
}

const draftOf = ({ privateKey }: LedgerKeyPaths): string => `${privateKey}.new`;

/**
 * Seals heads as signed checkpoints. A process without the private key can only read them.
 * @param paths the files of the key, if another process may rotate it while this one reads
 */
export function createHeadSeal(key: NoteVerifier | NoteSigner, paths: LedgerKeyPaths | null = null): HeadSeal {
  const open = (note: string, verifier: NoteVerifier | null) => {
    const checkpoint = verifier === null ? null : openCheckpoint(Buffer.from(note), verifier);
    return checkpoint === null ? null : { size: checkpoint.size, root: checkpoint.root, note };
  };
  return {
    seal: (head) => signCheckpoint(head, requireSigner(key)),
    open: (note) => open(note, key) ?? (paths === null ? null : open(note, readLedgerVerifier(paths))),
    keys: () => {
      if (paths === null) return { notes: key.history ?? [], isUnfinished: false };
      return { notes: readHomeHistory(paths)?.notes ?? [], isUnfinished: isRotating(paths) };
    },
  };
}

/**
 * Seals erasures as signed notes; null without a key.
 * @param acceptRetired also opens notes of keys that were replaced: a rotation signs them again before it ends
 */
export const createErasureSeal = (
  key: NoteVerifier | NoteSigner | null,
  { acceptRetired = false }: { readonly acceptRetired?: boolean } = {},
): ErasureSeal | null =>
  key === null
    ? null
    : {
        seal: (statement) => signNote(statement, requireSigner(key)),
        open: (note) => openNote(Buffer.from(note), acceptRetired ? keysOf(key) : [key])?.text ?? null,
      };

function requireSigner(key: NoteVerifier | NoteSigner): NoteSigner {
  if ('sign' in key) return key;
  throw new PolicyError({ code: 'POLICY_UNREADABLE', message: 'a reader of a ledger has no key to sign with' });
}

const damagedKeyError = (path: string): PolicyError =>
  new PolicyError({ code: 'POLICY_INVALID', message: `${path} is not a key of a log: restore it from a backup` });
