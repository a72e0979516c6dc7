// Folds stored trees into memory: each from its snapshot, where it has one that fits, else from its first entry.

import { LedgerError } from '../errors.js';
import { Fold, type Difference } from '../kernel/fold.js';
import type { Interpretation } from '../kernel/interpreter.js';
import type { Tree } from '../kernel/tree.js';
import { needed } from '../ledger/withheld.js';
import type { EntryWithContent, LedgerStore, StoredSnapshot, TreeEntry } from '../ports/ledger-store.js';
import { fromSnapshot } from './snapshots.js';

export interface FoldedTree {
  readonly tree: Tree;
  /** Where its fold began; null for its first entry. */
  readonly snapshot: StoredSnapshot | null;
}

/**
 * @returns null when the ledger has no such tree
 * @throws LedgerError LEDGER_TAMPERED when it does not fold, LEDGER_ERASED, LEDGER_ARCHIVED
 */
export async function foldTree(store: LedgerStore, tree_id: string, how?: Interpretation): Promise<FoldedTree | null> {
  const begun = await begin(store, tree_id, how);
  try {
    for await (const read of store.histories([begun.place])) take(begun.fold, read);
    return finish(begun);
  } catch (error) {
    begun.fold.tree.stop();
    throw error;
  }
}

/**
 * Folds several trees with few queries. A tree that does not fold is left out, and so may others be: `foldTree` says
 * why, of each by itself.
 */
export async function foldTrees(
  store: LedgerStore,
  tree_ids: readonly string[],
  how?: Interpretation,
): Promise<readonly FoldedTree[]> {
  const begun = new Map<string, BegunFold>();
  for (const tree_id of tree_ids) begun.set(tree_id, await begin(store, tree_id, how));
  const folded: FoldedTree[] = [];
  const leave = (fold: BegunFold): void => {
    begun.delete(fold.place.tree_id);
    fold.fold.tree.stop();
  };
  /** Trees come one after another: when the next one begins, this one is whole. */
  const end = (fold: BegunFold): void => {
    const tree = attempt(() => finish(fold));
    if (tree === null) leave(fold);
    else {
      begun.delete(fold.place.tree_id);
      folded.push(tree);
    }
  };
  let present: BegunFold | undefined;
  try {
    for await (const read of store.histories([...begun.values()].map(({ place }) => place))) {
      const next = begun.get(read.entry.tree_id);
      if (present !== undefined && present !== next && begun.has(present.place.tree_id)) end(present);
      present = next;
      if (next !== undefined && attempt(() => (take(next.fold, read), true)) === null) leave(next);
    }
    if (present !== undefined && begun.has(present.place.tree_id)) end(present);
  } catch {
    // Whatever it is: each tree that is left is folded by itself when it is used, and meets it there.
  }
  for (const left of begun.values()) left.fold.tree.stop();
  return folded;
}

interface BegunFold {
  readonly fold: Fold;
  readonly snapshot: StoredSnapshot | null;
  readonly place: { readonly tree_id: string; readonly seq: number };
}

async function begin(store: LedgerStore, tree_id: string, how?: Interpretation): Promise<BegunFold> {
  const restored = await fromSnapshot(store, tree_id, how);
  const fold = new Fold(restored?.tree ?? tree_id, how);
  return { fold, snapshot: restored?.snapshot ?? null, place: { tree_id, seq: fold.tree.head.seq } };
}

function take(fold: Fold, { entry, artifacts }: EntryWithContent): void {
  const taken = fold.take(entry, entry.type === 'input' ? needed(artifacts) : []);
  if ('difference' in taken) throw tampered(entry, taken.difference);
}

/** @returns null for a tree without entries */
function finish({ fold, snapshot }: BegunFold): FoldedTree | null {
  const rest = fold.finish();
  if (rest !== null) throw tampered(null, rest);
  return fold.tree.head.seq === 0 ? null : { tree: fold.tree, snapshot };
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

const tampered = (stored: TreeEntry | null, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${seq} (${rule}` +
      `${stored === null ? '' : `, log index ${stored.log_index ?? 'none'}`}); run \`turnpike replay ${tree_id}\` for the difference`,
  });
