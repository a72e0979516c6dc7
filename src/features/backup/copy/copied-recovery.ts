import { liveAgents, isAbandoned } from '../../../engine/trees/live-trees.js';
import { foldTree } from '../../../engine/trees/fold-trees.js';
import { isUnfoldable } from '../../../engine/failures.js';
import type { Tree } from '../../../kernel/tree.js';
import type { CopiedRecovery } from '../../../engine/ports/ledger/ledger-copy.js';
import type { LedgerStore } from '../../../engine/ports/ledger/ledger-store.js';
import type { Lease } from '../../../engine/ports/ledger/shared-store.js';

/**
 * What workers must know about an unfinished tree of a ledger that had one writer: its timers, and the leases that this
 * writer has left. A start of a single writer finds both by folding; workers read them from the store.
 * @returns null for a tree that does not fold: no worker could take it up @throws LedgerError
 */
export async function readRecovery(store: LedgerStore, tree_id: string): Promise<CopiedRecovery | null> {
  try {
    const folded = await foldTree(store, tree_id);
    if (folded === null) return null;
    const { tree } = folded;
    const wake_at = tree.timers.map(({ at }) => at).sort()[0] ?? null;
    const recovery = { tree_id, wake_at, leases: leasesOf(tree) };
    tree.stop();
    return recovery;
  } catch (error) {
    if (isUnfoldable(error)) return null;
    throw error;
  }
}

/** As `leaseChanges` gives them to the worker that commits. */
function leasesOf(tree: Tree): readonly Lease[] {
  const { tree_id } = tree;
  const leases: Lease[] = [];
  for (const command of tree.pending) {
    if (command.kind === 'perform' && !command.in_commit) leases.push({ run_id: command.run_id, kind: 'effect' });
  }
  const agents = liveAgents(tree);
  for (const { link, context } of agents) {
    if (link === 'attached') leases.push({ run_id: context.run_id, kind: 'caller' });
  }
  if (agents.length === 0 && isAbandoned(tree)) leases.push({ run_id: tree_id, kind: 'caller' });
  return leases;
}
