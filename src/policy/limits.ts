import type { Policy } from './policy.js';

/** Where a policy does not say how many invalid proposals end a run. */
export const INVALID_PER_RUN_DEFAULT = 100;

/**
 * How many proposals that are refused before AUTHORIZE end an agent run (C81). A policy that is patient with denials
 * is as patient with these.
 */
export const invalidMax = ({ limits }: Pick<Policy, 'limits'>): number =>
  limits.invalid_per_run_max ?? Math.max(INVALID_PER_RUN_DEFAULT, limits.denials_per_run_max);
