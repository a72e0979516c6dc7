// Careless policies against the linter: `npm run campaign -- redteam --only linter`.

import type { RedteamCampaign } from './campaign-runner.js';
import { attackLinter } from './linter/campaign.js';

const ROUNDS = 40;
const ROUNDS_PER_SECOND = 0.5;

export const campaign: RedteamCampaign = ({ seed, seconds }) => {
  const rounds = seconds === undefined ? ROUNDS : Math.max(1, Math.round(seconds * ROUNDS_PER_SECOND));
  return Promise.resolve(attackLinter({ seed, rounds }));
};
