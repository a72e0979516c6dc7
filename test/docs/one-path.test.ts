// The path of a WRITE_FILE that docs/architecture.md lists is the one that a real step takes.

import { expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { printFigure } from '../fixtures/campaign.js';
import { ROOT } from '../root.js';
import { tableOf } from './tables.js';

/** A function that ran, in the order of the first calls. */
interface Call {
  readonly path: string;
  readonly name: string;
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

test('each step takes the files and functions of the list, in its order, and no other file', () => {
  const program = join(ROOT, 'tools/trace-step.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--json'], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([status, stderr]).toEqual([0, '']);
  const calls = JSON.parse(stdout) as readonly Call[];
  const places = new Map(calls.map(({ path, name }, place) => [`${path} ${name}`, place]));
  const rows = tableOf('docs/architecture.md', 'one-path').map(([, functions = '', path = '']) =>
    functions.split(' ').map((name) => `${path} ${name.replaceAll('`', '')}`),
  );
  expect(rows.flat().filter((called) => !places.has(called))).toEqual([]);
  const listed = new Set(rows.flat().map((called) => called.split(' ')[0]));
  const files = new Set(calls.map(({ path }) => path));
  expect([...files].filter((path) => !listed.has(path) && !IN_PARALLEL.includes(path))).toEqual([]);
  expect(listed.size).toBeLessThanOrEqual(FILES_MAX);
  // A row whose functions an earlier row has is where they run again.
  const firsts = rows.filter(
    (row, at) =>
      !rows
        .slice(0, at)
        .flat()
        .some((called) => row.includes(called)),
  );
  const order = firsts.map(([first = '']) => first);
  expect(order).toEqual(order.toSorted((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0)));
  printFigure(`one WRITE_FILE: ${listed.size} files`);
});
