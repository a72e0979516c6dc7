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

const pathIn = (folder: string): string => join(folder, FILE);
const textOf = (marker: CopyMarker): string => `${JSON.stringify({ version: 1, ...marker })}\n`;

/** The mark of a folder; null if it has none. A mark that cannot be read names no source. */
export function readCopyMarker(folder: string): CopyMarker | null {
  const bytes = existsSync(pathIn(folder)) ? readSmallFile(pathIn(folder), { bytesMax: FILE_BYTES_MAX }) : null;
  if (bytes === null) return null;
  const { source, verified } = parse(Buffer.from(bytes).toString('utf8'));
  return {
    source: typeof source === 'string' ? source : 'another ledger',
    verified: typeof verified === 'string' ? verified : null,
  };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  const value = readJson(text);
  return isJsonObject(value) ? value : {};
}

/** Marks a folder durably. @returns false if it has a mark */
export const createCopyMarker = (folder: string, source: string): boolean =>
  createFile(pathIn(folder), textOf({ source, verified: null }), MODE);

/** Records in the mark that the copy was verified. */
export const writeCopyMarker = (folder: string, marker: CopyMarker): void =>
  replaceFile(pathIn(folder), textOf(marker), MODE);

/** Removes the mark durably. */
export async function removeCopyMarker(folder: string): Promise<void> {
  await removeAll(pathIn(folder));
  await fsyncDirectory(folder);
}

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

const COPIED_FILE = 'copied-ledger.json';
const copiedPathIn = (home: string): string => join(home, COPIED_FILE);

/** The name of the copy of a home; null if it was not copied. */
export function readCopiedMark(home: string): string | null {
  const path = copiedPathIn(home);
  const bytes = existsSync(path) ? readSmallFile(path, { bytesMax: FILE_BYTES_MAX }) : null;
  if (bytes === null) return null;
  const { target } = parse(Buffer.from(bytes).toString('utf8'));
  return typeof target === 'string' ? target : 'another ledger';
}

/** Marks a home durably as copied. */
export const writeCopiedMark = (home: string, target: string): void =>
  replaceFile(copiedPathIn(home), `${JSON.stringify({ version: 1, target })}\n`, MODE);

/** Removes the mark durably. */
export async function removeCopiedMark(home: string): Promise<void> {
  await removeAll(copiedPathIn(home));
  await fsyncDirectory(home);
}

/** @throws LedgerError LEDGER_COPIED if the ledger of the home continues in a copy */
export function refuseCopied(home: string): void {
  const target = readCopiedMark(home);
  if (target === null) return;
  const message =
    `the ledger in ${home} was copied to ${target}, and continues there: use the copy, ` +
    'or run `turnpike home reopen` if it will never be used';
  throw new LedgerError({ code: 'LEDGER_COPIED', message });
}
