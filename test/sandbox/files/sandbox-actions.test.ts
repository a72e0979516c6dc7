// The success and every failure of each action, on real files.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { done, effect, factOf, failure, openDescriptors, perform, testDirectory, treeOf } from './sandbox-harness.js';
import { LIMITS, type TestDirectory } from './sandbox-harness.js';

let directory: TestDirectory;
let sandbox: FileSandbox;
let descriptors: number;

beforeEach(() => {
  directory = testDirectory();
  mkdirSync(directory.root);
  descriptors = openDescriptors();
  sandbox = openSandbox({ root: directory.root });
  mkdirSync(join(directory.home, 'docs'), { recursive: true });
  writeFileSync(join(directory.home, 'docs/a.txt'), 'alpha');
});

afterEach(() => {
  sandbox.close();
  // W4 of sandbox-walk.ts, after every single test.
  expect(openDescriptors()).toBe(descriptors);
  directory.remove();
});

const put = (path: string, content: string | Uint8Array): void => writeFileSync(join(directory.home, path), content);
const get = (path: string): string => readFileSync(join(directory.home, path), 'utf8');

describe('READ_FILE', () => {
  test('S0-74: the result is {content}, byte for byte', () => {
    put('docs/b.txt', '\uFEFFline\r\nzwei \u{1F600}\n');
    const read = perform(sandbox, 'READ_FILE', { path: '/sandbox/docs/b.txt' });
    expect(read).toEqual(done({ content: '\uFEFFline\r\nzwei \u{1F600}\n' }));
    put('empty.txt', '');
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/empty.txt' })).toEqual(done({ content: '' }));
  });

  test.each([
    ['S0-76: a missing file', '/sandbox/docs/none.txt', 'FILE_NOT_FOUND'],
    ['S0-76: a missing parent', '/sandbox/none/a.txt', 'FILE_NOT_FOUND'],
    ['a directory', '/sandbox/docs', 'IS_A_DIRECTORY'],
    ['C27: the root', '/sandbox/', 'IS_A_DIRECTORY'],
    ['a file as a parent', '/sandbox/docs/a.txt/b', 'NOT_A_DIRECTORY'],
    ['a slash after a file', '/sandbox/docs/a.txt/', 'NOT_A_DIRECTORY'],
    ['a name that no file system accepts', `/sandbox/${'n'.repeat(256)}`, 'PERMISSION_DENIED'],
    ['a name of a temporary file', '/sandbox/.turnpike-tmp-1', 'PERMISSION_DENIED'],
    ['the same in capitals', '/sandbox/.Turnpike-TMP-1/x', 'PERMISSION_DENIED'],
  ])('%s is a failure', (_, path, cause) => {
    expect(perform(sandbox, 'READ_FILE', { path })).toEqual(failure(cause));
  });

  test('C34: content that is not UTF-8 is NOT_TEXT, never lossy text', () => {
    for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x61, 0xe2, 0x82]]) {
      put('bytes.txt', Uint8Array.from(bytes));
      expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/bytes.txt' })).toEqual(failure('NOT_TEXT'));
    }
  });

  test('C34: a file at the limit is read, one byte more is TOO_LARGE, sparse or not', () => {
    const limits = { ...LIMITS, read_bytes_max: 10 };
    put('ten.txt', '0123456789');
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/ten.txt' }, { limits })).toEqual(
      done({ content: '0123456789' }),
    );
    put('eleven.txt', '0123456789x');
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/eleven.txt' }, { limits })).toEqual(failure('TOO_LARGE'));
    truncateSync(join(directory.home, 'ten.txt'), 2 ** 40);
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/ten.txt' })).toEqual(failure('TOO_LARGE'));
  });
});

