// Reads and writes settings files of clients. Anyone with write access to a project may have made them, so nothing of a
// file is trusted: it may be a link, a device, a FIFO, huge, or no text. A copy of the file as it was lets an
// uninstallation restore it exactly. The hook program is written outside of the package and of every project.

import { lstatSync, mkdirSync, readdirSync, realpathSync, rmdirSync, rmSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import { readJson } from '../../../core/contract/json.js';
import { sha256 } from '../../../core/contract/hash.js';
import { usageError } from '../../../core/errors.js';
import { readRegularSync } from '../../../system/files/open-file.js';
import { replaceFile } from '../../../system/files/small-file.js';
import { isUtf8 } from 'node:buffer';
import { errorCode } from '../../../system/error-code.js';

/** Far more than any settings. */
const SETTINGS_BYTES_MAX = 1_048_576;

/** A file as it was read. */
export interface ClientFile {
  /** Null if there is no file, or it cannot be used. */
  readonly text: string | null;
  /** Why the file cannot be used; null if it can, or does not exist. */
  readonly problem: string | null;
  /** Whether its owner may execute it. */
  readonly executable: boolean;
}

const ABSENT: ClientFile = { text: null, problem: null, executable: false };

/** @param root the folder in which the file must be, after links are resolved */
export function readClientFile(path: string, root: string): ClientFile {
  try {
    lstatSync(path);
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error)) ? ABSENT : unusable('cannot be read');
  }
  try {
    const real = realpathSync(path);
    if (!isWithin(real, realpathSync(root))) return unusable(`leads out of ${root}`);
    const bytes = readRegularSync(real, SETTINGS_BYTES_MAX);
    if (!isUtf8(bytes)) return unusable('is not UTF-8');
    const executable = (lstatSync(real).mode & constants.S_IXUSR) !== 0;
    return { text: bytes.toString('utf8'), problem: null, executable };
  } catch (error) {
    return unusable(error instanceof RangeError ? `is larger than ${SETTINGS_BYTES_MAX} bytes` : 'cannot be read');
  }
}

const unusable = (problem: string): ClientFile => ({ ...ABSENT, problem });

/** Whether a path without links is in a folder without links. */
export const isWithin = (path: string, folder: string): boolean =>
  folder === '/' || path.startsWith(`${folder}/`) || path === folder;

/** The copy and the notes of an installation, next to a file. No client reads files with these endings. */
const copyOf = (path: string): string => `${path}.before-turnpike`;
const stateOf = (path: string): string => `${path}.turnpike-install.json`;
const PRIVATE_MODE = 0o600;
const FOLDER_MODE = 0o755;

/** What an earlier installation has noted of a file. */
export interface InstalledFile {
  /** The file before it; null if there was none. */
  readonly before: string | null;
  /** The hash of what it wrote. */
  readonly written_sha256: string;
  /** The hash of the file at its end: the client may have added to it. */
  readonly after_sha256: string;
  /** The first of the folders that it made; null if there were all of them. */
  readonly folder: string | null;
}

/** @returns null if there is no installation, or its notes were changed */
export function readInstalled(path: string, root: string): InstalledFile | null {
  const state = parseState(readClientFile(stateOf(path), root).text);
  if (state === null) return null;
  const copy = readClientFile(copyOf(path), root).text;
  if (state.before_sha256 === null) return { ...state, before: null };
  return copy !== null && sha256(copy) === state.before_sha256 ? { ...state, before: copy } : null;
}

type State = Omit<InstalledFile, 'before'> & { readonly before_sha256: string | null };

function parseState(text: string | null): State | null {
  const value = (readJson(text ?? '') ?? null) as Partial<Readonly<Record<keyof State, unknown>>> | null;
  const { before_sha256 = 0, written_sha256, after_sha256, folder = 0 } = value ?? {};
  const isText = (one: unknown): one is string => typeof one === 'string';
  if (!isText(written_sha256) || !isText(after_sha256)) return null;
  if (!(before_sha256 === null || isText(before_sha256)) || !(folder === null || isText(folder))) return null;
  return { before_sha256, written_sha256, after_sha256, folder };
}

/** A file that an installation writes. */
interface InstallWrite {
  readonly path: string;
  readonly root: string;
  readonly before: string | null;
  readonly after: string;
  readonly mode: number;
}

