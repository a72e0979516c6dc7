// Folds stored trees into memory: each from its snapshot if a valid one exists, else from its first entry.

import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import { LedgerError } from '../../core/errors.js';
import { Fold, loadFeaturesOf, type Difference } from '../../kernel/fold.js';
import type { Decision } from '../../kernel/decision.js';
import type { Tree } from '../../kernel/tree.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { EntryWithContent, LedgerStore, StoredSnapshot, TreeEntry } from '../ports/ledger/ledger-store.js';
import { restoreFromSnapshot, type FoldOptions } from './snapshots.js';

export interface FoldedTree {
  readonly tree: Tree;
  /** The snapshot where the fold began; null if it began at the first entry. */
  readonly snapshot: StoredSnapshot | null;
}

/**
 * @returns null if the ledger has no such tree
 * @throws LedgerError LEDGER_TAMPERED if it does not fold, LEDGER_ERASED, LEDGER_ARCHIVED
 */
export async function foldTree(
  store: LedgerStore,
  tree_id: string,
  options: FoldOptions = {},
  missed?: MissedDecisions,
): Promise<FoldedTree | null> {
  const started = await startFold(store, tree_id, options, missed?.since);
  try {
    for await (const storedEntry of store.histories([started.position])) {
      await loadFeaturesOf(storedEntry.entry, storedEntry.artifacts);
      const decision = applyEntry(started.fold, storedEntry);
      if (missed !== undefined && decision !== null && storedEntry.entry.seq >= missed.since)
        missed.decisions.push(decision);
    }
    return finishFold(started);
  } catch (error) {
    started.fold.tree.stop();
    throw error;
  }
}

/** Collects the decisions of a tree from entry `since` on. */
export interface MissedDecisions {
  readonly since: number;
  readonly decisions: Decision[];
}

/**
 * Adds to a tree in memory the entries that the store has after it.
 * @returns their decisions @throws LedgerError if they do not fold; the tree must not be used then
 */
export async function foldOn(store: LedgerStore, tree: Tree): Promise<readonly Decision[]> {
  const fold = new Fold(tree);
  const decisions: Decision[] = [];
  for await (const storedEntry of store.histories([{ tree_id: tree.tree_id, seq: tree.head.seq }])) {
    await loadFeaturesOf(storedEntry.entry, storedEntry.artifacts);
    const decision = applyEntry(fold, storedEntry);
    if (decision !== null) decisions.push(decision);
  }
  const rest = fold.finish();
  if (rest !== null) throw tamperedError(null, rest);
  return decisions;
}

/**
 * Folds several trees with few queries. A tree that does not fold is left out, and others may be too; `foldTree` throws
 * the reason for each.
 */
export async function foldTrees(
  store: LedgerStore,
  tree_ids: readonly string[],
  options: FoldOptions = {},
): Promise<readonly FoldedTree[]> {
  const started = new Map<string, StartedFold>();
  for (const tree_id of tree_ids) started.set(tree_id, await startFold(store, tree_id, options));
  const folded: FoldedTree[] = [];
  const abandon = (fold: StartedFold): void => {
    started.delete(fold.position.tree_id);
    fold.fold.tree.stop();
  };
  /** Trees arrive one after another: when the next begins, this one is complete. */
  const end = (fold: StartedFold): void => {
    const tree = attempt(() => finishFold(fold));
    if (tree === null) abandon(fold);
    else {
      started.delete(fold.position.tree_id);
      folded.push(tree);
    }
  };
  let current: StartedFold | undefined;
  try {
    for await (const storedEntry of store.histories([...started.values()].map(({ position: place }) => place))) {
      const next = started.get(storedEntry.entry.tree_id);
      if (current !== undefined && current !== next && started.has(current.position.tree_id)) end(current);
      current = next;
      await loadFeaturesOf(storedEntry.entry, storedEntry.artifacts);
      if (next !== undefined && attempt(() => (applyEntry(next.fold, storedEntry), true)) === null) abandon(next);
    }
    if (current !== undefined && started.has(current.position.tree_id)) end(current);
  } catch {
    // Ignore the error: each remaining tree is folded alone when it is used, and fails there.
  }
  for (const left of started.values()) left.fold.tree.stop();
  return folded;
}

interface StartedFold {
  readonly fold: Fold;
  readonly snapshot: StoredSnapshot | null;
  readonly position: { readonly tree_id: string; readonly seq: number };
}

/** @param since the fold begins at this entry or earlier */
async function startFold(
  store: LedgerStore,
  tree_id: string,
  options: FoldOptions,
  since = Infinity,
): Promise<StartedFold> {
  const found = await restoreFromSnapshot(store, tree_id, options);
  const restored = found !== null && found.snapshot.seq <= since ? found : null;
  if (restored === null) found?.tree.stop();
  const fold = new Fold(restored?.tree ?? tree_id, options.interpretation);
  return { fold, snapshot: restored?.snapshot ?? null, position: { tree_id, seq: fold.tree.head.seq } };
}

/** @returns the decision if the entry is an input */
function applyEntry(fold: Fold, { entry, artifacts }: EntryWithContent): Decision | null {
  const contents = entry.type === 'input' ? requireContent(artifacts) : [];
  const result = fold.apply(entry, contents);
  if ('difference' in result) throw tamperedError(entry, result.difference);
  if ('unsupported' in result) throw unsupportedTreeError(entry.tree_id, result.unsupported);
  return 'decision' in result ? result.decision : null;
}

/** @returns null for a tree without entries */
function finishFold({ fold, snapshot }: StartedFold): FoldedTree | null {
  const rest = fold.finish();
  if (rest !== null) throw tamperedError(null, rest);
  return fold.tree.head.seq === 0 ? null : { tree: fold.tree, snapshot };
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

const unsupportedTreeError = (tree_id: string, { code, message }: LedgerError): LedgerError =>
  new LedgerError({ code, message: `the tree ${tree_id} cannot be continued here: ${message}` });

const tamperedError = (stored: TreeEntry | null, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${nameInTree(tree_id, seq)} (${rule}` +
      `${stored === null ? '' : `, ${stored.log_index === null ? 'not in the log yet' : nameInLedger(stored.log_index)}`}); run \`turnpike replay ${tree_id}\` for the difference`,
  });
