// The commit checks find faulty stores: each planted fault fails the check that is named for it.

import { describe, expect, test } from '@jest/globals';
import { MemoryState } from '../../../src/adapters/memory/memory-state.js';
import { sized } from '../../fixtures/campaign.js';
import { COMMIT_CHECKS } from './commit-checks.js';
import { CommitGround } from './commit-environment.js';
import { PLANTED_STORES, type PlantedStore } from './planted-stores.js';
import { slowLedger } from './slow-ledger.js';

/** The checks that a slow store with this fault fails. */
async function failedBy(plant: PlantedStore['plant'], losses: number): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of COMMIT_CHECKS) {
    const state = new MemoryState({ integrates: false });
    const ground = await CommitGround.open(slowLedger({ state, seed: 7, losses, integrates: false, plant }));
    await run(ground).catch(() => failed.push(name));
    await ground.close();
  }
  return failed;
}

describe.each([0, 0.2].slice(0, sized(1, 2)))('a slow store that loses %f of its answers', (losses) => {
  test('passes all checks without a fault', async () => {
    expect(await failedBy((store) => store, losses)).toEqual([]);
  });

  test.each(PLANTED_STORES)('is found to have the fault: $name', async ({ plant, found_by }) => {
    expect(await failedBy(plant, losses)).toContain(found_by);
  });
});
