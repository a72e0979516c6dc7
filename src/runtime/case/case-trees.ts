import { CaseTrees } from '../../engine/case-trees.js';
import type { LedgerStore, TreeSummary } from '../../ports/ledger-store.js';

/** The trees that were opened for a case, in the order of their first entries. */
export const treesOf = (store: LedgerStore, case_id: string): Promise<readonly TreeSummary[]> =>
  new CaseTrees(store, case_id).all();
