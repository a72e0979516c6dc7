// Facts, names, cases, and opening the sandbox; the actions are in `sandbox-actions.test.ts`.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { done, effect, factOf, failure, openDescriptors, perform, testDirectory, treeOf } from './sandbox-harness.js';
import { CASE, run, type TestDirectory } from './sandbox-harness.js';

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

describe('gather', () => {
  test('facts come in the order of the request, with decimal identities', () => {
    const facts = sandbox.gather({
      case_id: CASE,
      paths: ['/sandbox/docs/a.txt', '/sandbox/docs/', '/sandbox/b.txt', '/sandbox/x/b.txt'],
      usage: true,
      portable_names: false,
    });
    const stats = statSync(join(directory.home, 'docs/a.txt'), { bigint: true });
    const file = { status: 'file', bytes: 5, inode: String(stats.ino), mtime_ns: String(stats.mtimeNs) };
    const decimal: unknown = expect.stringMatching(/^\d+$/);
    const folder = { status: 'directory', inode: decimal, mtime_ns: decimal };
    expect(facts.paths).toEqual([file, folder, { status: 'absent' }, { status: 'no_parent' }]);
    expect(facts.usage).toEqual({ bytes: 5, files: 2 });
  });

  test.each([
    ['/sandbox/', 'directory'],
    ['/sandbox/docs/a.txt/', 'not_a_directory'],
    ['/sandbox/docs/a.txt/x', 'not_a_directory'],
    ['/sandbox/docs/new/', 'absent'],
  ])('%j is %s', (path, status) => {
    expect(factOf(sandbox, path)).toMatchObject({ status });
  });

  test.each([
    '/sandbox',
    '/sandbox_evil/x',
    '/etc/passwd',
    'docs/a.txt',
    '',
    '/sandbox//docs',
    '/sandbox//',
    '/sandbox/docs//',
    '/sandbox/./docs',
    '/sandbox/docs/.',
    '/sandbox/docs/..',
    '/sandbox/../case_2/a.txt',
    '/sandbox/a\0.txt',
    '/sandbox/a\n.txt',
    '/sandbox/a\\b',
    '/sandbox/\ud800',
  ])('S0-49 C22 C28: %j is not canonical, and nothing is looked up', (path) => {
    expect(factOf(sandbox, path)).toEqual({ status: 'error', cause: 'INTERNAL' });
    for (const action of ['READ_FILE', 'LIST_FILES', 'WRITE_FILE', 'CREATE_DIRECTORY', 'DELETE_FILE']) {
      expect(perform(sandbox, action, { path, content: 'x' })).toEqual(failure('INTERNAL'));
    }
    const there = '/sandbox/docs/a.txt';
    expect(perform(sandbox, 'RENAME_FILE', { source: path, destination: there })).toEqual(failure('INTERNAL'));
    expect(perform(sandbox, 'RENAME_FILE', { source: there, destination: path })).toEqual(failure('INTERNAL'));
  });

  test('C28: dots and unusual letters have no special meaning in a name', () => {
    for (const name of ['a..b.txt', '...', '.txt', '%2e%2e', '~', '$HOME', ' ', 'é']) {
      expect(perform(sandbox, 'WRITE_FILE', { path: `/sandbox/${name}`, content: name })).toMatchObject(done());
      expect(get(name)).toBe(name);
    }
  });

  test('a name that is too long, or reserved, is an error fact', () => {
    expect(factOf(sandbox, `/sandbox/${'n'.repeat(256)}`)).toEqual({ status: 'error', cause: 'PERMISSION_DENIED' });
    expect(factOf(sandbox, `/sandbox/${'n'.repeat(256)}/x`)).toEqual({ status: 'error', cause: 'PERMISSION_DENIED' });
    expect(factOf(sandbox, '/sandbox/.turnpike-tmp-1')).toEqual({ status: 'error', cause: 'PERMISSION_DENIED' });
  });

  test('C28: every action accepts the longest name and the longest path', () => {
    const longest = `${'n'.repeat(251)}.txt`;
    // 1,024 bytes, the maximum of every policy.
    const folder = `/sandbox/${[255, 255, 250].map((length) => 'd'.repeat(length)).join('/')}`;
    const parents = folder.split('/').slice(2);
    parents.forEach((_, depth) => {
      const path = `/sandbox/${parents.slice(0, depth + 1).join('/')}`;
      expect(perform(sandbox, 'CREATE_DIRECTORY', { path })).toEqual(done());
    });
    const path = `${folder}/${'f'.repeat(1_024 - folder.length - 1)}`;
    const destination = `/sandbox/b${longest.slice(1)}`;
    for (const file of [path, `/sandbox/${longest}`]) {
      expect(perform(sandbox, 'WRITE_FILE', { path: file, content: 'x' })).toMatchObject(done());
      expect(perform(sandbox, 'READ_FILE', { path: file })).toEqual(done({ content: 'x' }));
      expect(factOf(sandbox, file)).toMatchObject({ status: 'file' });
    }
    expect(path).toHaveLength(1_024);
    expect(perform(sandbox, 'LIST_FILES', { path: folder })).toMatchObject({ result: { entries: [{ type: 'file' }] } });
    expect(perform(sandbox, 'RENAME_FILE', { source: path, destination })).toMatchObject(done());
    expect(perform(sandbox, 'DELETE_FILE', { path: destination })).toEqual(done());
  });

  test('a file beyond PATH_MAX, whose path the kernel cannot report, is not read', () => {
    let folder = '/sandbox';
    for (let depth = 0; depth < 18; depth += 1) {
      folder += `/${'d'.repeat(250)}`;
      expect(perform(sandbox, 'CREATE_DIRECTORY', { path: folder })).toEqual(done());
    }
    const path = `${folder}/a.txt`;
    expect(path.length).toBeGreaterThan(4_096);
    expect(perform(sandbox, 'WRITE_FILE', { path, content: 'x' })).toMatchObject(done());
    expect(perform(sandbox, 'READ_FILE', { path })).toEqual(failure('PERMISSION_DENIED'));
    expect(factOf(sandbox, path)).toEqual({ status: 'error', cause: 'PERMISSION_DENIED' });
    expect(perform(sandbox, 'DELETE_FILE', { path })).toEqual(done());
    // Node's own removal uses the whole path.
    expect(run('rm', '-r', join(directory.home, 'd'.repeat(250)))).toBe(true);
  });

  test('an unknown action is INTERNAL', () => {
    for (const action of ['THINK', 'constructor', 'read_file', '']) {
      expect(perform(sandbox, action, { path: '/sandbox/docs/a.txt' })).toEqual(failure('INTERNAL'));
    }
  });
});

