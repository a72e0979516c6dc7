/** @modules own */
// The fast path to a file (`read-directly.ts`): that it is used, and that each of its checks is needed. Another
// program acts at chosen moments: just before the named calls of `node:fs`, one after the other.

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import { done, factOf, failure, openDescriptors, perform, testDirectory, treeOf } from './sandbox-harness.js';
import type { TestDirectory } from './sandbox-harness.js';

type Call = (...args: readonly unknown[]) => unknown;
interface Moment {
  readonly before: string;
  readonly act: () => void;
}
let meanwhile: Moment[] = [];
/** Maximum number of bytes of one read; null: no limit. */
let bytesRead: number | null = null;
let calls: (readonly [string, ...unknown[]])[] = [];

const watched = ['openSync', 'fstatSync', 'lstatSync', 'renameSync', 'readlinkSync', 'readSync', 'opendirSync'];
jest.unstable_mockModule('node:fs', () => ({
  ...fs,
  ...Object.fromEntries(
    watched.map((name) => [
      name,
      (...given: readonly unknown[]) => {
        let args = given;
        calls.push([name, ...args]);
        if (meanwhile[0]?.before === name) meanwhile.shift()?.act();
        if (name === 'readSync' && bytesRead !== null) args = args.with(3, bytesRead);
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
const outside = (): string => join(directory.base, 'outside');
const read = (path: string): unknown => perform(sandbox, 'READ_FILE', { path: `/sandbox/${path}` });
/** Ends the synchronous turn, and with it what was kept open for reads. */
const nextTurn = (): Promise<void> => Promise.resolve();
const count = (name: string): number => calls.filter(([called]) => called === name).length;
/** Only the walk inspects the directory of the case first. */
const isWalked = (): boolean => count('lstatSync') > 0;

beforeEach(() => {
  directory = testDirectory();
  fs.mkdirSync(at('d/e'), { recursive: true });
  fs.mkdirSync(outside());
  fs.writeFileSync(at('a.txt'), 'top');
  fs.writeFileSync(at('d/a.txt'), 'alpha');
  fs.writeFileSync(at('d/e/a.txt'), 'deep');
  fs.writeFileSync(join(outside(), 'a.txt'), 'outside');
  descriptors = openDescriptors();
  sandbox = openSandbox({ root: directory.root });
  perform(sandbox, 'LIST_FILES', { path: '/sandbox/' });
  meanwhile = [];
  bytesRead = null;
  calls = [];
});

afterEach(() => {
  // Otherwise a moment never came, and the test proved nothing.
  expect(meanwhile).toEqual([]);
  expect(treeOf(outside())).toEqual({ 'a.txt': 'file outside' });
  sandbox.close();
  expect(openDescriptors()).toBe(descriptors);
  directory.remove();
});

describe('files in their place', () => {
  test.each([
    ['a.txt', 'top'],
    ['d/a.txt', 'alpha'],
    ['d/e/a.txt', 'deep'],
  ])('%s is inspected and read without a walk, by one read', (path, content) => {
    expect(factOf(sandbox, `/sandbox/${path}`)).toMatchObject({ status: 'file', bytes: content.length });
    expect(read(path)).toEqual(done({ content }));
    expect(isWalked()).toBe(false);
    expect(count('readSync')).toBe(1);
  });

  test.each(['/sandbox/', '/sandbox/d', '/sandbox/d/e/'])('the directory %s is inspected without a walk', (path) => {
    const { ino, mtimeNs } = fs.statSync(at(path.slice('/sandbox/'.length)), { bigint: true });
    const fact = { status: 'directory', inode: String(ino), mtime_ns: String(mtimeNs) };
    expect(factOf(sandbox, path)).toEqual(fact);
    expect(isWalked()).toBe(false);
  });

  test('D3: a name is only renamed to itself, in an open directory', async () => {
    for (const path of ['a.txt', 'd/a.txt', 'd/e/a.txt']) {
      factOf(sandbox, `/sandbox/${path}`);
      await nextTurn();
      read(path);
    }
    const renamed = calls.filter(([name]) => name === 'renameSync');
    expect(renamed).toHaveLength(6);
    for (const [, from, to] of renamed) {
      expect(to).toBe(from);
      expect(from).toMatch(/^\/proc\/(self|\d+)\/fd\/\d+\/a\.txt$/);
    }
  });
});

describe('D4: a file stays open from its facts to its read', () => {
  const facts = (): unknown => factOf(sandbox, '/sandbox/d/a.txt');

  test('the read opens no path again, and does not wait for an unlink again', () => {
    facts();
    calls = [];
    expect(read('d/a.txt')).toEqual(done({ content: 'alpha' }));
    expect(calls.map(([name]) => name)).toEqual(['fstatSync', 'readlinkSync', 'openSync', 'readSync']);
  });

  test('every read has the file of its own facts', () => {
    for (let time = 0; time < 70; time += 1) facts();
    expect(openDescriptors()).toBe(descriptors + 2 + 1 + 64);
    for (let time = 0; time < 70; time += 1) expect(read('d/a.txt')).toEqual(done({ content: 'alpha' }));
    expect(openDescriptors()).toBe(descriptors + 2 + 1);
  });

  test('what no read has taken is closed at the end of the turn', async () => {
    facts();
    const kept = openDescriptors();
    await nextTurn();
    expect(openDescriptors()).toBe(kept - 1);
  });

  test.each([
    ['replaced', (): void => fs.renameSync(at('d/b.txt'), at('d/a.txt')), done({ content: 'other' })],
    ['moved away', (): void => fs.renameSync(at('d/a.txt'), at('a2.txt')), failure('FILE_NOT_FOUND')],
    ['replaced by a link', (): void => replaceByLink('d/a.txt'), failure('SANDBOX_CHANGED')],
    ['given a second name', (): void => fs.linkSync(at('d/a.txt'), at('d/c.txt')), failure('SANDBOX_CHANGED')],
    ['in a directory that was replaced', (): void => replaceDirectory('d'), done({ content: 'new' })],
  ])('a file that was %s meanwhile is opened by its path', (_how, change, expected) => {
    fs.writeFileSync(at('d/b.txt'), 'other');
    facts();
    change();
    expect(read('d/a.txt')).toEqual(expected);
  });

  const replaceByLink = (path: string): void => {
    fs.rmSync(at(path));
    fs.symlinkSync(join(outside(), 'a.txt'), at(path));
  };
  const replaceDirectory = (path: string): void => {
    fs.renameSync(at(path), at('old'));
    fs.mkdirSync(at(path));
    fs.writeFileSync(at(`${path}/a.txt`), 'new');
  };
});

describe('D5: the directory of a file stays open between steps', () => {
  test('it is opened once', async () => {
    for (let time = 0; time < 3; time += 1) {
      read('d/a.txt');
      await nextTurn();
    }
    const folder = calls.filter(([name, path]) => name === 'openSync' && String(path).endsWith('/d'));
    expect(folder).toHaveLength(1);
  });

  test('at most four directories of a case are open', () => {
    for (let index = 0; index < 6; index += 1) {
      fs.mkdirSync(at(`p${index}`));
      fs.writeFileSync(at(`p${index}/a.txt`), 'x');
      read(`p${index}/a.txt`);
    }
    expect(openDescriptors()).toBe(descriptors + 2 + 4);
  });

  test('a directory that was replaced is opened again', () => {
    read('d/a.txt');
    fs.renameSync(at('d'), at('old'));
    fs.mkdirSync(at('d'));
    fs.writeFileSync(at('d/a.txt'), 'new');
    expect(read('d/a.txt')).toEqual(done({ content: 'new' }));
    calls = [];
    expect(read('d/a.txt')).toEqual(done({ content: 'new' }));
    expect(isWalked()).toBe(false);
    fs.rmSync(at('d'), { recursive: true });
    fs.symlinkSync(outside(), at('d'));
    expect(read('d/a.txt')).toEqual(failure('SANDBOX_CHANGED'));
  });
});

describe('other files are left to the walk', () => {
  test('C29: a link in the middle is refused, even if it leads to the same sandbox', () => {
    fs.symlinkSync('d', at('in'));
    fs.symlinkSync('e', at('d/in'));
    for (const path of ['in/a.txt', 'in/e/a.txt', 'd/in/a.txt', 'in/e', 'd/in/']) {
      expect(factOf(sandbox, `/sandbox/${path}`)).toEqual({ status: 'refused', kind: 'symlink' });
      expect(read(path)).toEqual(failure('SANDBOX_CHANGED'));
    }
  });

  test('a file whose path ends with a slash is not a directory', () => {
    expect(factOf(sandbox, '/sandbox/d/a.txt/')).toEqual({ status: 'not_a_directory' });
    expect(read('d/a.txt/')).toEqual(failure('NOT_A_DIRECTORY'));
  });

  test('a directory that is a link only while the path is opened is detected', () => {
    fs.mkdirSync(join(outside(), 'e'));
    fs.writeFileSync(join(outside(), 'e/a.txt'), 'outside');
    for (const look of [(): unknown => factOf(sandbox, '/sandbox/d/e/a.txt'), (): unknown => read('d/e/a.txt')]) {
      const swap = (): void => {
        fs.renameSync(at('d'), at('kept'));
        fs.symlinkSync(outside(), at('d'));
      };
      const back = (): void => {
        fs.unlinkSync(at('d'));
        fs.renameSync(at('kept'), at('d'));
      };
      meanwhile = [
        { before: 'openSync', act: swap },
        { before: 'renameSync', act: back },
      ];
      const found = look();
      expect(found).not.toMatchObject({ bytes: 7 });
      expect(found).not.toEqual(done({ content: 'outside' }));
      expect(isWalked()).toBe(true);
    }
    fs.rmSync(join(outside(), 'e'), { recursive: true });
  });

  test('C29: a removed hard link is not read if another file has its name by then', () => {
    fs.linkSync(join(outside(), 'a.txt'), at('hard.txt'));
    meanwhile = [
      { before: 'fstatSync', act: () => fs.unlinkSync(at('hard.txt')) },
      { before: 'renameSync', act: () => fs.writeFileSync(at('hard.txt'), 'new') },
    ];
    expect(read('hard.txt')).toEqual(done({ content: 'new' }));

    fs.unlinkSync(at('hard.txt'));
    fs.linkSync(join(outside(), 'a.txt'), at('hard.txt'));
    meanwhile = [
      { before: 'fstatSync', act: () => fs.unlinkSync(at('hard.txt')) },
      { before: 'renameSync', act: () => fs.writeFileSync(at('hard.txt'), 'new') },
    ];
    expect(factOf(sandbox, '/sandbox/hard.txt')).toMatchObject({ status: 'file', bytes: 3 });
  });

  test('C29: nor if its name is the one that the kernel reports for a removed file', () => {
    fs.linkSync(join(outside(), 'a.txt'), at('y (deleted)'));
    meanwhile = [
      {
        before: 'fstatSync',
        act: () => {
          fs.renameSync(at('y (deleted)'), at('y'));
          fs.unlinkSync(at('y'));
          fs.writeFileSync(at('y (deleted)'), 'new');
        },
      },
    ];
    expect(read('y (deleted)')).toEqual(failure('FILE_NOT_FOUND'));
  });

  test('a file moved to a directory that replaces its own is not confused with the one that was waited for', () => {
    const exchange = (): void => {
      fs.renameSync(at('d/a.txt'), at('d2/a.txt'));
      fs.writeFileSync(at('d/a.txt'), 'other');
      fs.renameSync(at('d'), at('d3'));
      fs.renameSync(at('d2'), at('d'));
    };
    fs.mkdirSync(at('d2'));
    meanwhile = [{ before: 'renameSync', act: exchange }];
    expect(read('d/a.txt')).toEqual(done({ content: 'alpha' }));
    expect(isWalked()).toBe(true);
  });

  test('a name that is not UTF-8 is not confused with its decoded form', () => {
    const odd = Buffer.concat([Buffer.from(`${directory.home}/`), Buffer.from([0xff])]);
    fs.mkdirSync(Buffer.concat([odd, Buffer.from('/e')]), { recursive: true });
    fs.writeFileSync(Buffer.concat([odd, Buffer.from('/e/a.txt')]), 'x');
    fs.symlinkSync(Buffer.from([0xff]), at('\ufffd'));
    expect(factOf(sandbox, '/sandbox/\ufffd/e/a.txt')).toEqual({ status: 'refused', kind: 'symlink' });
    expect(read('\ufffd/e/a.txt')).toEqual(failure('SANDBOX_CHANGED'));
    fs.rmSync(odd, { recursive: true });
  });

  test('a sandbox that was moved, with a link in its old place, is read as before', () => {
    const moved = join(directory.base, 'moved');
    fs.renameSync(directory.root, moved);
    fs.symlinkSync(moved, directory.root);
    expect(read('d/a.txt')).toEqual(done({ content: 'alpha' }));
    expect(isWalked()).toBe(true);
  });

  test('files in the place of a moved sandbox are neither read nor written', () => {
    const moved = join(directory.base, 'moved');
    fs.renameSync(directory.root, moved);
    fs.mkdirSync(at('d'), { recursive: true });
    fs.writeFileSync(at('d/a.txt'), 'strange');
    expect(factOf(sandbox, '/sandbox/d/a.txt')).not.toMatchObject({ bytes: 7 });
    expect(read('d/a.txt')).not.toEqual(done({ content: 'strange' }));
    perform(sandbox, 'WRITE_FILE', { path: '/sandbox/d/a.txt', content: 'mine' });
    expect(read('d/a.txt')).not.toEqual(done({ content: 'strange' }));
    expect(fs.readFileSync(at('d/a.txt'), 'utf8')).toBe('strange');
  });

  test('the link count of a file outside has no effect', () => {
    const answers = [2, 1].map((names) => {
      if (names === 2) fs.linkSync(join(outside(), 'a.txt'), join(outside(), 'b.txt'));
      meanwhile = [
        // The second time, the directory is open.
        ...(names === 2 ? [{ before: 'openSync', act: () => undefined }] : []),
        {
          before: 'openSync',
          act: () => {
            fs.renameSync(at('d'), at('kept'));
            fs.symlinkSync(outside(), at('d'));
          },
        },
        {
          before: 'fstatSync',
          act: () => {
            fs.unlinkSync(at('d'));
            fs.renameSync(at('kept'), at('d'));
          },
        },
      ];
      const answer = read('d/a.txt');
      fs.rmSync(join(outside(), 'b.txt'), { force: true });
      return answer;
    });
    expect(answers).toEqual([done({ content: 'alpha' }), done({ content: 'alpha' })]);
  });

  test('D3: the rename waits in the directory of the file that is read', () => {
    fs.mkdirSync(at('d2'));
    fs.writeFileSync(at('d2/a.txt'), 'in d2');
    const swap = (): void => {
      fs.renameSync(at('d'), at('x'));
      fs.renameSync(at('d2'), at('d'));
      fs.renameSync(at('x'), at('d2'));
    };
    let waited = '';
    swap();
    meanwhile = [
      { before: 'openSync', act: () => undefined },
      { before: 'openSync', act: swap },
      {
        before: 'renameSync',
        act: () => {
          const [, path] = calls.at(-1) as readonly [string, string];
          waited = fs.readFileSync(path, 'utf8');
        },
      },
      { before: 'readlinkSync', act: () => undefined },
      { before: 'readlinkSync', act: swap },
    ];
    const answer = read('d/a.txt');
    // The walk does its own waiting.
    if (!isWalked()) expect(answer).toEqual(done({ content: waited }));
    expect(isWalked() || waited === 'in d2').toBe(true);
  });

  test('the directory in the place of a case is the one that is read', () => {
    fs.renameSync(directory.home, join(directory.base, 'backup'));
    fs.mkdirSync(at('d'), { recursive: true });
    fs.writeFileSync(at('d/a.txt'), 'restored');
    expect(factOf(sandbox, '/sandbox/d/a.txt')).toMatchObject({ status: 'file', bytes: 8 });
    expect(read('d/a.txt')).toEqual(done({ content: 'restored' }));
    fs.rmSync(directory.home, { recursive: true });
    fs.symlinkSync(join(directory.base, 'backup'), directory.home);
    expect(read('d/a.txt')).toEqual(failure('SANDBOX_CHANGED'));
  });
});

test('a file that shrinks while it is read is read to its new end', () => {
  meanwhile = [{ before: 'readSync', act: () => fs.truncateSync(at('d/a.txt'), 2) }];
  expect(read('d/a.txt')).toEqual(done({ content: 'al' }));
});

test('a file that comes in pieces is read completely', () => {
  bytesRead = 2;
  expect(read('d/a.txt')).toEqual(done({ content: 'alpha' }));
});

test('an error that is not from the operating system is rethrown, and no descriptor stays open', () => {
  const bug = new RangeError('a bug');
  const act = (): void => {
    throw bug;
  };
  for (const before of ['openSync', 'fstatSync', 'renameSync', 'readlinkSync', 'readSync']) {
    meanwhile = [{ before, act }];
    expect(() => read('d/a.txt')).toThrow(bug);
    expect(isWalked()).toBe(false);
  }
});
