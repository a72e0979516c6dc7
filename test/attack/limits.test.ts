// The limits of a real sandbox, reached by whole governed steps: the limit is accepted, one more is not.

import { expect, test } from '@jest/globals';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { memoryStore } from '../../src/stores/memory/memory-ledger-store.js';
import type { JsonObject } from '../../src/core/contract/json.js';
import { openSandbox } from '../../src/sandbox/files/file-sandbox.js';
import { run, skip, treeOf } from '../sandbox/files/sandbox-harness.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { diskFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

const DENIED = { outcome: 'DENIED', error: { error_code: 'POLICY_VIOLATION' } };

/** The shipped policy with small quotas. */
const quota = (limits: Readonly<Record<string, number>>): BenchOptions => ({
  edit: (name, text) =>
    name !== 'actions'
      ? text
      : Object.entries(limits).reduce((edited, [key, value]) => {
          const line = new RegExp(`^  ${key}: \\d+`, 'm');
          expect(edited).toMatch(line);
          return edited.replace(line, `  ${key}: ${value}`);
        }, text),
});

/** Submits proposals one after another. @returns their outcomes */
async function outcomesOf(bench: Bench, acts: readonly (readonly [string, JsonObject])[]): Promise<unknown[]> {
  const agent = await bench.turnpike.startAgent();
  const responses: unknown[] = [];
  for (const [action, args] of acts) responses.push(await agent.submit(JSON.stringify(proposal(action, args))));
  return responses;
}

const write = (path: string, bytes: number): readonly [string, JsonObject] => [
  'WRITE_FILE',
  { path: `/sandbox/${path}`, content: 'x'.repeat(bytes) },
];
const make = (path: string): readonly [string, JsonObject] => ['CREATE_DIRECTORY', { path: `/sandbox/${path}` }];
const SUCCESS = { outcome: 'SUCCESS' };

async function withBench(options: BenchOptions, work: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await Bench.open(options);
  await work(bench);
  await bench.close();
}

test('S0-50: a file of exactly the quota is written, one byte more is denied; replacing and deleting free space', () =>
  withBench(quota({ bytes_max: 100 }), async (bench) => {
    const responses = await outcomesOf(bench, [
      write('a.txt', 60),
      write('b.txt', 41),
      write('b.txt', 40),
      write('c.txt', 1),
      write('a.txt', 61),
      write('a.txt', 59),
      write('c.txt', 1),
      ['DELETE_FILE', { path: '/sandbox/a.txt' }],
      write('d.txt', 59),
      write('d.txt', 60),
    ]);
    const expected = [SUCCESS, DENIED, SUCCESS, DENIED, DENIED, SUCCESS, SUCCESS, SUCCESS, SUCCESS, DENIED];
    expect(responses).toMatchObject(expected);
    expect(Object.keys(treeOf(join(bench.home, 'sandbox')))).toHaveLength(4);
  }));

test('S0-50: files and directories count together, up to the limit', () =>
  withBench(quota({ files_max: 3 }), async (bench) => {
    const rename = { source: '/sandbox/d/a.txt', destination: '/sandbox/c.txt' };
    const responses = await outcomesOf(bench, [
      make('d'),
      write('d/a.txt', 1),
      write('b.txt', 1),
      write('c.txt', 1),
      make('e'),
      write('b.txt', 2),
      ['RENAME_FILE', rename],
    ]);
    expect(responses).toMatchObject([SUCCESS, SUCCESS, SUCCESS, DENIED, DENIED, SUCCESS, SUCCESS]);
  }));

test('S0-50: nothing is created deeper than the policy permits', () =>
  withBench(quota({ depth_max: 2 }), async (bench) => {
    const deeper = { source: '/sandbox/a/b.txt', destination: '/sandbox/a/b/c.txt' };
    const responses = await outcomesOf(bench, [
      make('a'),
      write('a/b.txt', 1),
      make('a/b'),
      make('a/b/c'),
      write('a/b/c.txt', 1),
      ['RENAME_FILE', deeper],
    ]);
    expect(responses).toMatchObject([SUCCESS, SUCCESS, SUCCESS, DENIED, DENIED, DENIED]);
  }));

test('S0-54 S0-55: a full disk is an EXECUTION_ERROR, nothing of the file remains, and the agent can continue', async () => {
  const disk = diskFolder('disk');
  if (!run('mount', '-t', 'tmpfs', '-o', 'size=32k', 'none', disk)) {
    rmSync(disk, { recursive: true });
    skip('a full disk needs root (mount)');
    return;
  }
  const root = join(disk, 'root');
  mkdirSync(root);
  const sandbox = openSandbox({ root });
  try {
    await withBench({ store: memoryStore(), sandbox }, async (bench) => {
      const responses = await outcomesOf(bench, [
        write('a.txt', 5),
        write('b.txt', 48_000),
        write('a.txt', 48_000),
        ['READ_FILE', { path: '/sandbox/a.txt' }],
        write('b.txt', 5),
      ]);
      const full = { outcome: 'EXECUTION_ERROR', error: { message: 'No space left' } };
      expect(responses).toMatchObject([SUCCESS, full, full, { result: { content: 'xxxxx' } }, SUCCESS]);
      const [home = ''] = readdirSync(root);
      expect(treeOf(join(root, home))).toEqual({ 'a.txt': 'file xxxxx', 'b.txt': 'file xxxxx' });
    });
  } finally {
    sandbox.close();
    run('umount', disk);
    rmSync(disk, { recursive: true });
  }
});
