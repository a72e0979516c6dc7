// The commit checks find faulty stores: each planted fault fails the check that is named for it.

import { describe, expect, test } from '@jest/globals';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { sized } from '../../fixtures/campaign.js';
import { COMMIT_CHECKS } from './commit-checks.js';
import { CommitGround } from './commit-environment.js';
import { PLANTED_STORES, type PlantedStore } from './planted-stores.js';
import { slowLedger } from './slow-ledger.js';

/** The campaign runs every check with every fault; `npm test` the one that is named for it. */
const RUNS_EVERY_CHECK = sized(0, 1) === 1;

/** The checks, of those that are asked for, that a slow store with this fault fails. */
async function failedBy(plant: PlantedStore['plant'], losses: number, only?: string): Promise<readonly string[]> {
  const failed: string[] = [];
  for (const { name, run } of COMMIT_CHECKS.filter((check) => only === undefined || check.name === only)) {
    const state = new LedgerModel({ integrates: false });
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
    expect(await failedBy(plant, losses, RUNS_EVERY_CHECK ? undefined : found_by)).toContain(found_by);
  });
});