describe('LIST_FILES', () => {
  test('C09: entries are {name, type}, sorted by UTF-16 code unit', () => {
    for (const name of ['b', 'B', 'a10', 'a9', '\u{1F600}', '\uFF21', 'é']) put(`docs/${name}`, '');
    mkdirSync(join(directory.home, 'docs/dir'));
    symlinkSync('a.txt', join(directory.home, 'docs/link'));
    const listed = perform(sandbox, 'LIST_FILES', { path: '/sandbox/docs/' });
    const names = ['B', 'a.txt', 'a10', 'a9', 'b', 'dir', 'link', 'é', '\u{1F600}', '\uFF21'];
    const types: Record<string, string> = { dir: 'directory', link: 'other' };
    expect(listed).toEqual(done({ entries: names.map((name) => ({ name, type: types[name] ?? 'file' })) }));
  });

  test('C09 C27: an empty directory has no entries; the root is a directory', () => {
    mkdirSync(join(directory.home, 'empty'));
    expect(perform(sandbox, 'LIST_FILES', { path: '/sandbox/empty' })).toEqual(done({ entries: [] }));
    const entries = ['docs', 'empty'].map((name) => ({ name, type: 'directory' }));
    expect(perform(sandbox, 'LIST_FILES', { path: '/sandbox/' })).toEqual(done({ entries }));
  });

  test('C30: temporary files are not listed', () => {
    put('docs/.turnpike-tmp-0', 'left by a crash');
    const entries = [{ name: 'a.txt', type: 'file' }];
    expect(perform(sandbox, 'LIST_FILES', { path: '/sandbox/docs' })).toEqual(done({ entries }));
  });

  test('a directory at the limit is listed, one entry more is TOO_LARGE', () => {
    put('docs/b.txt', '');
    const listWithMax = (list_entries_max: number): unknown =>
      perform(sandbox, 'LIST_FILES', { path: '/sandbox/docs' }, { limits: { ...LIMITS, list_entries_max } });
    expect(listWithMax(2)).toMatchObject({ status: 'done' });
    expect(listWithMax(1)).toEqual(failure('TOO_LARGE'));
  });

  test.each([
    ['a file', '/sandbox/docs/a.txt', 'NOT_A_DIRECTORY'],
    ['a slash after a file', '/sandbox/docs/a.txt/', 'NOT_A_DIRECTORY'],
    ['a missing directory', '/sandbox/none/', 'FILE_NOT_FOUND'],
  ])('%s is a failure', (_, path, cause) => {
    expect(perform(sandbox, 'LIST_FILES', { path })).toEqual(failure(cause));
  });
});

describe('WRITE_FILE', () => {
  test('C30: creates a file (0600) or replaces all of it, and leaves nothing else', () => {
    const written = perform(sandbox, 'WRITE_FILE', { path: '/sandbox/docs/new.md', content: 'zwölf' });
    expect(written).toEqual(done({ bytes_written: 6 }));
    expect(statSync(join(directory.home, 'docs/new.md')).mode & 0o777).toBe(0o600);
    const replaced = perform(sandbox, 'WRITE_FILE', { path: '/sandbox/docs/a.txt', content: 'b' });
    expect(replaced).toEqual(done({ bytes_written: 1 }));
    expect(treeOf(directory.home)).toEqual({ docs: 'dir', 'docs/a.txt': 'file b', 'docs/new.md': 'file zwölf' });
  });

  test('C30: a temporary file left by an earlier attempt of the same effect is replaced', () => {
    const write = effect('WRITE_FILE', { path: '/sandbox/w.txt', content: 'new' });
    sandbox.perform(write);
    rmSync(join(directory.home, 'w.txt'));
    const name = `.turnpike-tmp-${sha256(write.idempotency_key)}`;
    put(name, 'half of th');
    expect(sandbox.perform(write)).toEqual(done({ bytes_written: 3 }));
    expect(treeOf(directory.home)).not.toHaveProperty([name]);
    expect(get('w.txt')).toBe('new');
  });

  test.each([
    ['C30: a missing parent', '/sandbox/none/a.txt', 'FILE_NOT_FOUND'],
    ['a directory', '/sandbox/docs', 'IS_A_DIRECTORY'],
    ['the root', '/sandbox/', 'IS_A_DIRECTORY'],
    ['a file as a parent', '/sandbox/docs/a.txt/b.txt', 'NOT_A_DIRECTORY'],
    ['a slash after a file', '/sandbox/docs/a.txt/', 'NOT_A_DIRECTORY'],
    ['a slash after a new name', '/sandbox/docs/new.txt/', 'NOT_A_DIRECTORY'],
    ['a name of a temporary file', '/sandbox/docs/.turnpike-tmp-x', 'PERMISSION_DENIED'],
  ])('%s is a failure that changes nothing', (_, path, cause) => {
    const before = treeOf(directory.home);
    expect(perform(sandbox, 'WRITE_FILE', { path, content: 'x' })).toEqual(failure(cause));
    expect(treeOf(directory.home)).toEqual(before);
  });

  test('S0-53: content that would not be written unchanged is not written', () => {
    const args = { path: '/sandbox/a.txt', content: 'a\ud800' };
    expect(perform(sandbox, 'WRITE_FILE', args)).toEqual(failure('INTERNAL'));
    expect(existsSync(join(directory.home, 'a.txt'))).toBe(false);
  });
});

