// D8: the outcome of an action whose result was not recorded, derived from the facts before it and the files now.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { findAction } from '../../../src/core/contract/policy/catalogue.js';
import type { Effect, PathFact } from '../../../src/core/contract/run/effect.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { done, effect, factOf, failure, openDescriptors, testDirectory, treeOf, usageOf } from './sandbox-harness.js';
import { text, withoutHostPath, type TestDirectory } from './sandbox-harness.js';

let directory: TestDirectory;
let sandbox: FileSandbox;
let descriptors: number;

beforeEach(() => {
  directory = testDirectory();
  mkdirSync(join(directory.home, 'd'), { recursive: true });
  put('a.txt', 'alpha');
  descriptors = openDescriptors();
  sandbox = openSandbox({ root: directory.root });
});

afterEach(() => {
  sandbox.close();
  expect(openDescriptors()).toBe(descriptors);
  directory.remove();
});

const at = (path: string): string => join(directory.home, path);
const put = (path: string, content: string): void => writeFileSync(at(path), content);
const unknown = { status: 'unknown' };

/** An effect as in its intent: with the facts that AUTHORIZE gathered. */
function intent(action: string, args: JsonObject): Effect {
  const paths = (findAction(action)?.paths ?? []).map((name) => text(args[name]));
  return effect(action, args, { before: paths.map((path): PathFact => factOf(sandbox, path)) });
}

interface Row {
  readonly title: string;
  readonly action: string;
  readonly args: JsonObject;
  /** Changes before AUTHORIZE, in addition to `a.txt` and `d/`. */
  readonly given?: () => void;
  /** The state of the disk when the process died. */
  readonly then?: () => void;
  readonly settled: unknown;
  /** The expected sandbox, if settling changes it. */
  readonly tree?: Record<string, string>;
}

const WRITE = { action: 'WRITE_FILE', args: { path: '/sandbox/a.txt', content: 'beta!' } };
const CREATE = { action: 'CREATE_DIRECTORY', args: { path: '/sandbox/new' } };
const DELETE = { action: 'DELETE_FILE', args: { path: '/sandbox/a.txt' } };
const RENAME = { action: 'RENAME_FILE', args: { source: '/sandbox/a.txt', destination: '/sandbox/d/b.txt' } };
const to = (args: JsonObject): { args: JsonObject } => ({ args });

/** The same name and inode, but other content of the same size, and another time. */
const touch = (): void => {
  put('a.txt', 'gamma');
  utimesSync(at('a.txt'), 1, 1);
};
const replace = (path: string, content: string): void => {
  put('replacement', content);
  renameSync(at('replacement'), at(path));
};

const ROWS: readonly Row[] = [
  { ...WRITE, title: 'replaced', then: () => replace('a.txt', 'beta!'), settled: done({ bytes_written: 5 }) },
  { ...WRITE, title: 'not touched', settled: failure('INTERRUPTED') },
  { ...WRITE, title: 'another content', then: () => replace('a.txt', 'omega'), settled: unknown },
  { ...WRITE, title: 'another content in the same inode', then: touch, settled: unknown },
  { ...WRITE, title: 'gone', then: () => unlinkSync(at('a.txt')), settled: unknown },
  {
    ...WRITE,
    title: 'a link in its place',
    then: () => {
      put('beta', 'beta!');
      unlinkSync(at('a.txt'));
      symlinkSync('beta', at('a.txt'));
    },
    settled: unknown,
  },
  { ...WRITE, title: 'same content before', given: () => put('a.txt', 'beta!'), settled: done({ bytes_written: 5 }) },
  {
    ...WRITE,
    ...to({ path: '/sandbox/new.txt', content: 'n' }),
    title: 'created',
    then: () => put('new.txt', 'n'),
    settled: done({ bytes_written: 1 }),
  },
  { ...WRITE, ...to({ path: '/sandbox/new.txt', content: 'n' }), title: 'absent', settled: failure('INTERRUPTED') },
  { ...WRITE, ...to({ path: '/sandbox/x/n', content: 'n' }), title: 'no parent', settled: failure('FILE_NOT_FOUND') },
  { ...WRITE, ...to({ path: '/sandbox/d', content: 'n' }), title: 'a directory', settled: failure('IS_A_DIRECTORY') },
  {
    ...WRITE,
    ...to({ path: '/sandbox/a.txt/n', content: 'n' }),
    title: 'a file as parent',
    settled: failure('NOT_A_DIRECTORY'),
  },
  { ...WRITE, ...to({ path: '/etc/n', content: 'n' }), title: 'not a sandbox path', settled: failure('INTERNAL') },
  {
    ...WRITE,
    ...to({ path: '/sandbox/l', content: 'n' }),
    title: 'a link',
    given: () => symlinkSync('a.txt', at('l')),
    settled: failure('SANDBOX_CHANGED'),
  },

  { ...CREATE, title: 'made', then: () => mkdirSync(at('new')), settled: done() },
  { ...CREATE, title: 'absent', settled: failure('INTERRUPTED') },
  { ...CREATE, title: 'a file in its place', then: () => put('new', ''), settled: unknown },
  { ...CREATE, title: 'existed before', given: () => mkdirSync(at('new')), settled: failure('ALREADY_EXISTS') },
  { ...CREATE, title: 'a file before', given: () => put('new', ''), settled: failure('ALREADY_EXISTS') },
  { ...CREATE, ...to({ path: '/sandbox/x/y' }), title: 'no parent', settled: failure('FILE_NOT_FOUND') },
  { ...CREATE, ...to({ path: '/sandbox/' }), title: 'the root', settled: failure('ALREADY_EXISTS') },

  { ...DELETE, title: 'gone', then: () => unlinkSync(at('a.txt')), settled: done() },
  { ...DELETE, title: 'still exists', settled: failure('INTERRUPTED') },
  { ...DELETE, title: 'another file', then: () => replace('a.txt', 'alpha'), settled: unknown },
  { ...DELETE, title: 'perhaps another file in a reused inode', then: touch, settled: unknown },
  { ...DELETE, ...to({ path: '/sandbox/none' }), title: 'absent before', settled: failure('FILE_NOT_FOUND') },
  { ...DELETE, ...to({ path: '/sandbox/d' }), title: 'a directory', settled: failure('IS_A_DIRECTORY') },
  {
    ...DELETE,
    title: 'the parent gone',
    ...to({ path: '/sandbox/d/c' }),
    given: () => put('d/c', ''),
    then: () => rmSync(at('d'), { recursive: true }),
    settled: unknown,
  },

  { ...RENAME, title: 'moved', then: () => renameSync(at('a.txt'), at('d/b.txt')), settled: done() },
  {
    ...RENAME,
    title: 'half done: both names',
    then: () => linkSync(at('a.txt'), at('d/b.txt')),
    settled: done(),
    tree: { d: 'dir', 'd/b.txt': 'file alpha' },
  },
  {
    ...RENAME,
    title: 'moved, and a new file under the old name',
    then: () => {
      renameSync(at('a.txt'), at('d/b.txt'));
      put('a.txt', 'newer');
    },
    settled: done(),
  },
  { ...RENAME, title: 'not moved', settled: failure('INTERRUPTED') },
  { ...RENAME, title: 'both gone', then: () => unlinkSync(at('a.txt')), settled: unknown },
  { ...RENAME, title: 'another file at the target', then: () => put('d/b.txt', 'other'), settled: unknown },
  { ...RENAME, title: 'the target taken before', given: () => put('d/b.txt', ''), settled: failure('ALREADY_EXISTS') },
  {
    ...RENAME,
    ...to({ source: '/sandbox/a.txt', destination: '/sandbox/a.txt' }),
    title: 'onto itself: the one name stays',
    settled: failure('ALREADY_EXISTS'),
  },
  {
    ...RENAME,
    ...to({ source: '/sandbox/a.txt', destination: '/sandbox/x/b' }),
    title: 'no parent of the target',
    settled: failure('FILE_NOT_FOUND'),
  },
  {
    ...RENAME,
    ...to({ source: '/sandbox/none', destination: '/sandbox/b' }),
    title: 'no source',
    settled: failure('FILE_NOT_FOUND'),
  },
  {
    ...RENAME,
    ...to({ source: '/sandbox/d', destination: '/sandbox/b' }),
    title: 'a directory',
    settled: failure('IS_A_DIRECTORY'),
  },
];