describe('portable names', () => {
  test.each([
    ['A.TXT', 'a.txt'],
    ['caf\u00e9', 'cafe\u0301'],
    ['stra\u00dfe', 'STRASSE'],
    ['\u1e9e', 'ss'],
    ['\u017fet', 'SET'],
    ['\u212a', 'k'],
  ])('%j next to %j is refused as a twin', (there, wanted) => {
    put(there, '');
    const path = `/sandbox/${wanted}`;
    expect(factOf(sandbox, path, { portable: true })).toEqual({ status: 'refused', kind: 'name_twin' });
    expect(factOf(sandbox, path)).toEqual({ status: 'absent' });
    expect(factOf(sandbox, `/sandbox/${there}`, { portable: true })).toMatchObject({ status: 'file' });
  });

  test('a name without a twin, or with one in another directory, is accepted', () => {
    expect(factOf(sandbox, '/sandbox/A.TXT', { portable: true })).toEqual({ status: 'absent' });
    expect(factOf(sandbox, '/sandbox/docs/b.txt', { portable: true })).toEqual({ status: 'absent' });
  });
});

describe('cases', () => {
  test('S0-47 S0-49: the files of another case do not exist', () => {
    perform(sandbox, 'WRITE_FILE', { path: '/sandbox/secret.txt', content: 's' }, { case_id: 'case_2' });
    expect(factOf(sandbox, '/sandbox/secret.txt')).toEqual({ status: 'absent' });
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/secret.txt' })).toEqual(failure('FILE_NOT_FOUND'));
    expect(factOf(sandbox, '/sandbox/secret.txt', { case_id: 'case_2' })).toMatchObject({ status: 'file' });
  });

  test('the directory of a case is created (0700) on first use, by gather or perform', () => {
    expect(factOf(sandbox, '/sandbox/a', { case_id: 'case_3' })).toEqual({ status: 'absent' });
    expect(statSync(join(directory.root, 'case_3')).mode & 0o777).toBe(0o700);
    perform(sandbox, 'LIST_FILES', { path: '/sandbox/' }, { case_id: 'case_4' });
    expect(existsSync(join(directory.root, 'case_4'))).toBe(true);
  });

  test.each(['', '.', '..', '../root', 'a/b', '-x', '_x', 'a.b', 'a\0', 'ä', 'a'.repeat(81)])(
    '%j is not a case id, and no directory is created for it',
    (case_id) => {
      const before = readdirSync(directory.root);
      expect(factOf(sandbox, '/sandbox/a', { case_id })).toEqual({ status: 'error', cause: 'INTERNAL' });
      expect(perform(sandbox, 'LIST_FILES', { path: '/sandbox/' }, { case_id })).toEqual(failure('INTERNAL'));
      expect(readdirSync(directory.root)).toEqual(before);
    },
  );

  test('a case directory that was removed or replaced is not used any more', () => {
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/docs/a.txt' })).toEqual(done({ content: 'alpha' }));
    renameSync(directory.home, join(directory.base, 'backup'));
    expect(perform(sandbox, 'READ_FILE', { path: '/sandbox/docs/a.txt' })).toEqual(failure('FILE_NOT_FOUND'));
    perform(sandbox, 'WRITE_FILE', { path: '/sandbox/b.txt', content: 'b' });
    expect(treeOf(directory.home)).toEqual({ 'b.txt': 'file b' });
    rmSync(directory.home, { recursive: true });
    expect(perform(sandbox, 'WRITE_FILE', { path: '/sandbox/c.txt', content: 'c' })).toMatchObject(done());
  });

  test('at most 256 cases are kept open, and none is lost', () => {
    const cases = Array.from({ length: 300 }, (_, index) => `many_${index}`);
    for (const case_id of cases) {
      perform(sandbox, 'WRITE_FILE', { path: '/sandbox/id.txt', content: case_id }, { case_id });
    }
    expect(openDescriptors() - descriptors).toBe(257);
    for (const case_id of cases) {
      const read = perform(sandbox, 'READ_FILE', { path: '/sandbox/id.txt' }, { case_id });
      expect(read).toEqual(done({ content: case_id }));
    }
  });
});

