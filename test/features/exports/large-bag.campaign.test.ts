// A tenth of the required size, on the real store; test/bench/export.mjs uses the full size.

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { createSqliteStore, openSqliteStore } from '../../../src/stores/sqlite/sqlite-ledger-store.js';
import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import type { EntryPlace, LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { content, scribeOf, type Draft } from '../../fixtures/entries.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';
import {
  exportRun,
  OTHER,
  payload,
  place,
  readStep,
  requestFor,
  result,
  SECOND,
  treeOf,
  FOREIGN_TREE,
  verified,
  assembleBundle,
} from './material.js';

const { at, remove } = place();
afterAll(remove);

const STEPS = 1_000;
/** This number of steps has new content; the others repeat it. */
const FRESH = 200;

/** 400 artifacts and 4,000 events of the case, and some of another case. */
async function writeLedger(store: LedgerStore): Promise<void> {
  const scribe = await scribeOf(store);
  await scribe.write(store, [...treeOf(SECOND), ...treeOf(FOREIGN_TREE, OTHER)]);
  for (let n = 1; n <= STEPS; n += 50) {
    const drafts = Array.from({ length: 50 }, (_, i): readonly Draft[] => {
      const step = n + i;
      const foreign = step % 10 === 0 ? readStep(FOREIGN_TREE, step, payload(step, OTHER), result(step, OTHER)) : [];
      return [...readStep(SECOND, 10 + step, payload(step % FRESH), result(step % FRESH)), ...foreign];
    });
    await scribe.write(store, drafts.flat());
  }
  await scribe.write(store, exportRun(SECOND));
}

describe('S4-76: a case with 400 artifacts and 4,000 events', () => {
  const options = { file: at('ledger.db'), artifactsDir: at('artifacts') };
  beforeAll(async () => {
    const store = createSqliteStore(options);
    await writeLedger(store);
    await store.close();
  }, 300_000);

  test.each(['folder', 'zip'] as const)(
    'is exported by a reader, and verifies, as %s',
    async (format) => {
      const store = openSqliteStore({ ...options, readOnly: true });
      const destination = at(format === 'zip' ? 'large.zip' : 'large');
      const summary = await assembleBundle(store, requestFor(destination, { format }));
      await store.close();
      expect(summary).toMatchObject({ artifacts: 2 * FRESH, audit_events: 4 * STEPS + 6, runs: STEPS + 3 });
      const { artifacts, audit_events, runs } = summary;
      const report = await verified(destination);
      expect(report).toMatchObject({ valid: true, findings: [], bundle: { artifacts, audit_events, runs } });
    },
    300_000,
  );
});

test('S4-76: content is streamed: 16 MB of it use a few MB of memory', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const size = 1_048_576;
  const count = 16;
  const big = (n: number): Buffer => Buffer.alloc(size, n);
  const small = memoryStore();
  const scribe = await scribeOf(small);
  await scribe.write(small, treeOf(SECOND));
  const places = new Map<number, number>();
  for (let n = 1; n <= count; n += 1) {
    // Only the hash goes into the ledger here: the store below creates the content on demand.
    const batch = scribe.next(readStep(SECOND, 10 + n, content('raw_payload', big(n)), result(n)));
    const [append] = batch.trees;
    places.set(append!.from, n);
    const artifacts = append!.artifacts.filter(({ artifact }) => artifact.kind === 'result');
    await small.commit({ ...batch, trees: [{ ...append!, artifacts }] });
  }
  await scribe.write(small, exportRun(SECOND));
  let peak = 0;
  let asked = 0;
  collect();
  const before = process.memoryUsage().arrayBuffers;
  const store: LedgerStore = Object.assign(new ForwardingStore(small), {
    artifactsOf: async (place: EntryPlace) => {
      const n = places.get(place.seq);
      if (n === undefined) return small.artifactsOf(place);
      // At each further megabyte of content; memory grows nowhere else, and a collection is slow.
      collect();
      peak = Math.max(peak, process.memoryUsage().arrayBuffers - before);
      asked += 1;
      return [content('raw_payload', big(n))];
    },
  });
  const summary = await assembleBundle(store, requestFor(at('streamed.zip'), { format: 'zip' }));
  expect(summary.bytes).toBeGreaterThan(count * size);
  expect(asked).toBeGreaterThanOrEqual(count);
  expect(peak).toBeLessThan(6 * size);
}, 300_000);
