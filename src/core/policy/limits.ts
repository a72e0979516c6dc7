import type { Policy } from './policy.js';

/** The number of invalid proposals that end a run if the policy does not set it. */
export const INVALID_PER_RUN_DEFAULT = 100;

/**
 * Returns the number of proposals rejected before AUTHORIZE that end an agent run (C81). The default is not lower than
 * the limit of denials.
 */
export const invalidMax = ({ limits }: Pick<Policy, 'limits'>): number =>
  limits.invalid_per_run_max ?? Math.max(INVALID_PER_RUN_DEFAULT, limits.denials_per_run_max);