describe('openSandbox', () => {
  test('a root that is missing or not a directory is SANDBOX_UNUSABLE', () => {
    for (const root of [join(directory.base, 'none'), join(directory.home, 'docs/a.txt')]) {
      expect(() => openSandbox({ root })).toThrow(expect.objectContaining({ code: 'SANDBOX_UNUSABLE' }));
    }
  });

  test('a closed sandbox throws on use', () => {
    const other = openSandbox({ root: directory.root });
    other.close();
    other.close();
    const list = effect('LIST_FILES', { path: '/sandbox/' });
    expect(() => other.perform(list)).toThrow(expect.objectContaining({ code: 'USAGE' }));
    expect(() => other.settle(list)).toThrow(expect.objectContaining({ code: 'USAGE' }));
    expect(() => factOf(other, '/sandbox/')).toThrow(expect.objectContaining({ code: 'USAGE' }));
  });
});

describe('off Linux', () => {
  const onPlatform = <T>(platform: NodeJS.Platform, use: () => T): T => {
    const real = process.platform;
    Object.defineProperty(process, 'platform', { value: platform });
    try {
      return use();
    } finally {
      Object.defineProperty(process, 'platform', { value: real });
    }
  };

  test('the sandbox is refused unless unsafe access was requested; on Windows always', () => {
    const { root } = directory;
    const unsupported: unknown = expect.objectContaining({ code: 'UNSUPPORTED_PLATFORM' });
    expect(() => onPlatform('darwin', () => openSandbox({ root }))).toThrow(unsupported);
    expect(() => onPlatform('win32', () => openSandbox({ root, unsafe: true }))).toThrow(unsupported);
  });

  test('unsafe access makes the same checks on plain paths', () => {
    const unsafe = onPlatform('darwin', () => openSandbox({ root: directory.root, unsafe: true }));
    symlinkSync('docs', join(directory.home, 'link'));
    symlinkSync('a.txt', join(directory.home, 'docs/link.txt'));
    expect(perform(unsafe, 'WRITE_FILE', { path: '/sandbox/docs/b.txt', content: 'b' })).toMatchObject(done());
    const args = { source: '/sandbox/docs/b.txt', destination: '/sandbox/c.txt' };
    expect(perform(unsafe, 'RENAME_FILE', args)).toEqual(done());
    expect(perform(unsafe, 'READ_FILE', { path: '/sandbox/c.txt' })).toEqual(done({ content: 'b' }));
    expect(perform(unsafe, 'READ_FILE', { path: '/sandbox/docs/none' })).toEqual(failure('FILE_NOT_FOUND'));
    for (const path of ['/sandbox/link/a.txt', '/sandbox/docs/link.txt']) {
      expect(factOf(unsafe, path)).toEqual({ status: 'refused', kind: 'symlink' });
      expect(perform(unsafe, 'READ_FILE', { path })).toEqual(failure('SANDBOX_CHANGED'));
    }
    expect(openDescriptors()).toBe(descriptors + 1);
    unsafe.close();
  });
});
