// A small campaign. The full one: node build/test/redteam/storage.js --seconds 600

import { expect, test } from '@jest/globals';
import { rmSync } from 'node:fs';
import { tempFolder } from '../fixtures/temp-folder.js';
import { findingsIn, storageCampaign, type StorageCampaign } from './storage.js';

const MIB = 2 ** 20;

async function findingsOf(over: Partial<StorageCampaign>): Promise<readonly string[]> {
  const folder = tempFolder('storage-campaign');
  const campaign = { seed: 1, seconds: 6, actorBytes: 4 * MIB, folder, ...over };
  const report = await storageCampaign(campaign);
  rmSync(folder, { recursive: true, force: true });
  return findingsIn(report, campaign);
}

test('S0-20 C80 C81: rejected payloads grow the home by less than the budget, and other cases continue', async () => {
  expect(await findingsOf({})).toEqual([]);
});

test('detects a budget that does not hold', async () => {
  expect(await findingsOf({ planted: 'no budget', actorBytes: MIB })).toEqual([
    expect.stringMatching(/^the home grew by/),
  ]);
});
