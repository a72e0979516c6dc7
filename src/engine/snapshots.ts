// Kernel snapshots (D16): where a long tree stood, so that taking it up again need not begin at its first entry. They
// are a cache: one that is missing, damaged or of another history costs time and nothing else.

import { sha256 } from '../contract/hash.js';
import { restoreTree, type Tree, type TreeSnapshot } from '../kernel/tree.js';
import { needed } from '../ledger/withheld.js';
import type { LedgerStore, StoredSnapshot, TreeEntry } from '../ports/ledger-store.js';

/** So many entries of a tree lie between two snapshots: two hundred reads, which fold in a fraction of a second. */
export const SNAPSHOT_ENTRIES = 2_048;

export function snapshotOf(tree: Tree): StoredSnapshot {
  const text = JSON.stringify(tree.snapshot());
  return { tree_id: tree.tree_id, seq: tree.head.seq, text, sha256: sha256(text) };
}

/** The tree as its snapshot has it, or null where there is none that belongs to the recorded tree. */
export async function fromSnapshot(store: LedgerStore, tree_id: string): Promise<Tree | null> {
  const stored = await store.snapshots.load(tree_id);
  if (stored === null || sha256(stored.text) !== stored.sha256) return null;
  try {
    const snapshot = JSON.parse(stored.text) as TreeSnapshot;
    const last = await entryAt(store, tree_id, stored.seq - 1);
    const first = await entryAt(store, tree_id, 0);
    const itsOwn = snapshot.tree_id === tree_id && snapshot.seq === stored.seq && snapshot.prev === last?.leaf_hash;
    return itsOwn && first !== null ? restoreTree(snapshot, needed(await store.artifactsOf(first))) : null;
  } catch {
    // Whatever is wrong with it: the entries say it all.
    return null;
  }
}

async function entryAt(store: LedgerStore, tree_id: string, seq: number): Promise<TreeEntry | null> {
  for await (const entry of store.tree(tree_id, seq)) return entry;
  return null;
}
