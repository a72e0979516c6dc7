// The usage that the quota is checked against: after any sequence of changes it equals a fresh count of the disk.

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSandbox, type FileSandbox } from '../../../src/sandbox/files/file-sandbox.js';
import type { SandboxFacts } from '../../../src/core/contract/run/effect.js';
import type { JsonObject } from '../../../src/core/contract/json.js';
import { effect, perform, testDirectory, usageOf } from './sandbox-harness.js';

const directory = testDirectory();
let sandbox: FileSandbox;

beforeAll(() => {
  mkdirSync(directory.root);
  sandbox = openSandbox({ root: directory.root });
});
afterAll(() => {
  sandbox.close();
  directory.remove();
});

/** Counts without the sandbox's own code: with Node's recursive listing. */
function counted(): SandboxFacts['usage'] {
  const entries = readdirSync(directory.home, { recursive: true, encoding: 'utf8' });
  const sizes = entries.map((name) => lstatSync(join(directory.home, name))).filter((stats) => stats.isFile());
  return { bytes: sizes.reduce((sum, { size }) => sum + size, 0), files: entries.length };
}

const path = fc.constantFrom('a', 'b', 'd', 'd/a', 'd/b', 'd/e', 'd/e/a', '').map((name) => `/sandbox/${name}`);
const change: fc.Arbitrary<readonly [string, JsonObject]> = fc.oneof(
  fc.tuple(fc.constant('WRITE_FILE'), fc.record({ path, content: fc.string({ minLength: 1, maxLength: 40 }) })),
  fc.tuple(fc.constant('CREATE_DIRECTORY'), fc.record({ path })),
  fc.tuple(fc.constant('DELETE_FILE'), fc.record({ path })),
  fc.tuple(fc.constant('RENAME_FILE'), fc.record({ source: path, destination: path })),
);

/** Files to work on, and one action for each outcome. */
const START: readonly (readonly [string, JsonObject])[] = [
  ['DELETE_FILE', { path: '/sandbox/a' }],
  ['WRITE_FILE', { path: '/sandbox/a', content: 'alpha' }],
  ['WRITE_FILE', { path: '/sandbox/d/a', content: 'alpha' }],
  ['CREATE_DIRECTORY', { path: '/sandbox/d' }],
  ['CREATE_DIRECTORY', { path: '/sandbox/d' }],
  ['RENAME_FILE', { source: '/sandbox/a', destination: '/sandbox/d/a' }],
  ['RENAME_FILE', { source: '/sandbox/a', destination: '/sandbox/d/a' }],
  ['DELETE_FILE', { path: '/sandbox/d/a' }],
  ['WRITE_FILE', { path: '/sandbox/a', content: 'alpha' }],
];

test('after any sequence of changes, successful or failed, the cached usage equals a fresh count', () => {
  const outcomes = new Set<string>();
  fc.assert(
    fc.property(fc.array(change, { minLength: 20, maxLength: 30 }), (changes) => {
      rmSync(directory.home, { recursive: true, force: true });
      expect(usageOf(sandbox)).toEqual({ bytes: 0, files: 0 });
      for (const [action, args] of [...START, ...changes]) {
        outcomes.add(`${action} ${perform(sandbox, action, args).status}`);
        expect(usageOf(sandbox)).toEqual(counted());
      }
    }),
    { numRuns: 20 },
  );
  // The property proves nothing unless every action both succeeded and failed.
  expect(outcomes.size).toBe(8);
});

test('the usage is one scan plus our own changes: foreign changes are seen only at the next scan', () => {
  perform(sandbox, 'WRITE_FILE', { path: '/sandbox/kept.txt', content: 'x' });
  const before = usageOf(sandbox);
  writeFileSync(join(directory.home, 'foreign.txt'), 'four');
  expect(usageOf(sandbox)).toEqual(before);
  sandbox.settle(effect('WRITE_FILE', { path: '/sandbox/none.txt', content: 'x' }, { before: [{ status: 'absent' }] }));
  expect(usageOf(sandbox)).toEqual(counted());
});

test('if the disk contains less than the cached usage, it is measured again instead of falling below zero', () => {
  usageOf(sandbox);
  writeFileSync(join(directory.home, 'huge.txt'), 'x'.repeat(10_000));
  perform(sandbox, 'DELETE_FILE', { path: '/sandbox/huge.txt' });
  expect(usageOf(sandbox)).toEqual(counted());
});

test('temporary files are not counted', () => {
  rmSync(directory.home, { recursive: true, force: true });
  usageOf(sandbox);
  rmSync(directory.home, { recursive: true, force: true });
  mkdirSync(directory.home);
  writeFileSync(join(directory.home, '.turnpike-tmp-left'), 'left');
  expect(usageOf(sandbox)).toEqual({ bytes: 0, files: 0 });
});

test('a tree deeper than any path can name is counted down to that depth, with few descriptors', () => {
  rmSync(directory.home, { recursive: true, force: true });
  mkdirSync(join(directory.home, ...Array.from({ length: 700 }, () => 'd')), { recursive: true });
  expect(usageOf(sandbox)).toEqual({ bytes: 0, files: 512 });
});
