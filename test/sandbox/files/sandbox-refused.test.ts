// C29: anything but a plain file or directory of the sandbox's own file system is refused, anywhere in a path, and is
// neither followed nor opened.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import type { EffectResult } from '../../../src/core/contract/run/effect.js';
import { done, factOf, failure, perform, run, skip, testDirectory, treeOf, usageOf } from './sandbox-harness.js';

const directory = testDirectory();
const { home, base } = directory;
const outside = join(base, 'outside');
const mounted = join(home, 'mounted');
let sandbox: FileSandbox;
let socket: Server;

beforeAll(async () => {
  mkdirSync(home, { recursive: true });
  mkdirSync(join(home, 'dir'));
  mkdirSync(join(outside, 'dir'), { recursive: true });
  writeFileSync(join(home, 'dir/a.txt'), 'inside');
  writeFileSync(join(outside, 'a.txt'), 'outside');
  socket = createServer();
  await new Promise<void>((resolve) => socket.listen(join(home, 'socket'), resolve));
  sandbox = openSandbox({ root: directory.root });
});

afterAll(() => {
  sandbox.close();
  socket.close();
  run('umount', mounted);
  directory.remove();
});

/** Every action on `path`, as if AUTHORIZE had found nothing there. */
const attempts = (path: string): EffectResult[] => [
  perform(sandbox, 'READ_FILE', { path }),
  perform(sandbox, 'LIST_FILES', { path }),
  perform(sandbox, 'WRITE_FILE', { path, content: 'x' }),
  perform(sandbox, 'CREATE_DIRECTORY', { path }),
  perform(sandbox, 'DELETE_FILE', { path }),
  perform(sandbox, 'RENAME_FILE', { source: path, destination: '/sandbox/moved.txt' }),
  perform(sandbox, 'RENAME_FILE', { source: '/sandbox/dir/a.txt', destination: path }),
];

function expectRefused(kind: string, ...paths: readonly string[]): void {
  const before = [treeOf(join(home, 'dir')), treeOf(outside)];
  for (const path of paths) {
    expect(factOf(sandbox, `/sandbox/${path}`)).toEqual({ status: 'refused', kind });
    const answers = attempts(`/sandbox/${path}`);
    expect(answers).toEqual(answers.map(() => failure('SANDBOX_CHANGED')));
  }
  expect([treeOf(join(home, 'dir')), treeOf(outside)]).toEqual(before);
}

test('C29: a symbolic link is refused, whatever its target', () => {
  symlinkSync('/etc/passwd', join(home, 'passwd'));
  symlinkSync(join(outside, 'a.txt'), join(home, 'out.txt'));
  symlinkSync('dir/a.txt', join(home, 'in.txt'));
  symlinkSync('nowhere', join(home, 'dangling.txt'));
  symlinkSync('self.txt', join(home, 'self.txt'));
  symlinkSync('/proc/self/exe', join(home, 'magic.txt'));
  expectRefused('symlink', 'passwd', 'out.txt', 'in.txt', 'dangling.txt', 'self.txt', 'magic.txt');
});

test('C29: a linked directory is refused as the last name, with a slash, and in the middle', () => {
  symlinkSync(outside, join(home, 'out'));
  symlinkSync('dir', join(home, 'in'));
  symlinkSync('/proc/self/root', join(home, 'procroot'));
  // CVE-2024-21626: through a descriptor or the working directory of the process itself.
  symlinkSync('/proc/self/fd', join(home, 'procfd'));
  symlinkSync('/proc/self/cwd', join(home, 'proccwd'));
  expectRefused('symlink', 'out', 'out/', 'out/a.txt', 'out/dir/new', 'in', 'in/', 'in/a.txt', 'in/new.txt');
  expectRefused('symlink', 'procroot/etc/passwd', 'procroot', 'procfd/3/a.txt', 'proccwd', 'proccwd/package.json');
});

