// C29: another process swaps a directory for a link to the outside and back, as fast as it can, while files are read
// and written below that name. Each sandbox must stay inside; the way that checks first and opens then, which most
// file tools take, is the control that shows that the attack is real (CVE-2018-15664).

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../src/adapters/sandbox.js';
import { effect, openDescriptors, perform, testDirectory, text, treeOf } from './sandbox-harness.js';

const READS = 5_000;
const WRITES = 300;
const READ = effect('READ_FILE', { path: '/sandbox/d/e/a.txt' });
const PATIENCE_MS = 20_000;

const directory = testDirectory();
const { home } = directory;
const outside = join(directory.base, 'outside');
let sandbox: FileSandbox;
let attacker: ChildProcess;

const ATTACK = `
  const { renameSync } = require('node:fs');
  process.chdir(process.argv[1]);
  process.stdout.write('started');
  // It outlives nobody: a test run that was killed cannot stop it.
  for (const parent = process.ppid; process.ppid === parent; ) {
    renameSync('d', 'kept');
    renameSync('link', 'd');
    renameSync('d', 'link');
    renameSync('kept', 'd');
  }`;

beforeAll(async () => {
  mkdirSync(join(home, 'd/e'), { recursive: true });
  mkdirSync(join(outside, 'e'), { recursive: true });
  writeFileSync(join(home, 'd/e/a.txt'), 'inside');
  writeFileSync(join(outside, 'e/a.txt'), 'outside');
  symlinkSync(outside, join(home, 'link'));
  sandbox = openSandbox({ root: directory.root });
  attacker = spawn(process.execPath, ['-e', ATTACK, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (attacker.stdout !== null) await once(attacker.stdout, 'data');
});

afterAll(async () => {
  attacker.kill('SIGKILL');
  await once(attacker, 'exit');
  sandbox.close();
  directory.remove();
});

/** Checks the real path, then reads it. */
function readNaively(): string {
  try {
    const real = realpathSync(join(home, 'd/e/a.txt'));
    return real.startsWith(`${home}/`) ? readFileSync(real, 'utf8') : 'refused';
  } catch {
    return 'failed';
  }
}

function countUntil(
  enough: (seen: Map<string, number>, total: number) => boolean,
  read: () => string,
): Map<string, number> {
  const deadline = Date.now() + PATIENCE_MS;
  const seen = new Map<string, number>();
  for (let total = 0; !enough(seen, total) && Date.now() < deadline; total += 1) {
    const what = read();
    seen.set(what, (seen.get(what) ?? 0) + 1);
  }
  return seen;
}

test('C29 S0-49: under attack no read leaves the sandbox, where the naive way does', () => {
  expect(attacker.exitCode).toBeNull();
  const naive = countUntil((seen) => seen.has('outside'), readNaively);
  expect(naive.get('outside')).toBeGreaterThan(0);

  const descriptors = openDescriptors();
  const ours = countUntil(
    // Both must have happened: reads that met the directory, and reads that met the link.
    (seen, total) => total >= READS && seen.has('inside') && seen.has('SANDBOX_CHANGED'),
    () => {
      const read = sandbox.perform(READ);
      if (read.status === 'done') return text(read.result['content']);
      return read.status === 'failed' ? read.cause : read.status;
    },
  );
  expect([...ours.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(READS);
  const outcomes = new Set(['inside', 'SANDBOX_CHANGED', 'FILE_NOT_FOUND']);
  expect([...ours.keys()].filter((outcome) => !outcomes.has(outcome))).toEqual([]);
  expect(ours.get('inside')).toBeGreaterThan(0);
  expect(ours.get('SANDBOX_CHANGED')).toBeGreaterThan(0);
  expect(openDescriptors()).toBe(descriptors + 1);
});

test('C29: under attack no change is made outside', () => {
  const before = treeOf(outside);
  const statuses = new Set<string>();
  for (let index = 0; index < WRITES; index += 1) {
    const path = `/sandbox/d/e/w${index}.txt`;
    const moved = `/sandbox/d/m${index}.txt`;
    statuses.add(perform(sandbox, 'WRITE_FILE', { path, content: 'x' }).status);
    perform(sandbox, 'CREATE_DIRECTORY', { path: `/sandbox/d/e/d${index}` });
    perform(sandbox, 'RENAME_FILE', { source: path, destination: moved });
    perform(sandbox, 'DELETE_FILE', { path: moved });
    perform(sandbox, 'DELETE_FILE', { path: '/sandbox/d/e/a.txt' });
  }
  expect(treeOf(outside)).toEqual(before);
  expect(statuses).toContain('done');
  expect(attacker.exitCode).toBeNull();
});
