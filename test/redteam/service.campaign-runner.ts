// One hostile token against the HTTP and MCP service: `npm run campaign -- redteam --only service`.

import { fileURLToPath } from 'node:url';
import type { RedteamCampaign } from './campaign-runner.js';
import { attackService } from './service/campaign.js';

const SECONDS = 120;
const ENTRIES = 100_000;

export const campaign: RedteamCampaign = ({ seed, seconds = SECONDS, say }) =>
  attackService({
    seed,
    seconds,
    say,
    entries: ENTRIES,
    programs: fileURLToPath(new URL('./service', import.meta.url)),
  });
