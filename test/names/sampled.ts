import { sized } from '../fixtures/campaign.js';

/** All of them in a campaign, otherwise every twelfth. */
export const sampled = <T>(items: readonly T[]): readonly T[] => {
  const step = sized(12, 1);
  return items.filter((_, index) => index % step === 0);
};
