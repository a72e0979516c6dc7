/** @modules own */
// A ledger with values of counters, in an installation that cannot count: what it would permit is not known, and a
// restore must not be acknowledged as if nothing had been counted.

import { expect, test } from '@jest/globals';
import { declareFeatures } from '../../../src/features/declare-features.js';
import { readRestoredGrants } from '../../../src/features/backup/restored-grants.js';
import { readGolden } from '../../fixtures/golden-store.js';
import { ForwardingStore } from '../../fixtures/forwarding-store.js';

/** The history as if all of its trees had ended. */
const readGrants = (history: string) =>
  readGolden(history, (_reader, store) => {
    const ended = new ForwardingStore(store);
    ended.openTrees = async function* () {
      // No tree is open.
    };
    return readRestoredGrants(ended, 'run_none');
  });

test('what cannot be counted is refused, and counted once the feature is there', async () => {
  await expect(readGrants('counters')).rejects.toMatchObject({
    code: 'LEDGER_UNSUPPORTED',
    message: expect.stringContaining('the feature conditions') as unknown,
  });
  expect(await readGrants('everything')).toEqual({ approvals: [], counters: [] });
  declareFeatures();
  const { counters } = await readGrants('counters');
  expect(counters.length).toBeGreaterThan(0);
});
