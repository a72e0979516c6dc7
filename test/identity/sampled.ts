import { sized } from '../fixtures/campaign.js';

/** Every one of them in a campaign, every twelfth elsewhere. */
export const sampled = <T>(items: readonly T[]): readonly T[] => {
  const step = sized(12, 1);
  return items.filter((_, index) => index % step === 0);
};