test('C29: a hard link is refused, and the file outside keeps its bytes', () => {
  linkSync(join(outside, 'a.txt'), join(home, 'hard.txt'));
  expectRefused('hard_link', 'hard.txt', 'hard.txt/', 'hard.txt/below');
  expect(readFileSync(join(outside, 'a.txt'), 'utf8')).toBe('outside');
  expect(statSync(join(outside, 'a.txt')).nlink).toBe(2);
});

test('C29: a FIFO is refused without being opened, which would block indefinitely', () => {
  expect(run('mkfifo', join(home, 'fifo'))).toBe(true);
  expectRefused('fifo', 'fifo', 'fifo/', 'fifo/below');
});

test('C29: a socket is refused', () => expectRefused('socket', 'socket', 'socket/below'));

test('C29: a device is refused', () => {
  if (!run('mknod', join(home, 'device'), 'c', '1', '5')) {
    skip('a device needs root (mknod)');
    return;
  }
  expectRefused('device', 'device', 'device/below');
});

test('C29: another file system is refused', () => {
  mkdirSync(mounted);
  if (!run('mount', '-t', 'tmpfs', 'none', mounted)) {
    skip('another file system needs root (mount)');
    return;
  }
  writeFileSync(join(mounted, 'a.txt'), 'other');
  mkdirSync(join(mounted, 'dir'));
  expectRefused('other_file_system', 'mounted', 'mounted/', 'mounted/a.txt', 'mounted/dir/a.txt', 'mounted/new.txt');
});

test('refused files are listed as `other`, except that a list does not inspect names', () => {
  const listed = perform(sandbox, 'LIST_FILES', { path: '/sandbox/' });
  expect(listed).toMatchObject({
    result: {
      entries: expect.arrayContaining([
        { name: 'fifo', type: 'other' },
        { name: 'out', type: 'other' },
        { name: 'socket', type: 'other' },
      ]) as unknown,
    },
  });
});

test('the usage counts refused files, but never what they refer to', () => {
  const names = Object.keys(treeOf(home)).filter((name) => !name.startsWith('mounted/'));
  // Only the bytes of plain files: `inside` and the hard link.
  expect(usageOf(sandbox)).toEqual({ bytes: 6 + 7, files: names.length });
});

describe('a case directory that is not one', () => {
  test('C29: a link in its place is refused for every path', () => {
    symlinkSync(outside, join(directory.root, 'linked'));
    const more = { case_id: 'linked' };
    expect(factOf(sandbox, '/sandbox/a.txt', more)).toEqual({ status: 'refused', kind: 'symlink' });
    const read = perform(sandbox, 'READ_FILE', { path: '/sandbox/a.txt' }, more);
    expect(read).toEqual(failure('SANDBOX_CHANGED'));
  });

  test('a file in its place is NOT_A_DIRECTORY', () => {
    writeFileSync(join(directory.root, 'file'), '');
    const list = perform(sandbox, 'LIST_FILES', { path: '/sandbox/' }, { case_id: 'file' });
    expect(list).toEqual(failure('NOT_A_DIRECTORY'));
  });
});

test('a full file system is NO_SPACE, and no part of the file remains', () => {
  const small = join(base, 'small');
  mkdirSync(small);
  if (!run('mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', small)) {
    skip('a full file system needs root (mount)');
    return;
  }
  const full = openSandbox({ root: small });
  try {
    expect(perform(full, 'WRITE_FILE', { path: '/sandbox/a.txt', content: 'kept' })).toMatchObject(done());
    const args = { path: '/sandbox/a.txt', content: 'x'.repeat(200_000) };
    expect(perform(full, 'WRITE_FILE', args)).toEqual(failure('NO_SPACE'));
    expect(treeOf(small)).toEqual({ case_1: 'dir', 'case_1/a.txt': 'file kept' });
    expect(usageOf(full)).toEqual({ bytes: 4, files: 1 });
  } finally {
    full.close();
    run('umount', small);
  }
});