describe('CREATE_DIRECTORY', () => {
  test('C32: makes one directory (0700), with or without a slash', () => {
    expect(perform(sandbox, 'CREATE_DIRECTORY', { path: '/sandbox/docs/sub' })).toEqual(done());
    expect(perform(sandbox, 'CREATE_DIRECTORY', { path: '/sandbox/docs/sub/deep/' })).toEqual(done());
    expect(statSync(join(directory.home, 'docs/sub/deep')).mode & 0o777).toBe(0o700);
  });

  test.each([
    ['C32: an existing directory', '/sandbox/docs', 'ALREADY_EXISTS'],
    ['C27: the root', '/sandbox/', 'ALREADY_EXISTS'],
    ['an existing file', '/sandbox/docs/a.txt', 'ALREADY_EXISTS'],
    ['a slash after a file', '/sandbox/docs/a.txt/', 'NOT_A_DIRECTORY'],
    ['C32: two at once', '/sandbox/x/y', 'FILE_NOT_FOUND'],
  ])('%s is a failure', (_, path, cause) => {
    const before = treeOf(directory.home);
    expect(perform(sandbox, 'CREATE_DIRECTORY', { path })).toEqual(failure(cause));
    expect(treeOf(directory.home)).toEqual(before);
  });
});

describe('DELETE_FILE', () => {
  test('removes one file', () => {
    expect(perform(sandbox, 'DELETE_FILE', { path: '/sandbox/docs/a.txt' })).toEqual(done());
    expect(treeOf(directory.home)).toEqual({ docs: 'dir' });
  });

  test.each([
    ['C32: a directory', '/sandbox/docs', 'IS_A_DIRECTORY'],
    ['the root', '/sandbox/', 'IS_A_DIRECTORY'],
    ['S0-76: a missing file', '/sandbox/none.txt', 'FILE_NOT_FOUND'],
    ['a slash after a file', '/sandbox/docs/a.txt/', 'NOT_A_DIRECTORY'],
  ])('%s is a failure', (_, path, cause) => {
    expect(perform(sandbox, 'DELETE_FILE', { path })).toEqual(failure(cause));
    expect(get('docs/a.txt')).toBe('alpha');
  });
});

describe('RENAME_FILE', () => {
  test('moves a file, also to another directory', () => {
    mkdirSync(join(directory.home, 'other'));
    const args = { source: '/sandbox/docs/a.txt', destination: '/sandbox/other/b.md' };
    expect(perform(sandbox, 'RENAME_FILE', args)).toEqual(done());
    expect(treeOf(directory.home)).toEqual({ docs: 'dir', other: 'dir', 'other/b.md': 'file alpha' });
    expect(factOf(sandbox, '/sandbox/other/b.md')).toMatchObject({ status: 'file', bytes: 5 });
  });

  test.each([
    ['C31: an existing target', 'docs/a.txt', 'docs/b.txt', 'ALREADY_EXISTS'],
    ['C31: itself', 'docs/a.txt', 'docs/a.txt', 'ALREADY_EXISTS'],
    ['C31: a directory as the target', 'docs/a.txt', 'docs', 'ALREADY_EXISTS'],
    ['C31: the root as the target', 'docs/a.txt', '', 'ALREADY_EXISTS'],
    ['a missing source', 'docs/none.txt', 'docs/c.txt', 'FILE_NOT_FOUND'],
    ['a missing parent of the target', 'docs/a.txt', 'none/c.txt', 'FILE_NOT_FOUND'],
    ['a directory', 'docs', 'c.txt', 'IS_A_DIRECTORY'],
    ['a slash after the source', 'docs/a.txt/', 'c.txt', 'NOT_A_DIRECTORY'],
    ['a slash after the target', 'docs/a.txt', 'c.txt/', 'NOT_A_DIRECTORY'],
    ['a name of a temporary file', 'docs/a.txt', '.turnpike-tmp-c', 'PERMISSION_DENIED'],
  ])('%s is a failure that changes nothing', (_, source, destination, cause) => {
    put('docs/b.txt', 'beta');
    const before = treeOf(directory.home);
    const args = { source: `/sandbox/${source}`, destination: `/sandbox/${destination}` };
    expect(perform(sandbox, 'RENAME_FILE', args)).toEqual(failure(cause));
    expect(treeOf(directory.home)).toEqual(before);
  });
});
