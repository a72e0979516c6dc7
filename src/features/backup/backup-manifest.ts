// The manifest of a backup: a signed note that is written last. Without a valid one a backup is unfinished.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { readJson, canonicalJson } from '../../core/contract/json.js';
import { formatHeader, refuseOtherFormat, type FileFormat } from '../../core/contract/file-format.js';
import { sha256 } from '../../core/contract/hash.js';
import { closed, Sha256, Timestamp } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { LedgerError } from '../../core/errors.js';
import { keysOf } from '../../core/ledger/proof/key-history.js';
import {
  NOTE_BYTES_MAX,
  openNote,
  signNote,
  type NoteSigner,
  type NoteVerifier,
} from '../../core/ledger/proof/signed-note.js';

/** What a backup contains. */
export const BackupManifest = Type.Object(
  {
    version: Type.Literal(1),
    made_at: Timestamp,
    /** The version of Turnpike that made it. */
    made_by: Type.String({ minLength: 1, maxLength: 80 }),
    source: Type.Union([Type.Literal('sqlite'), Type.Literal('postgresql')]),
    /** The size and the root of the log. */
    size: Type.Integer({ minimum: 0 }),
    root: Sha256,
    has_keys: Type.Boolean(),
    has_sandbox: Type.Boolean(),
    has_contract: Type.Boolean(),
    /** The list of files, and how many it names. */
    files: Type.Integer({ minimum: 1 }),
    files_sha256: Sha256,
  },
  closed,
);
export type BackupManifest = Static<typeof BackupManifest>;

const MANIFEST = 'backup.manifest';
const FORMAT: FileFormat = { prefix: 'turnpike-backup ', newest: 1, old: /^turnpike backup / };
const HEADER = `${formatHeader(FORMAT)}\n`;
const MODE = 0o600;

const pathIn = (folder: string): string => join(folder, MANIFEST);

/** Whether a backup was finished here, intact or not. */
export const isFinishedBackup = (folder: string): boolean => existsSync(pathIn(folder));

/** Finishes a backup: everything else in it is durable. @returns the SHA-256 of the manifest */
export function writeManifest(folder: string, manifest: BackupManifest, signer: NoteSigner): string {
  const note = signNote(`${HEADER}${canonicalJson(manifest)}\n`, signer);
  replaceFile(pathIn(folder), note, MODE);
  return sha256(note);
}

/**
 * @throws LedgerError LEDGER_UNAVAILABLE for an unfinished backup, LEDGER_TAMPERED for one of another ledger,
 * LEDGER_UNSUPPORTED for one whose format this version does not know
 */
export function readManifest(
  folder: string,
  key: NoteVerifier,
): { readonly manifest: BackupManifest; readonly sha256: string } {
  const note = readSmallFile(pathIn(folder), { bytesMax: NOTE_BYTES_MAX });
  if (note === null) {
    const message = `${folder} is not a finished backup: run \`turnpike backup\` with this folder again, or use another`;
    throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message });
  }
  refuseOtherFormat(Buffer.from(note).toString('latin1'), FORMAT, `the backup ${folder}`);
  const opened = openNote(note, keysOf(key));
  const manifest = manifestIn(opened?.text ?? '');
  const retired = key.retired?.find((one) => opened?.verifiers.includes(one.key) === true);
  if (manifest !== null && manifest.size <= (retired?.size ?? Infinity)) return { manifest, sha256: sha256(note) };
  throw changedError(`${folder}: the key ${key.name} has not signed its manifest`);
}

function manifestIn(text: string): BackupManifest | null {
  if (!text.startsWith(HEADER)) return null;
  const value = readJson(text.slice(HEADER.length));
  return isConforming(BackupManifest, value) ? (value as BackupManifest) : null;
}

export const changedError = (what: string): LedgerError =>
  new LedgerError({ code: 'LEDGER_TAMPERED', message: `the backup was changed: ${what}. Use another backup` });
