// Every path that a caller names, or that is in a home directory, is opened by the same functions.

import { afterAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createArchiveDraft, hashFile } from '../../../src/adapters/ledger/archive-file.js';
import { hashBagZip, openBagZip } from '../../../src/adapters/bag/bag-zip.js';
import { headFile } from '../../../src/adapters/ledger/head-file.js';
import { openLineFile } from '../../../src/adapters/files/line-file.js';
import {
  NotAFile,
  openRegular,
  openRegularSync,
  readRegular,
  readRegularSync,
} from '../../../src/adapters/files/open-file.js';
import { readPolicyFile } from '../../../src/adapters/policy/policy-files.js';
import { readSmallFile } from '../../../src/adapters/files/small-file.js';
import { openDatabase } from '../../../src/adapters/sqlite/sqlite-database.js';
import { sqliteHistoryCache } from '../../../src/adapters/sqlite/sqlite-history-cache.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { filesIn, parse, nodesOf } from '../../sources.js';
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
  'src/adapters/files/open-file.ts': 'it is the way',
  'src/adapters/commands/command-environment.ts': 'descriptors of this process, in /proc',
  'src/adapters/commands/command-process.ts': '/dev/null, and its own working folder',
  'src/adapters/commands/command-scratch.ts': 'pipes that it has made just now',
  'src/adapters/page-folder.ts': 'files of this package',
  'src/adapters/shipped-charts.ts': 'files of this package',
  'src/cli/help/prepared-answers.ts': 'files of this package',
  'src/cli/templates.ts': 'files of this package',
  'src/adapters/sqlite/copy/sqlite-backup.ts': 'a file that it has made just now',
  'src/runtime/home/tracked-keys.ts': 'the ignore file of the home, after its size',
  'src/adapters/sandbox/unsafe-access.ts': 'for development only',
  'src/adapters/network/unix-socket.ts': 'a folder, by O_DIRECTORY',
  'src/adapters/bag/bag-folder.ts': 'what was looked at by its own descriptor before',
  'src/adapters/bag/create-bag-folder.ts': 'writes',
  'src/adapters/bag/create-bag-zip.ts': 'writes',
  'src/adapters/ledger/archive-file.ts': 'writes',
  'src/adapters/keys/key-file.ts': 'overwrites a key that was read before',
  'src/adapters/ledger/head-file.ts': 'writes to what was read before',
  'src/adapters/policy/overlay-writer.ts': 'writes',
  'src/adapters/files/copy-folder.ts': 'creates; reads through openRegular',
  'src/adapters/files/fsync-directory.ts': 'opens directories to sync them',
  'src/adapters/files/small-file.ts': 'writes',
  'src/adapters/restate/content-exchange.ts': 'writes',
  'src/adapters/sqlite/content/sqlite-artifact-files.ts': 'writes',
  'src/adapters/sqlite/copy/sqlite-copy-target.ts': 'writes',
  'src/adapters/sqlite/sqlite-binding.ts': 'the manifest of an installed package',
  'src/adapters/sqlite/sqlite-database.ts': 'writes',
  'src/adapters/sqlite/sqlite-history-cache.ts': 'makes a file after refuseSpecialFile',
  'src/adapters/sqlite/writer-lock.ts': 'makes a file',
  'src/adapters/records/sqlite-backend.ts': 'makes a file after refuseSpecialFile',
  'src/adapters/clients/count-file.ts': 'appends to a regular file, and does not wait for any other',
  'src/adapters/files/disk-space.ts': 'appends to a regular file, and does not wait for any other',
  'src/adapters/system/process-identity.ts': 'files of the kernel in /proc',
  'src/adapters/sandbox/open-parents.ts': 'the sandbox has its own rules (decision 0011)',
  'src/adapters/sandbox/read-directly.ts': 'the sandbox has its own rules (decision 0011)',
  'src/adapters/sandbox/sandbox-actions.ts': 'the sandbox has its own rules (decision 0011)',
  'src/adapters/sandbox/sandbox-walk.ts': 'the sandbox has its own rules (decision 0011)',
  'src/cli/demo.ts': 'files of this package',
  'src/cli/create-contract.ts': 'files of this package',
  'src/service/package-version.ts': 'files of this package',
  'src/runtime/clients/inspect-client.ts': 'files of this package',
  'src/adapters/clients/client-version.ts': 'what the kernel says of processes',
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
  expect(found.filter((path) => !path.startsWith('src/inspector/'))).toEqual(Object.keys(OTHERS).sort());
});
