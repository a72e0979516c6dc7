/** @modules own */
// C29, one interleaving at a time: another program acts between two calls of one action. What a race meets only by luck
// happens here at a chosen moment, just before the named call of `node:fs` reaches the disk.

import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import {
  CASE,
  done,
  effect,
  failure,
  LIMITS,
  openDescriptors,
  perform,
  run,
  testDirectory,
  treeOf,
} from './sandbox-harness.js';
import type { TestDirectory } from './sandbox-harness.js';

type Call = (...args: readonly unknown[]) => unknown;
let meanwhile: { readonly before: string; readonly act: () => void } | null = null;

const watched = [
  'openSync',
  'fstatSync',
  'linkSync',
  'renameSync',
  'unlinkSync',
  'readSync',
  'mkdirSync',
  'opendirSync',
  'lstatSync',
];
jest.unstable_mockModule('node:fs', () => ({
  ...fs,
  ...Object.fromEntries(
    watched.map((name) => [
      name,
      (...args: readonly unknown[]) => {
        if (meanwhile?.before === name) {
          const { act } = meanwhile;
          meanwhile = null;
          act();
        }
        return (fs as unknown as Record<string, Call>)[name]?.(...args);
      },
    ]),
  ),
}));
const { openSandbox } = await import('../../../src/sandbox/files/file-sandbox.js');

let directory: TestDirectory;
let sandbox: FileSandbox;
let descriptors: number;

const at = (path: string): string => join(directory.home, path);
const RENAME = { source: '/sandbox/d/a.txt', destination: '/sandbox/b.txt' };

beforeEach(() => {
  directory = testDirectory();
  fs.mkdirSync(at('d'), { recursive: true });
  fs.mkdirSync(join(directory.base, 'outside'));
  fs.writeFileSync(at('d/a.txt'), 'alpha');
  fs.writeFileSync(join(directory.base, 'outside/a.txt'), 'outside');
  descriptors = openDescriptors();
  sandbox = openSandbox({ root: directory.root });
  perform(sandbox, 'LIST_FILES', { path: '/sandbox/' });
});

afterEach(() => {
  // Otherwise the moment never came, and the test proved nothing.
  expect(meanwhile).toBeNull();
  expect(treeOf(join(directory.base, 'outside'))).toEqual({ 'a.txt': 'file outside' });
  sandbox.close();
  expect(openDescriptors()).toBe(descriptors);
  directory.remove();
});

function swapForLink(path: string): void {
  fs.rmSync(at(path), { recursive: true });
  fs.symlinkSync(join(directory.base, 'outside', path.endsWith('.txt') ? 'a.txt' : ''), at(path));
}

test('a file replaced by a link after it was inspected is not renamed: SANDBOX_CHANGED', () => {
  meanwhile = { before: 'linkSync', act: () => swapForLink('d/a.txt') };
  expect(perform(sandbox, 'RENAME_FILE', RENAME)).toEqual(failure('SANDBOX_CHANGED'));
  expect(Object.keys(treeOf(directory.home))).toEqual(['d', 'd/a.txt']);
});

test('a file that lost its old name during the rename keeps the new one', () => {
  meanwhile = { before: 'unlinkSync', act: () => fs.unlinkSync(at('d/a.txt')) };
  expect(perform(sandbox, 'RENAME_FILE', RENAME)).toEqual(done());
  expect(treeOf(directory.home)).toEqual({ d: 'dir', 'b.txt': 'file alpha' });
});

test('if the old name became a directory, the new one is removed only if it is not the last', () => {
  meanwhile = {
    before: 'unlinkSync',
    act: () => {
      fs.unlinkSync(at('d/a.txt'));
      fs.mkdirSync(at('d/a.txt'));
    },
  };
  expect(perform(sandbox, 'RENAME_FILE', RENAME)).toEqual({ status: 'unknown' });
  expect(treeOf(directory.home)).toMatchObject({ 'b.txt': 'file alpha' });
});

