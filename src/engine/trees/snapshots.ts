// Kernel snapshots (D16): the state of a long tree, so that loading it need not begin at its first entry. They are a
// cache: a missing, damaged, foreign or forged snapshot costs only time. The database could be written by others, so
// each snapshot is authenticated under a key that the database does not have, and names the entry before it. An older
// one of the same tree is as good as the newest: folding goes on with the entries after it.

import { timingSafeEqual } from 'node:crypto';
import { sha256 } from '../../core/contract/hash.js';
import { loadFeaturesNamedIn } from '../../core/contract/run/feature-vocabulary.js';
import { readContentToFold } from '../../kernel/fold.js';
import type { Interpretation } from '../../kernel/interpreter/interpreter.js';
import { restoreTree, type Tree, type TreeSnapshot } from '../../kernel/tree.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { LedgerStore, StoredSnapshot, TreeEntry } from '../ports/ledger/ledger-store.js';
import type { Secrets } from '../../core/contract/secrets.js';

/** Minimum entries between two snapshots of a tree: two dozen reads, which fold in a few milliseconds. */
export const SNAPSHOT_ENTRIES = 192;
/** Maximum entries between two snapshots, however large a snapshot is. */
const SNAPSHOT_ENTRIES_MAX = 2_048;
/** Larger snapshots cost more to write: each 1,024 characters add one entry to the distance. */
const CHARS_PER_ENTRY = 1_024;

/** Computes the MACs of snapshots. */
export type SnapshotKey = Pick<Secrets, 'computeMac'>;

export function snapshotOf(tree: Tree, key: SnapshotKey): StoredSnapshot {
  const text = JSON.stringify(tree.snapshot());
  return { tree_id: tree.tree_id, seq: tree.head.seq, text, mac: macOf(text, key).toString('hex') };
}

/** The text names its tree, its place and the hash of the entry before it. */
const macOf = (text: string, key: SnapshotKey): Buffer => key.computeMac('tree_snapshot', [sha256(text)]);

function isAuthentic({ text, mac }: StoredSnapshot, key: SnapshotKey): boolean {
  const [expected, found] = [macOf(text, key), Buffer.from(mac, 'hex')];
  return expected.length === found.length && timingSafeEqual(expected, found);
}

/** The seq of the tree at which the next snapshot is due. */
export function nextSnapshotSeq({ seq, text }: Pick<StoredSnapshot, 'seq' | 'text'>, entries: number): number {
  const distance = Math.max(entries, Math.min(Math.floor(text.length / CHARS_PER_ENTRY), SNAPSHOT_ENTRIES_MAX));
  return seq + distance;
}

/** How trees are folded. */
export interface FoldOptions {
  readonly interpretation?: Interpretation | undefined;
  /** Without it, folds begin at the first entry. */
  readonly key?: SnapshotKey | undefined;
}

/** A restored tree and its snapshot. */
export interface RestoredTree {
  readonly tree: Tree;
  readonly snapshot: StoredSnapshot;
}

/** Restores a tree from its snapshot; null if no authentic snapshot belongs to the recorded tree. */
export async function restoreFromSnapshot(
  store: LedgerStore,
  tree_id: string,
  { interpretation, key }: FoldOptions,
): Promise<RestoredTree | null> {
  // Without the key, nothing shows who has made a snapshot.
  if (key === undefined) return null;
  try {
    const stored = await store.snapshots.load(tree_id);
    if (stored === null || !isAuthentic(stored, key)) return null;
    await loadFeaturesNamedIn(stored.text);
    const snapshot = JSON.parse(stored.text) as TreeSnapshot;
    const last = await readEntryAt(store, tree_id, stored.seq - 1);
    const first = await readEntryAt(store, tree_id, 0);
    const isMatching = snapshot.tree_id === tree_id && snapshot.seq === stored.seq && snapshot.prev === last?.leaf_hash;
    if (!isMatching || first === null) return null;
    const opening = requireContent(await readContentToFold(first, store));
    return { tree: restoreTree(snapshot, opening, interpretation), snapshot: stored };
  } catch {
    // Ignore any error: the entries alone suffice.
    return null;
  }
}

async function readEntryAt(store: LedgerStore, tree_id: string, seq: number): Promise<TreeEntry | null> {
  for await (const entry of store.tree(tree_id, seq)) return entry;
  return null;
}
