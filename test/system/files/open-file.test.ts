// Every path that a caller names, or that is in a home directory, is opened by the same functions.

import { afterAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createArchiveDraft } from '../../../src/stores/ledger/archive-file.js';
import { hashFile } from '../../../src/system/files/hash-file.js';
import { hashBagZip, openBagZip } from '../../../src/features/exports/bag/bag-zip.js';
import { headFile } from '../../../src/stores/ledger/head-file.js';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import {
  NotAFile,
  openRegular,
  openRegularSync,
  readRegular,
  readRegularSync,
} from '../../../src/system/files/open-file.js';
import { readPolicyFile } from '../../../src/home/policy/policy-files.js';
import { readSmallFile } from '../../../src/system/files/small-file.js';
import { openDatabase } from '../../../src/stores/sqlite/sqlite-database.js';
import { sqliteHistoryCache } from '../../../src/stores/sqlite/sqlite-history-cache.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { filesIn, isOfPage, parse, nodesOf } from '../../sources.js';
import ts from 'typescript';

const folder = tempFolder('open');
const at = (name: string): string => join(folder, name);
execFileSync('mkfifo', [at('fifo')]);
mkdirSync(at('folder'));
writeFileSync(at('file'), 'content\n');
symlinkSync(at('fifo'), at('link'));
const server = createServer();
const listening = new Promise<void>((resolve) => server.listen(at('socket'), resolve));
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const WAYS: readonly (readonly [string, (path: string) => unknown])[] = [
  ['openRegularSync', openRegularSync],
  ['openRegular', openRegular],
  ['readRegular', (path) => readRegular(path, 100)],
  ['readRegularSync', (path) => readRegularSync(path, 100)],
  ['a file of lines', openLineFile],
  ['the hash of an archive', hashFile],
  ['a zip file', openBagZip],
  ['the hash of a zip file', hashBagZip],
  ['a small file', (path) => readSmallFile(path, { bytesMax: 100 })],
  ['a policy', (path) => readPolicyFile('/', path)],
  ['a head file', (path) => headFile(path).read()],
  ['a ledger', (path) => openDatabase(path, true)],
];

describe('refuses anything but a regular file, at once', () => {
  test.each(WAYS)('%s', async (_name, open) => {
    await listening;
    for (const path of [at('fifo'), at('link'), at('socket'), at('folder'), '/dev/zero', '/dev/tty']) {
      const outcome = Promise.resolve().then(() => open(path));
      await expect(outcome).rejects.toThrow();
    }
  });

  test('a history cache is then in memory', async () => {
    execFileSync('mkfifo', [at('cache')]);
    const cache = sqliteHistoryCache(at('cache'));
    expect(await cache.snapshot('run_x', 0)).toBeNull();
    await cache.close();
  });

  test('an archive is not written over such a path', async () => {
    await expect(createArchiveDraft(at('fifo'))).rejects.toMatchObject({ code: 'USAGE' });
  });
});

test('a regular file is read up to its limit', async () => {
  expect((await readRegular(at('file'), 8)).toString()).toBe('content\n');
  expect(readRegularSync(at('file'), 8).toString()).toBe('content\n');
  await expect(readRegular(at('file'), 7)).rejects.toBeInstanceOf(RangeError);
  expect(() => readRegularSync(at('file'), 7)).toThrow(RangeError);
  expect(() => openRegularSync(at('fifo'))).toThrow(NotAFile);
});

/** Files that use other functions, each with its reason. One that is no longer needed fails the test. */
const OTHERS: Readonly<Record<string, string>> = {
  'src/system/files/open-file.ts': 'it is the way',
  'src/sandbox/commands/command-environment.ts': 'descriptors of this process, in /proc',
  'src/sandbox/commands/command-process.ts': '/dev/null, and its own working folder',
  'src/sandbox/commands/command-scratch.ts': 'pipes that it has made just now',
  'src/interfaces/inspector/page-folder.ts': 'files of this package',
  'src/system/shipped-charts.ts': 'files of this package',
  'src/interfaces/cli/help/prepared-answers.ts': 'files of this package',
  'src/interfaces/cli/templates.ts': 'files of this package',
  'src/stores/sqlite/copy/sqlite-backup.ts': 'a file that it has made just now',
  'src/home/tracked-keys.ts': 'the ignore file of the home, after its size',
  'src/system/network/unix-socket.ts': 'a folder, by O_DIRECTORY',
  'src/features/exports/bag/bag-folder.ts': 'what was looked at by its own descriptor before',
  'src/features/exports/bag/create-bag.ts': 'writes',
  'src/stores/ledger/archive-file.ts': 'writes',
  'src/stores/keys/key-file.ts': 'overwrites a key that was read before',
  'src/stores/ledger/head-file.ts': 'writes to what was read before',
  'src/home/policy/overlay-writer.ts': 'writes',
  'src/system/files/copy-folder.ts': 'creates; reads through openRegular',
  'src/system/files/fsync-directory.ts': 'opens directories to sync them',
  'src/system/files/small-file.ts': 'writes',
  'src/interfaces/restate/content-exchange.ts': 'writes',
  'src/stores/sqlite/content/sqlite-artifact-files.ts': 'writes',
  'src/stores/sqlite/sqlite-binding.ts': 'the manifest of an installed package',
  'src/stores/sqlite/sqlite-database.ts': 'writes',
  'src/stores/sqlite/sqlite-history-cache.ts': 'makes a file after refuseSpecialFile',
  'src/stores/sqlite/writer-lock.ts': 'makes a file',
  'src/stores/records/sqlite-backend.ts': 'makes a file after refuseSpecialFile',
  'src/features/hooks/client-files/count-files.ts': 'appends to a regular file, and does not wait for any other',
  'src/system/files/file-disk-space.ts': 'appends to a regular file, and does not wait for any other',
  'src/system/process-identity.ts': 'files of the kernel in /proc',
  'src/sandbox/files/read-directly.ts': 'the sandbox has its own rules (decision 0007)',
  'src/sandbox/files/sandbox-actions.ts': 'the sandbox has its own rules (decision 0007)',
  'src/sandbox/files/sandbox-walk.ts': 'the sandbox has its own rules (decision 0007)',
  'src/interfaces/cli/demo.ts': 'files of this package',
  'src/stores/postgres/postgres-schema.ts': 'files of this package',
  'src/system/package-version.ts': 'files of this package',
  'src/features/hooks/install/inspect-client.ts': 'files of this package',
  'src/features/hooks/client-files/client-version.ts': 'what the kernel says of processes',
};
const OPENING = ['open', 'openSync', 'readFile', 'readFileSync', 'createReadStream'];

test('no other source file opens files directly', () => {
  const found = filesIn('src', /\.ts$/).filter((path) =>
    nodesOf(parse(path)).some(
      (node) =>
        ts.isImportSpecifier(node) &&
        OPENING.includes((node.propertyName ?? node.name).text) &&
        /^'node:fs(?:\/promises)?'$/.test(node.parent.parent.parent.moduleSpecifier.getText()),
    ),
  );
  expect(found.filter((path) => !isOfPage(path))).toEqual(Object.keys(OTHERS).sort());
});
