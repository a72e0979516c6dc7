// The path of a WRITE_FILE that docs/architecture.md lists is the one that a real step takes.

import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../root.js';
import { tableOf } from './tables.js';

interface TracedFile {
  readonly path: string;
  /** The functions that ran. */
  readonly names: readonly string[];
}

/** What runs at its own times, in parallel to steps, and not in each of them. */
const IN_PARALLEL = [
  'src/core/ledger/proof/checkpoint.ts',
  'src/core/ledger/proof/ed25519.ts',
  'src/core/ledger/proof/signed-note.ts',
  'src/home/ledger-key.ts',
  'src/system/files/open-file.ts',
];

/** A reader has to open no more files to follow one step. */
const FILES_MAX = 60;

test('every file and function of the list runs in one WRITE_FILE, and no other file does', () => {
  const program = join(ROOT, 'tools/trace-step.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--json'], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([status, stderr]).toEqual([0, '']);
  const traced = JSON.parse(stdout) as readonly TracedFile[];
  const ran = new Map(traced.map(({ path, names }) => [path, names]));
  const listed = tableOf('docs/architecture.md', 'one-path').flatMap(([, functions = '', path = '']) =>
    functions.split(' ').map((name) => ({ path, name: name.replaceAll('`', '') })),
  );
  expect(listed.filter(({ path, name }) => ran.get(path)?.includes(name) !== true)).toEqual([]);
  const files = new Set(listed.map(({ path }) => path));
  expect([...ran.keys()].filter((path) => !files.has(path) && !IN_PARALLEL.includes(path))).toEqual([]);
  expect(files.size).toBeLessThanOrEqual(FILES_MAX);
  process.stdout.write(`one WRITE_FILE: ${files.size} files\n`);
});
