// The head of a ledger that several workers write, kept where a worker with a new local state sees it (decision 0044):
// each worker has one file in a folder that all of them mount, and where the service names another database, a row of a
// table. So a database that lost entries is refused by every worker, and not only by those whose local state has the
// newer head.
//
//   J1. Each file has one writer, so no write can replace a later head by an earlier one.
//   J2. A head counts as written when both files have it. The table follows (postgres-head-table.ts).
//   J3. The highest head of all places counts. A file that cannot be trusted is an error, not a missing head.

import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { ExternalHead, HeadSeal } from '../../engine/ports/ledger/ledger-store.js';
import { folderNames } from '../../system/files/folder-names.js';
import { fsyncDirectory } from '../../system/files/fsync-directory.js';
import { headFile, type HeadFile } from './head-file.js';

const NAME = /^[0-9a-f]{32}\.head$/;

/** The head of the local state, and those of the other places: the highest counts, and each is written. */
export function keptHeads(local: HeadFile, others: readonly HeadFile[]): HeadFile {
  const all = [local, ...others];
  const problems = all.map(({ problem }) => problem).filter((problem) => problem !== undefined);
  return {
    read: async () => highest(await Promise.all(all.map((one) => one.read()))),
    write: async (head) => {
      await Promise.all(all.map((one) => one.write(head)));
    },
    reopen: async () => {
      await Promise.all(all.map((one) => one.reopen()));
    },
    close: async () => {
      await Promise.all(all.map((one) => one.close()));
    },
    openNote: (note) => local.openNote?.(note) ?? null,
    keys: () => local.keys?.() ?? null,
    ...(problems.length === 0 ? {} : { problem: () => firstOf(problems) }),
    sealWith: (next) => {
      for (const one of all) one.sealWith(next);
    },
    replaceSeal: (next) => {
      for (const one of all) one.replaceSeal?.(next);
    },
  };
}

/** The files of all workers in a folder that they mount. @param worker names the one that this process writes */
export function folderHeads(folder: string, worker: string, first: HeadSeal | null): HeadFile {
  let seal = first;
  const own = headFile(join(folder, `${worker}.head`), seal);
  return {
    read: async () => highest(await readAll(folder, seal)),
    write: async (head) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      await own.write(head);
    },
    reopen: () => own.reopen(),
    close: () => own.close(),
    sealWith: (next) => {
      seal = next;
      own.sealWith(next);
    },
    replaceSeal: (next) => {
      seal = next;
      own.replaceSeal?.(next);
    },
  };
}

/** Puts aside the files whose head the ledger does not contain, as evidence. @returns their new paths */
export async function putAsideHeads(
  folder: string,
  end: string,
  seal: HeadSeal | null,
  isContained: (head: ExternalHead) => Promise<boolean>,
): Promise<readonly string[]> {
  const moved: string[] = [];
  for (const name of folderNames(folder).filter((one) => NAME.test(one))) {
    const path = join(folder, name);
    const head = await headFile(path, seal).read();
    if (head === null || (await isContained(head))) continue;
    await rename(path, `${path}.${end}`);
    moved.push(`${path}.${end}`);
  }
  if (moved.length > 0) await fsyncDirectory(folder);
  return moved;
}

/** Names a worker by its machine and its local state. */
export const headNameOf = (state: string): string =>
  createHash('sha256').update(`${hostname()}\n${state}`).digest('hex').slice(0, 32);

const firstOf = (problems: readonly (() => string | null)[]): string | null =>
  problems.map((problem) => problem()).find((found) => found !== null) ?? null;

const readAll = (folder: string, seal: HeadSeal | null): Promise<readonly (ExternalHead | null)[]> =>
  Promise.all(
    folderNames(folder)
      .filter((name) => NAME.test(name))
      .map((name) => headFile(join(folder, name), seal).read()),
  );

const highest = (heads: readonly (ExternalHead | null)[]): ExternalHead | null =>
  heads.reduce((best, head) => (head !== null && head.size > (best?.size ?? -1) ? head : best), null);
