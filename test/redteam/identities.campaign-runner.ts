// One person under many names: `npm run campaign -- redteam --only identities`.

import type { RedteamCampaign } from './campaign-runner.js';
import { attackIdentities } from './identities/campaign.js';
import { PLANTED } from './identities/subjects.js';

const CASES = 40_000;
const CASES_PER_SECOND = 500;

export const campaign: RedteamCampaign = ({ seed, seconds, say }) => {
  const cases = seconds === undefined ? CASES : seconds * CASES_PER_SECOND;
  const { figures, failures } = attackIdentities({ seed, cases, every: 1 });
  say(JSON.stringify(figures));
  const missed = PLANTED.filter((subject) => {
    const { failures: found } = attackIdentities({ seed, cases, every: 0, subject, isSearch: true });
    return found.length === 0;
  }).map(({ name }) => `the planted fault was not found: ${name}`);
  return Promise.resolve({
    figures: { ...figures, 'planted faults': PLANTED.length, 'planted faults found': PLANTED.length - missed.length },
    failures: [...failures, ...missed],
  });
};
