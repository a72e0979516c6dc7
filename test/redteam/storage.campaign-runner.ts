// An agent that submits only rejected payloads: `npm run campaign -- redteam --only storage`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedteamCampaign } from './campaign-runner.js';
import { findingsIn, storageCampaign } from './storage.js';

const SECONDS = 600;
const BUDGET_BYTES = 64 * 2 ** 20;

export const campaign: RedteamCampaign = async ({ seed, seconds = SECONDS }) => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-storage-'));
  try {
    const asked = { seed, seconds, actorBytes: BUDGET_BYTES, folder };
    const report = await storageCampaign(asked);
    const { sent, sentBytes, grewBytes, otherBytes, steps, succeeded } = report;
    const figures = { sent, sentBytes, grewBytes, otherBytes, budgetBytes: BUDGET_BYTES, steps, succeeded };
    return { figures, failures: findingsIn(report, asked) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
