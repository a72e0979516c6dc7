import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { NO_PROGRESS, type ProgressReporter } from '../../../src/engine/ports/progress.js';
import { countReads } from '../../../src/runtime/ledger/count-reads.js';
import { homePaths, openHome, type HomeStores } from '../../../src/home/home.js';
import { Bench } from '../../fixtures/bench.js';

/** Records every report as text. */
function recorder(): ProgressReporter & { readonly reports: string[] } {
  const reports: string[] = [];
  return {
    reports,
    begin: ({ label, total }) => void reports.push(`begin ${label} ${String(total)}`),
    advance: (count = 1) => void reports.push(`+${count}`),
    end: () => void reports.push('end'),
  };
}

let bench: Bench;
let opened: HomeStores;
let size = 0;
let tree_id = '';

beforeAll(async () => {
  bench = await Bench.open();
  const run = await bench.turnpike.startAgent();
  await run.end();
  opened = openHome(homePaths(bench.home), { readOnly: true });
  ({ size } = await opened.store.head());
  for await (const tree of opened.store.trees()) ({ tree_id } = tree);
});
afterAll(async () => {
  await opened.externalHeadStore.close();
  await opened.store.close();
  await bench.close();
});

async function drain(items: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const item of items) if (item !== undefined) count += 1;
  return count;
}

describe('reads of a ledger', () => {
  test('a pass over the log is a part with the size of the log', async () => {
    const progress = recorder();
    expect(await drain(countReads(opened.store, progress, { label: 'reading' }).log())).toBe(size);
    expect(progress.reports).toEqual([`begin reading ${size}`, ...Array.from({ length: size }, () => '+1'), 'end']);
  });

  test('a pass from an index on, and to an end, has only those entries', async () => {
    const progress = recorder();
    await drain(countReads(opened.store, progress, { label: 'reading', end: 4 }).log(3));
    expect(progress.reports[0]).toBe('begin reading 1');
  });

  test('a read within a pass is not counted', async () => {
    const progress = recorder();
    const store = countReads(opened.store, progress, { label: 'reading' });
    for await (const entry of store.log()) if (entry.log_index === 0) await drain(store.tree(tree_id));
    expect(progress.reports.filter((report) => report === '+1')).toHaveLength(size);
  });

  test('a pass that is left early ends its part, and the next read counts again', async () => {
    const progress = recorder();
    const store = countReads(opened.store, progress, { label: 'reading' });
    for await (const { log_index } of store.log()) if (log_index === 1) break;
    expect(progress.reports).toEqual([`begin reading ${size}`, '+1', 'end']);
    expect(await drain(store.tree(tree_id))).toBe(size);
    expect(progress.reports.slice(3)).toEqual(Array.from({ length: size }, () => '+1'));
  });

  test('reads of trees, and of histories, advance the part that the caller began', async () => {
    const progress = recorder();
    const store = countReads(opened.store, progress, { label: null });
    await drain(store.tree(tree_id));
    await drain(store.histories([{ tree_id, seq: 0 }]));
    await drain(store.log());
    expect(progress.reports).toEqual(Array.from({ length: 3 * size }, () => '+1'));
  });

  test('every other member of the store is that of the store', async () => {
    const store = countReads(opened.store, recorder(), { label: 'reading' });
    expect(await store.head()).toEqual(await opened.store.head());
    expect(store.archives).toBe(opened.store.archives);
    expect('commitTrees' in store).toBe('commitTrees' in opened.store);
  });

  test('without a reporter it is the store itself', () => {
    expect(countReads(opened.store, NO_PROGRESS, { label: 'reading' })).toBe(opened.store);
  });
});