test('C31: a target that appears at the last moment is not overwritten', () => {
  meanwhile = { before: 'linkSync', act: () => fs.writeFileSync(at('b.txt'), 'beta') };
  expect(perform(sandbox, 'RENAME_FILE', RENAME)).toEqual(failure('ALREADY_EXISTS'));
  expect(treeOf(directory.home)).toEqual({ d: 'dir', 'd/a.txt': 'file alpha', 'b.txt': 'file beta' });
});

test('C30: a target replaced by a link is overwritten, and the file behind the link keeps its bytes', () => {
  meanwhile = { before: 'renameSync', act: () => swapForLink('d/a.txt') };
  const written = perform(sandbox, 'WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'beta' });
  expect(written).toEqual(done({ bytes_written: 4 }));
  expect(treeOf(directory.home)).toEqual({ d: 'dir', 'd/a.txt': 'file beta' });
});

test('C30: a target replaced by a directory is a failure that leaves no temporary file', () => {
  meanwhile = {
    before: 'renameSync',
    act: () => {
      fs.unlinkSync(at('d/a.txt'));
      fs.mkdirSync(at('d/a.txt'));
    },
  };
  const written = perform(sandbox, 'WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'beta' });
  expect(written).toEqual(failure('IS_A_DIRECTORY'));
  expect(treeOf(directory.home)).toEqual({ d: 'dir', 'd/a.txt': 'dir' });
});

test('a directory replaced by a link while it is open stays the directory', () => {
  meanwhile = {
    before: 'renameSync',
    act: () => {
      fs.renameSync(at('d'), at('moved'));
      fs.symlinkSync(join(directory.base, 'outside'), at('d'));
    },
  };
  const written = perform(sandbox, 'WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'beta' });
  expect(written).toEqual(done({ bytes_written: 4 }));
  expect(treeOf(directory.home)).toMatchObject({ 'moved/a.txt': 'file beta' });
});

test('a file replaced by a link while it is open is read as the checked file', () => {
  meanwhile = { before: 'readSync', act: () => swapForLink('d/a.txt') };
  const read = perform(sandbox, 'READ_FILE', { path: '/sandbox/d/a.txt' });
  expect(read).toEqual(done({ content: 'alpha' }));
});

test('a file deleted while it is opened is absent, not another file', () => {
  meanwhile = { before: 'openSync', act: () => swapForLink('d') };
  const read = perform(sandbox, 'READ_FILE', { path: '/sandbox/d/a.txt' });
  expect(read).toEqual(failure('SANDBOX_CHANGED'));
});

test('C29: a hard link that is removed after it was opened is not mistaken for a file with one name', () => {
  const linked = join(directory.base, 'outside/a.txt');
  fs.linkSync(linked, at('hard.txt'));
  // Now the link count is one, and the remaining name is outside.
  meanwhile = { before: 'fstatSync', act: () => fs.unlinkSync(at('hard.txt')) };
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/hard.txt' })).toEqual(failure('FILE_NOT_FOUND'));

  fs.linkSync(linked, at('hard.txt'));
  meanwhile = {
    before: 'fstatSync',
    act: () => {
      fs.unlinkSync(at('hard.txt'));
      // The name that the kernel reports for the removed file.
      fs.writeFileSync(at('hard.txt (deleted)'), 'alpha');
    },
  };
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/hard.txt' })).toEqual(failure('FILE_NOT_FOUND'));

  fs.linkSync(linked, at('hard.txt'));
  meanwhile = { before: 'fstatSync', act: () => fs.renameSync(at('hard.txt'), at('d/hard.txt')) };
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/hard.txt' })).toEqual(failure('SANDBOX_CHANGED'));
});

test('C29: nor when facts are gathered', () => {
  const paths = ['/sandbox/a.txt'];
  fs.writeFileSync(at('a.txt'), 'alpha');
  meanwhile = {
    before: 'openSync',
    act: () => {
      fs.unlinkSync(at('a.txt'));
      fs.linkSync(join(directory.base, 'outside/a.txt'), at('a.txt'));
      meanwhile = { before: 'fstatSync', act: () => fs.unlinkSync(at('a.txt')) };
    },
  };
  const facts = sandbox.gather({ case_id: CASE, paths, usage: false, portable_names: false });
  expect(facts.paths).toEqual([{ status: 'absent' }]);
});

test('D8: nor when a write is settled, which would reveal its content', () => {
  const before = [{ status: 'absent' }] as const;
  const written = effect('WRITE_FILE', { path: '/sandbox/a.txt', content: 'outside' }, { before });
  fs.writeFileSync(at('a.txt'), 'another');
  meanwhile = {
    before: 'openSync',
    act: () => {
      fs.unlinkSync(at('a.txt'));
      fs.linkSync(join(directory.base, 'outside/a.txt'), at('a.txt'));
      meanwhile = { before: 'fstatSync', act: () => fs.unlinkSync(at('a.txt')) };
    },
  };
  expect(sandbox.settle(written)).toEqual({ status: 'unknown' });
});

test('a file may have the name that the kernel reports for a removed one', () => {
  fs.writeFileSync(at('x (deleted)'), 'alpha');
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/x (deleted)' })).toEqual(done({ content: 'alpha' }));
  fs.linkSync(join(directory.base, 'outside/a.txt'), at('y (deleted)'));
  meanwhile = { before: 'fstatSync', act: () => fs.unlinkSync(at('y (deleted)')) };
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/y (deleted)' })).toEqual(failure('FILE_NOT_FOUND'));
});

test('a directory replaced by a FIFO before it is listed is not opened', () => {
  meanwhile = {
    before: 'opendirSync',
    act: () => {
      fs.renameSync(at('d'), at('moved'));
      expect(run('mkfifo', at('d'))).toBe(true);
    },
  };
  const entries = [{ name: 'a.txt', type: 'file' }];
  expect(perform(sandbox, 'LIST_FILES', { path: '/sandbox/d' })).toEqual(done({ entries }));
});

test.each([
  ['up to the limit is read completely', 'alpha+', done({ content: 'alpha+' })],
  ['beyond the limit is TOO_LARGE', 'alpha++', failure('TOO_LARGE')],
])('C34: a file that grows while it is read %s', (_, grown, expected) => {
  const limits = { ...LIMITS, read_bytes_max: 6 };
  meanwhile = { before: 'readSync', act: () => fs.writeFileSync(at('d/a.txt'), grown) };
  expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/d/a.txt' }, { limits })).toEqual(expected);
});

test('D8: a written file replaced by a hard link during settling reveals nothing', () => {
  const before = sandbox.gather({ case_id: CASE, paths: ['/sandbox/d/a.txt'], usage: false, portable_names: false });
  const written = effect('WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'alpha' }, { before: before.paths });
  meanwhile = { before: 'unlinkSync', act: () => fs.linkSync(at('d/a.txt'), join(directory.base, 'hard')) };
  expect(sandbox.settle(written)).toEqual({ status: 'unknown' });
});

test('C32: a name taken at the last moment is ALREADY_EXISTS, and is not counted', () => {
  const before = sandbox.gather({ case_id: 'case_1', paths: [], usage: true, portable_names: false }).usage;
  meanwhile = { before: 'mkdirSync', act: () => fs.writeFileSync(at('new'), '') };
  expect(perform(sandbox, 'CREATE_DIRECTORY', { path: '/sandbox/new' })).toEqual(failure('ALREADY_EXISTS'));
  const after = sandbox.gather({ case_id: 'case_1', paths: [], usage: true, portable_names: false }).usage;
  expect(after).toEqual(before);
});

test('a case directory that another program creates at the same moment is used', () => {
  meanwhile = { before: 'mkdirSync', act: () => fs.mkdirSync(join(directory.root, 'case_2')) };
  const listed = perform(sandbox, 'LIST_FILES', { path: '/sandbox/' }, { case_id: 'case_2' });
  expect(listed).toEqual(done({ entries: [] }));
});
