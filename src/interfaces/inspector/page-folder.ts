// The built files of a page, all loaded at once: no request reads from the disk.

import { usageError } from '../../core/errors.js';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFile } from '../../system/package-files.js';

export interface PageFile {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** Whether its name changes with its content, so that clients may cache it indefinitely. */
  readonly immutable: boolean;
}

/** The file types of a built page; no others are served. */
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  json: 'application/json',
};
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,120}$/;

/**
 * Loads `index.html`, `approvals.html` if it exists, and `assets`. @returns the files by URL path
 * @throws UsageError if there is no index.html
 */
export function readPageFolder(folder: string): ReadonlyMap<string, PageFile> {
  const index = join(folder, 'index.html');
  if (!existsSync(index)) throw usageError(`${folder} has no index.html: build the page`);
  const page = readPageFile(index, false);
  const approvals = join(folder, 'approvals.html');
  // One program has both pages, and its path says which.
  const otherPages = existsSync(approvals) ? readPageFile(approvals, false) : page;
  const files = new Map([
    ['/', page],
    ['/approvals', otherPages],
    ['/coverage', otherPages],
  ]);
  const assets = join(folder, 'assets');
  const names = existsSync(assets) ? readdirSync(assets, { withFileTypes: true }) : [];
  for (const entry of names) {
    const { name } = entry;
    if (!entry.isFile() || !NAME.test(name) || !Object.hasOwn(TYPES, extensionOf(name))) continue;
    files.set(`/assets/${name}`, readPageFile(join(assets, name), true));
  }
  return files;
}

const extensionOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

const readPageFile = (path: string, immutable: boolean): PageFile => ({
  bytes: readFileSync(path),
  type: TYPES[extensionOf(path)] ?? 'application/octet-stream',
  immutable,
});

/** The page that was built with this package; null without a build, for example when run from the sources. */
export function readBuiltPage(): ReadonlyMap<string, PageFile> | null {
  const folder = findBuiltFolder();
  return folder === null ? null : readPageFolder(folder);
}

/** The same page as one file, with a placeholder for a ledger; null without a build. */
export function readBuiltTemplate(): string | null {
  const folder = findBuiltFolder();
  return folder === null ? null : readFileSync(join(folder, 'one-file.html'), 'utf8');
}

function findBuiltFolder(): string | null {
  const folders = [packageFile('inspector'), packageFile('dist/inspector')];
  return folders.find((folder) => existsSync(join(folder, 'index.html'))) ?? null;
}