describe('D8: settling', () => {
  test.each(ROWS)('$action, $title', ({ action, args, given, then, settled, tree }) => {
    given?.();
    const committed = intent(action, args);
    const usage = usageOf(sandbox);
    then?.();
    const expected = tree ?? treeOf(directory.home);
    expect(withoutHostPath(sandbox.settle(committed))).toEqual(settled);
    expect(treeOf(directory.home)).toEqual(expected);
    // Settling again, as after a crash while settling, gives the same; and the usage was measured again.
    expect(sandbox.settle(committed)).toEqual(settled);
    if (then === undefined) expect(usageOf(sandbox)).toEqual(usage);
    else expect(usageOf(sandbox)?.files).toBe(Object.keys(expected).length);
  });

  test('a read is settled by reading again', () => {
    expect(sandbox.settle(intent('READ_FILE', { path: '/sandbox/a.txt' }))).toEqual(done({ content: 'alpha' }));
    expect(sandbox.settle(intent('LIST_FILES', { path: '/sandbox/d/' }))).toEqual(done({ entries: [] }));
  });

  test('the temporary file of the effect is removed, those of other effects stay', () => {
    const committed = intent('WRITE_FILE', { path: '/sandbox/a.txt', content: 'beta' });
    put(`.turnpike-tmp-${sha256(committed.idempotency_key)}`, 'be');
    put('.turnpike-tmp-other', 'x');
    expect(sandbox.settle(committed)).toEqual(failure('INTERRUPTED'));
    expect(treeOf(directory.home)).toEqual({ 'a.txt': 'file alpha', d: 'dir', '.turnpike-tmp-other': 'file x' });
  });

  test('a half-done rename is refused under both names until it is settled', () => {
    const committed = intent('RENAME_FILE', RENAME.args);
    linkSync(at('a.txt'), at('d/b.txt'));
    for (const path of ['/sandbox/a.txt', '/sandbox/d/b.txt']) {
      expect(factOf(sandbox, path)).toEqual({ status: 'refused', kind: 'hard_link' });
    }
    expect(sandbox.settle(committed)).toEqual(done());
    expect(factOf(sandbox, '/sandbox/d/b.txt')).toMatchObject({ status: 'file' });
  });

  test('without facts, or if the case cannot be opened, the outcome is unknown', () => {
    for (const action of ['WRITE_FILE', 'CREATE_DIRECTORY', 'DELETE_FILE', 'RENAME_FILE']) {
      const args = { path: '/sandbox/a.txt', content: 'x', source: '/sandbox/a.txt', destination: '/sandbox/b.txt' };
      expect(sandbox.settle(effect(action, args))).toEqual(unknown);
      expect(sandbox.settle(effect(action, args, { case_id: '../x', before: [{ status: 'absent' }] }))).toEqual(
        unknown,
      );
    }
    expect(sandbox.settle(effect('THINK', {}))).toEqual(failure('INTERNAL'));
  });
});
