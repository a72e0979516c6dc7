/** @modules own */
// The file system fails, or the process dies, at the 1st, the 2nd, ... the last call of every action (as in the tests
// of SQLite). In every case `failed` means that nothing changed, no temporary file and no descriptor is left, and
// settling finds the outcome that was unknown.

import { afterAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Effect, EffectResult, PathFact } from '../../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import type { FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { CASE, done, effect, factOf, failure, openDescriptors, testDirectory, treeOf } from './sandbox-harness.js';
import { text, usageOf } from './sandbox-harness.js';
import { granted } from '../../fixtures/granted.js';

/** The call of `node:fs` that fails: the n-th one, counted from 1, or the first with that name. */
let trouble: { readonly at: number | string; readonly code: string } | null = null;
let calls: string[] = [];

/** The process is dead: none of its later calls reaches the disk. */
class Death extends Error {}

const FAILING = ['openSync', 'lstatSync', 'fstatSync', 'opendirSync', 'readSync', 'mkdirSync', 'linkSync'] as const;
const CHANGING = ['renameSync', 'unlinkSync', 'fsyncSync', 'writeFileSync'] as const;

function troubled(name: string): (...args: readonly unknown[]) => unknown {
  const real = (fs as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[name];
  return (...args) => {
    calls.push(name);
    if (trouble?.code === 'death' && calls.length >= Number(trouble.at)) throw new Death(name);
    if (trouble?.at === calls.length || trouble?.at === name) {
      const error = new Error(`${trouble.code}: simulated, ${name}`);
      throw Object.assign(error, { code: trouble.code, errno: -5, syscall: name });
    }
    return real?.(...args);
  };
}

jest.unstable_mockModule('node:fs', () => ({
  ...fs,
  ...Object.fromEntries([...FAILING, ...CHANGING].map((name) => [name, troubled(name)])),
}));
const { openSandbox } = await import('../../../src/sandbox/files/file-sandbox.js');

const directory = testDirectory();
afterAll(() => directory.remove());
beforeEach(() => {
  trouble = null;
});

const ACTIONS: readonly (readonly [string, JsonObject, EffectResult])[] = [
  ['READ_FILE', { path: '/sandbox/d/a.txt' }, done({ content: 'alpha' })],
  ['LIST_FILES', { path: '/sandbox/d' }, done({ entries: [{ name: 'a.txt', type: 'file' }] })],
  ['WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'beta' }, done({ bytes_written: 4 })],
  ['WRITE_FILE', { path: '/sandbox/d/new.txt', content: 'beta' }, done({ bytes_written: 4 })],
  ['CREATE_DIRECTORY', { path: '/sandbox/d/new' }, done()],
  ['DELETE_FILE', { path: '/sandbox/d/a.txt' }, done()],
  ['RENAME_FILE', { source: '/sandbox/d/a.txt', destination: '/sandbox/b.txt' }, done()],
];

interface Scene {
  readonly sandbox: FileSandbox;
  readonly committed: Effect;
  readonly before: Record<string, string>;
}

/** A fresh sandbox with `d/a.txt`, in which the action was authorized. */
function scene(action: string, args: JsonObject): Scene {
  trouble = null;
  fs.rmSync(directory.root, { recursive: true, force: true });
  fs.mkdirSync(join(directory.home, 'd'), { recursive: true });
  fs.writeFileSync(join(directory.home, 'd/a.txt'), 'alpha');
  const sandbox = openSandbox({ root: directory.root });
  const paths = ['path', 'source', 'destination'].map((name) => args[name]).filter((path) => path !== undefined);
  const before = paths.map((path): PathFact => factOf(sandbox, text(path)));
  usageOf(sandbox);
  return { sandbox, committed: effect(action, args, { before }), before: treeOf(directory.home) };
}

/** Runs the action with a fault at its n-th call, for every n, until it succeeds without one. */
function forEveryCall(
  row: (typeof ACTIONS)[number],
  code: string,
  check: (scene: Scene, result: unknown) => void,
): number {
  const [action, args, expected] = row;
  for (let at = 1; ; at += 1) {
    const descriptors = openDescriptors();
    const now = scene(action, args);
    calls = [];
    trouble = { at, code };
    let result: unknown = 'dead';
    try {
      result = now.sandbox.perform(now.committed);
    } catch (error) {
      if (!(error instanceof Death)) throw error;
    }
    const through = calls.length < at;
    trouble = null;
    check(now, result);
    now.sandbox.close();
    expect(openDescriptors()).toBe(descriptors);
    if (through) {
      expect(result).toEqual(expected);
      return at - 1;
    }
  }
}

const files = (): number => Object.keys(treeOf(directory.home)).length;

describe.each(ACTIONS)('%s %j', (...row) => {
  const [action, args, expected] = row;
  const after = afterwards(action, args);

  test('S0-55: if a call fails, `failed` is certain and leaves nothing behind, and settling finds the other outcomes', () => {
    const called = forEveryCall(row, 'EIO', ({ sandbox, committed, before }, result) => {
      const tree = treeOf(directory.home);
      const { status } = result as EffectResult;
      if (status === 'failed') {
        expect(result).toEqual(failure('IO_ERROR'));
        expect(tree).toEqual(before);
      }
      if (status === 'done') expect(tree).toEqual(after);
      if (status === 'unknown') {
        const settled = sandbox.settle(committed);
        expect([failure('INTERRUPTED'), expected]).toContainEqual(settled);
        expect(treeOf(directory.home)).toEqual(settled.status === 'done' ? after : before);
      }
      expect(usageOf(sandbox)?.files).toBe(files());
    });
    expect(called).toBeGreaterThanOrEqual(4);
  });

  test('D8: if the process dies at a call, settling finds the true outcome and leaves nothing behind', () => {
    const settlements = new Set<string>();
    forEveryCall(row, 'death', ({ committed, before }) => {
      const restarted = openSandbox({ root: directory.root });
      const settled = restarted.settle(committed);
      settlements.add(settled.status);
      if (settled.status === 'failed') {
        expect(settled).toEqual(failure('INTERRUPTED'));
        expect(treeOf(directory.home)).toEqual(before);
      } else {
        expect(settled).toEqual(expected);
        expect(treeOf(directory.home)).toEqual(after);
      }
      expect(usageOf(restarted)?.files).toBe(files());
      restarted.close();
    });
    const reads = action === 'READ_FILE' || action === 'LIST_FILES';
    expect(settlements).toEqual(new Set(reads ? ['done'] : ['failed', 'done']));
  });
});

/** The expected disk after the action. */
function afterwards(action: string, args: JsonObject): Record<string, string> {
  const { sandbox, committed } = scene(action, args);
  expect(sandbox.perform(committed)).toMatchObject({ status: 'done' });
  sandbox.close();
  return treeOf(directory.home);
}

/** The number of the call that makes the action durable. */
function lastSync(action: string, args: JsonObject): number {
  const { sandbox, committed } = scene(action, args);
  calls = [];
  sandbox.perform(committed);
  sandbox.close();
  return calls.lastIndexOf('fsyncSync') + 1;
}

test.each([
  ['ENOENT', 'FILE_NOT_FOUND'],
  ['EISDIR', 'IS_A_DIRECTORY'],
  ['ENOTDIR', 'NOT_A_DIRECTORY'],
  ['EEXIST', 'ALREADY_EXISTS'],
  ['EACCES', 'PERMISSION_DENIED'],
  ['EPERM', 'PERMISSION_DENIED'],
  ['EROFS', 'PERMISSION_DENIED'],
  ['ENOSPC', 'NO_SPACE'],
  // EDQUOT, as libuv reports it.
  ['Unknown system error -122', 'NO_SPACE'],
  ['EMLINK', 'NO_SPACE'],
  ['EFBIG', 'TOO_LARGE'],
  ['ELOOP', 'SANDBOX_CHANGED'],
  ['EXDEV', 'SANDBOX_CHANGED'],
  ['EIO', 'IO_ERROR'],
  ['EMFILE', 'IO_ERROR'],
  ['Unknown system error -999', 'IO_ERROR'],
])('S0-54: %s is %s', (code, cause) => {
  const { sandbox, committed, before } = scene('DELETE_FILE', { path: '/sandbox/d/a.txt' });
  trouble = { at: 'unlinkSync', code };
  expect(sandbox.perform(committed)).toEqual(failure(cause));
  expect(treeOf(directory.home)).toEqual(before);
  sandbox.close();
});

test('D8: if the process dies while it finishes a rename, the next settling finishes it', () => {
  const [row] = ACTIONS.slice(-1);
  const [action, args] = row ?? ['', {}];
  for (let at = 1, isThrough = false; !isThrough; at += 1) {
    const { sandbox, committed } = scene(action, args);
    fs.linkSync(join(directory.home, 'd/a.txt'), join(directory.home, 'b.txt'));
    calls = [];
    trouble = { at, code: 'death' };
    try {
      expect(sandbox.settle(committed)).toEqual(done());
      isThrough = true;
    } catch (error) {
      if (!(error instanceof Death)) throw error;
    }
    trouble = null;
    expect(sandbox.settle(committed)).toEqual(done());
    expect(treeOf(directory.home)).toEqual({ 'b.txt': 'file alpha', d: 'dir' });
    sandbox.close();
  }
});

test('D9: a change is durable before it is reported: content before its name, the name before the result', () => {
  const order = (action: string, args: JsonObject): string => {
    const { sandbox, committed } = scene(action, args);
    calls = [];
    sandbox.perform(committed);
    sandbox.close();
    return calls.filter((name) => ['mkdirSync', 'linkSync', ...CHANGING].includes(name)).join(' ');
  };
  const path = '/sandbox/d/a.txt';
  expect(order('WRITE_FILE', { path, content: 'x' })).toBe('writeFileSync fsyncSync renameSync fsyncSync');
  expect(order('CREATE_DIRECTORY', { path: '/sandbox/new' })).toBe('mkdirSync fsyncSync');
  expect(order('DELETE_FILE', { path })).toBe('unlinkSync fsyncSync');
  const renaming = order('RENAME_FILE', { source: path, destination: '/sandbox/b.txt' });
  expect(renaming).toBe('linkSync fsyncSync unlinkSync fsyncSync');
});

test.each(ACTIONS.slice(2))('D9: if the last fsync of %s %j fails, the outcome is unknown', (action, args) => {
  const at = lastSync(action, args);
  const { sandbox, committed } = scene(action, args);
  calls = [];
  trouble = { at, code: 'EIO' };
  expect(sandbox.perform(committed)).toEqual({ status: 'unknown' });
  sandbox.close();
});

test('D9: a rename whose new name is not durable leaves the old one', () => {
  const { sandbox, committed } = scene('RENAME_FILE', { source: '/sandbox/d/a.txt', destination: '/sandbox/b.txt' });
  trouble = { at: 'fsyncSync', code: 'EIO' };
  expect(sandbox.perform(committed)).toEqual({ status: 'unknown' });
  expect(treeOf(directory.home)).toEqual({ 'b.txt': 'file alpha', d: 'dir', 'd/a.txt': 'file alpha' });
  sandbox.close();
});

test('C34: a file that is too large is refused before a byte of it is read', () => {
  const { sandbox, committed } = scene('READ_FILE', { path: '/sandbox/d/a.txt' });
  calls = [];
  const limits = { ...committed.limits, read_bytes_max: 4 };
  expect(sandbox.perform(granted({ ...committed, limits }))).toEqual(failure('TOO_LARGE'));
  expect(calls).not.toContain('readSync');
  sandbox.close();
});

test('D9: the directory of a new case is durable before an action runs in it', () => {
  const { sandbox } = scene('LIST_FILES', { path: '/sandbox/d' });
  calls = [];
  factOf(sandbox, '/sandbox/a', { case_id: 'case_2' });
  expect(calls.filter((name) => name.startsWith('mkdir') || name.startsWith('fsync'))).toEqual([
    'mkdirSync',
    'fsyncSync',
  ]);
  sandbox.close();
});

test('if the usage cannot be measured, no fact is returned', () => {
  const { sandbox } = scene('LIST_FILES', { path: '/sandbox/d' });
  sandbox.settle(effect('DELETE_FILE', { path: '/sandbox/none' }, { before: [{ status: 'absent' }] }));
  const request = { case_id: CASE, paths: ['/sandbox/d/a.txt'], usage: true, portable_names: false };
  for (let at = 1; at < 4; at += 1) {
    calls = [];
    trouble = { at, code: 'EIO' };
    expect(sandbox.gather(request)).toEqual({ paths: [{ status: 'error', cause: 'IO_ERROR' }], usage: null });
  }
  trouble = null;
  expect(sandbox.gather(request)).toMatchObject({ paths: [{ status: 'file' }], usage: { bytes: 5, files: 2 } });
  sandbox.close();
});

test('an error that is not from the operating system is rethrown, because it is a bug', () => {
  const at = lastSync('DELETE_FILE', { path: '/sandbox/d/a.txt' });
  const { sandbox, committed } = scene('DELETE_FILE', { path: '/sandbox/d/a.txt' });
  calls = [];
  trouble = { at: 1, code: 'death' };
  expect(() => factOf(sandbox, '/sandbox/a')).toThrow(Death);
  calls = [];
  // The directory's fsync, when the file is gone already: the cached usage must not be trusted.
  trouble = { at, code: 'death' };
  expect(() => sandbox.perform(committed)).toThrow(Death);
  trouble = null;
  expect(treeOf(directory.home)).toEqual({ d: 'dir' });
  expect(usageOf(sandbox)).toEqual({ bytes: 0, files: 1 });
  sandbox.close();
});
