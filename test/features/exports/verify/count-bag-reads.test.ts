import { expect, test } from '@jest/globals';
import type { BagTree } from '../../../../src/engine/ports/bag-tree.js';
import { NO_PROGRESS } from '../../../../src/engine/ports/progress.js';
import { countBagReads } from '../../../../src/features/exports/commands/export-commands.js';

/** A bag of two files, read in pieces of two bytes. */
const BAG: BagTree = {
  // eslint-disable-next-line @typescript-eslint/require-await
  entries: async function* () {
    yield { kind: 'directory', path: 'data' };
    yield { kind: 'file', path: 'data/a', bytes: 3 };
    yield { kind: 'file', path: 'data/b', bytes: 2 };
  },
  // eslint-disable-next-line @typescript-eslint/require-await
  read: async function* (path) {
    yield Buffer.from('ab');
    if (path === 'data/a') yield Buffer.from('c');
  },
  close: () => Promise.resolve(),
};

test('the bytes that are read are counted, out of those of all files', async () => {
  const reports: string[] = [];
  const bag = countBagReads(BAG, {
    begin: ({ unit, total }) => void reports.push(`begin ${unit} ${String(total)}`),
    advance: (count) => void reports.push(`+${String(count)}`),
    end: () => void reports.push('end'),
  });
  const paths: string[] = [];
  for await (const entry of bag.entries()) paths.push(entry.path);
  for await (const piece of bag.read('data/a')) paths.push(String(piece));
  expect(paths).toEqual(['data', 'data/a', 'data/b', 'ab', 'c']);
  expect(reports).toEqual(['begin bytes null', 'begin bytes 5', '+2', '+1']);
});

test('without a reporter it is the bag itself', () => expect(countBagReads(BAG, NO_PROGRESS)).toBe(BAG));