/**
 * Writes the copy, the notes and then the file. An interruption leaves the old file or the new one.
 * @throws UsageError for a path that leads out of its root, and for a link
 */
export function installFile({ path, root, before, after, mode }: InstallWrite): void {
  const folder = mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE }) ?? null;
  checkPlace(path, root);
  const earlier = readInstalled(path, root);
  if (before === null) rmSync(copyOf(path), { force: true });
  else replaceFile(copyOf(path), before, PRIVATE_MODE);
  const hash = sha256(after);
  writeState(path, {
    before_sha256: before === null ? null : sha256(before),
    written_sha256: hash,
    after_sha256: hash,
    folder: earlier?.folder ?? folder,
  });
  replaceFile(path, after, lstatSync(path, { throwIfNoEntry: false })?.mode ?? mode);
}

/** Notes the file as it is now as the end of the installation: the client itself has added to it. */
export function noteClientChange(path: string, root: string): void {
  const installed = readInstalled(path, root);
  const text = readClientFile(path, root).text;
  if (installed === null || text === null) return;
  const { before, written_sha256, folder } = installed;
  const before_sha256 = before === null ? null : sha256(before);
  writeState(path, { before_sha256, written_sha256, after_sha256: sha256(text), folder });
}

const writeState = (path: string, state: State): void =>
  replaceFile(stateOf(path), `${JSON.stringify(state)}\n`, PRIVATE_MODE);

/** Writes what a file is without the installation, or removes it, and removes the copy, the notes and empty folders. */
export function uninstallFile(path: string, root: string, restored: string | null): void {
  checkPlace(path, root);
  const folder = readInstalled(path, root)?.folder ?? null;
  const existing = lstatSync(path, { throwIfNoEntry: false });
  if (restored === null) rmSync(path, { force: true });
  else replaceFile(path, restored, existing?.mode ?? PRIVATE_MODE);
  for (const own of [copyOf(path), stateOf(path)]) rmSync(own, { force: true });
  if (folder !== null) removeEmptyFolders(dirname(path), folder);
}

function removeEmptyFolders(deepest: string, first: string): void {
  for (let folder = deepest; isWithin(folder, first); folder = dirname(folder)) {
    if (readdirSync(folder).length > 0) return;
    rmdirSync(folder);
  }
}

/** @throws UsageError */
export function checkPlace(path: string, root: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    throw usageError(`${path} is a symbolic link: change the file that it names, or replace the link by a file`);
  const folder = existingFolder(dirname(path));
  if (!isWithin(realpathSync(folder), realpathSync(root)))
    throw usageError(`${path} leads out of ${root}: remove the link in its path`);
}

/** The nearest folder that exists. */
function existingFolder(folder: string): string {
  return lstatSync(folder, { throwIfNoEntry: false }) === undefined ? existingFolder(dirname(folder)) : folder;
}

/** Far more than the hook program has. */
const PROGRAM_BYTES_MAX = 1_048_576;
const PROGRAM_FOLDER_MODE = 0o700;
const PROGRAM_MODE = 0o400;

/** A file that settings start as the hook, or as its interpreter. */
export interface ProgramFile {
  /** The path without links; null if there is no such file. */
  readonly real: string | null;
  /** Null for a file that cannot be read, or is too large to be the hook program, as an interpreter is. */
  readonly sha256: string | null;
}

export function readProgramFile(path: string): ProgramFile {
  let real: string | null = null;
  try {
    real = realpathSync(path);
    return { real, sha256: sha256(readRegularSync(real, PROGRAM_BYTES_MAX)) };
  } catch {
    return { real, sha256: null };
  }
}

/**
 * Writes the hook program, unless it is there already.
 * @throws UsageError for a path in the project
 */
export function installHookProgram(path: string, text: string, project: string): void {
  const folder = dirname(path);
  if (isWithin(realpathSync(existingFolder(folder)), realpathSync(project)))
    throw usageError(`${folder} is in the project: set XDG_DATA_HOME to a folder outside of it`);
  mkdirSync(folder, { recursive: true, mode: PROGRAM_FOLDER_MODE });
  if (readProgramFile(path).sha256 !== sha256(text)) replaceFile(path, text, PROGRAM_MODE);
}
