import type { ErasureResult, LedgerStore } from './ports/ledger/ledger-store.js';
import type { LiveTrees } from './trees/live-trees.js';
import { caseInUseError } from './engine-errors.js';

interface CaseErasure {
  readonly case_id: string;
  readonly by: string;
  readonly time: () => string;
  /** Called before anything is erased, once no check can refuse any more. */
  readonly beforeErase: (() => Promise<void>) | undefined;
}

/**
 * Erases the content of a case (D14). The caller must keep everything else away from the trees.
 * @throws RunError CASE_IN_USE while a tree of the case is live
 */
export async function eraseCaseContent(
  store: LedgerStore,
  trees: LiveTrees,
  erasure: CaseErasure,
): Promise<ErasureResult> {
  const { case_id, by, time, beforeErase } = erasure;
  const found = await store.treesOf(case_id);
  const living = found.find(({ ended }) => !ended);
  if (living !== undefined) throw caseInUseError(case_id, living.tree_id);
  const tree_ids = found.map(({ tree_id }) => tree_id);
  await beforeErase?.();
  for (const tree_id of tree_ids) trees.drop(tree_id);
  return store.erase({ case_id, tree_ids, at: time(), by });
}
