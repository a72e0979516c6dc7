import type { Erased, LedgerStore } from '../ports/ledger-store.js';
import type { LiveTrees } from './live-trees.js';
import { inUse } from './refusals.js';

interface CaseErasure {
  readonly case_id: string;
  readonly by: string;
  readonly time: () => string;
  /** Called before anything is erased, once nothing speaks against it. */
  readonly forget: (() => Promise<void>) | undefined;
}

/**
 * Erases the content of a case (D14). Nothing else may use the trees meanwhile.
 * @throws RunError CASE_IN_USE while a tree of the case lives
 */
export async function eraseCase(store: LedgerStore, trees: LiveTrees, erasure: CaseErasure): Promise<Erased> {
  const { case_id, by, time, forget } = erasure;
  const found = await store.treesOf(case_id);
  const living = found.find(({ ended }) => !ended);
  if (living !== undefined) throw inUse(case_id, living.tree_id);
  const tree_ids = found.map(({ tree_id }) => tree_id);
  await forget?.();
  for (const tree_id of tree_ids) trees.drop(tree_id);
  return store.erase({ case_id, tree_ids, at: time(), by });
}
