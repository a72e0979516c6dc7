// The files that mark a folder as an unfinished copy, which is made in an empty folder and removed last, and a home as
// copied, whose ledger continues in the copy.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { removeAll } from '../system/files/copy-folder.js';
import { fsyncDirectory } from '../system/files/fsync-directory.js';
import { createFile, readSmallFile, replaceFile } from '../system/files/small-file.js';
import { isJsonObject, readJson } from '../core/contract/json.js';
import { LedgerError } from '../core/errors.js';

const FILE = 'unfinished-copy.json';
const COPIED_FILE = 'copied-ledger.json';
const FILE_BYTES_MAX = 65_536;
const MODE = 0o600;
/** Begins the name of a source that is a backup. */
export const BACKUP_PREFIX = 'the backup ';

/** What the mark says. */
export interface CopyMarker {
  /** The text of the location that is copied. */
  readonly source: string;
  /** The root of the log, once the copy was verified; null before. */
  readonly verified: string | null;
}

/** The members of the mark; null if the folder has none. A mark that cannot be parsed has no members. */
function readMark(folder: string, file: string): Readonly<Record<string, unknown>> | null {
  const path = join(folder, file);
  const bytes = existsSync(path) ? readSmallFile(path, { bytesMax: FILE_BYTES_MAX }) : null;
  if (bytes === null) return null;
  const value = readJson(Buffer.from(bytes).toString('utf8'));
  return isJsonObject(value) ? value : {};
}

const markText = (members: object): string => `${JSON.stringify({ version: 1, ...members })}\n`;

/** Durably. */
async function removeMark(folder: string, file: string): Promise<void> {
  await removeAll(join(folder, file));
  await fsyncDirectory(folder);
}

const textOr = (value: unknown, fallback: string): string => (typeof value === 'string' ? value : fallback);

/** The mark of a folder; null if it has none. A mark that cannot be read names no source. */
export function readCopyMarker(folder: string): CopyMarker | null {
  const mark = readMark(folder, FILE);
  if (mark === null) return null;
  const { source, verified } = mark;
  return { source: textOr(source, 'another ledger'), verified: typeof verified === 'string' ? verified : null };
}

/** Marks a folder durably. @returns false if it has a mark */
export const createCopyMarker = (folder: string, source: string): boolean =>
  createFile(join(folder, FILE), markText({ source, verified: null }), MODE);

/** Records in the mark that the copy was verified. */
export const writeCopyMarker = (folder: string, marker: CopyMarker): void =>
  replaceFile(join(folder, FILE), markText(marker), MODE);

export const removeCopyMarker = (folder: string): Promise<void> => removeMark(folder, FILE);

/** @throws LedgerError LEDGER_UNAVAILABLE if the folder is an unfinished copy */
export function refuseUnfinishedCopy(folder: string): void {
  const marker = readCopyMarker(folder);
  if (marker === null) return;
  const command = marker.source.startsWith(BACKUP_PREFIX) ? 'turnpike restore' : 'turnpike home copy';
  const message =
    `${folder} is an unfinished copy of ${marker.source}: ` +
    `run \`${command}\` with the same source again, or remove the folder`;
  throw new LedgerError({ code: 'LEDGER_UNAVAILABLE', message });
}

/** The name of the copy of a home; null if it was not copied. */
export function readCopiedMark(home: string): string | null {
  const mark = readMark(home, COPIED_FILE);
  return mark === null ? null : textOr(mark['target'], 'another ledger');
}

/** Marks a home durably as copied. */
export const writeCopiedMark = (home: string, target: string): void =>
  replaceFile(join(home, COPIED_FILE), markText({ target }), MODE);

export const removeCopiedMark = (home: string): Promise<void> => removeMark(home, COPIED_FILE);

/** @throws LedgerError LEDGER_COPIED if the ledger of the home continues in a copy */
export function refuseCopied(home: string): void {
  const target = readCopiedMark(home);
  if (target === null) return;
  const message =
    `the ledger in ${home} was copied to ${target}, and continues there: use the copy, ` +
    'or run `turnpike home reopen` if it will never be used';
  throw new LedgerError({ code: 'LEDGER_COPIED', message });
}
