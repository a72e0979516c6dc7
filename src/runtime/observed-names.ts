import type { Catalogue } from '../core/contract/policy/catalogue.js';

/** Stands for a name in logs, metrics and spans that a caller chose and that policy and catalogue do not have. */
export const OTHER = '_OTHER';

/** The name of an action in logs, metrics and spans. */
export const observedAction = (catalogue: Pick<Catalogue, 'action'>, action: string | null): string =>
  action !== null && catalogue.action(action) !== undefined ? action : OTHER;
