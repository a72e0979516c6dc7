import { nameInLedger } from '../../../core/contract/entry-name.js';
import { LedgerError } from '../../../core/errors.js';
import { EMPTY_HEAD, extendHead } from '../../../core/ledger/proof/merkle.js';
import { isUnfoldable } from '../../../engine/failures.js';
import type {
  CopiedTree,
  LedgerCopySource,
  LedgerCopyTarget,
  RecoveredTree,
} from '../../../engine/ports/ledger/ledger-copy.js';
import type { LedgerStore, LogHead } from '../../../engine/ports/ledger/ledger-store.js';
import type { Lease } from '../../../engine/ports/ledger/shared-store.js';
import { NO_PROGRESS, type ProgressReporter } from '../../../engine/ports/progress.js';
import { foldTree } from '../../../engine/trees/fold-trees.js';
import { isAbandoned, liveAgents } from '../../../engine/trees/live-trees.js';
import type { Tree } from '../../../kernel/tree.js';

/** What was copied so far. */
export interface CopyCounts {
  entries: number;
  trees: number;
  contents: number;
}

/** Receives the counts after each page, and the number of entries of the source. */
export type CopyProgress = (counts: Readonly<CopyCounts>, entries: number) => void;

/** Who learns how far a copy is. */
export interface CopyListeners {
  readonly onProgress?: CopyProgress;
  readonly progress?: ProgressReporter;
}

/**
 * Copies all rows of a ledger in pages, in the order of its log. Holds one page in memory.
 * @param store the store of the source, for trees that must be folded; null if the target needs no leases
 * @returns the counts and the head
 * @throws LedgerError LEDGER_TAMPERED if the log of the source has not the root that the source states
 */
export async function copyLedger(
  source: LedgerCopySource,
  store: LedgerStore | null,
  target: LedgerCopyTarget,
  { onProgress = () => undefined, progress = NO_PROGRESS }: CopyListeners,
): Promise<CopyCounts & { readonly head: LogHead }> {
  const head = await source.head();
  const counts: CopyCounts = { entries: 0, trees: 0, contents: 0 };
  progress.begin({ label: 'copying contents', unit: 'contents', total: null });
  for await (const page of source.contents()) {
    await target.addContents(page);
    counts.contents += page.length;
    onProgress(counts, head.size);
    progress.advance(page.length);
  }
  progress.begin({ label: 'copying entries', unit: 'entries', total: head.size });
  let log: LogHead = EMPTY_HEAD;
  for await (const page of source.blocks()) {
    if (page[0]?.log_index !== log.size) throw differentLogError(log.size);
    log = extendHead(
      log,
      page.flatMap(({ leaf_hashes }) => leaf_hashes),
    );
    await target.addBlocks(page);
    progress.advance(log.size - counts.entries);
    counts.entries = log.size;
    onProgress(counts, head.size);
  }
  if (log.size !== head.size || log.root !== head.root) throw differentLogError(log.size);
  for await (const page of source.trees()) {
    const trees: RecoveredTree[] = [];
    for (const tree of page) trees.push(await recover(target.needsLeases ? store : null, tree));
    await target.addTrees(trees);
    counts.trees += page.length;
  }
  for await (const page of source.marks()) await target.addMarks(page);
  for await (const page of source.ends()) await target.addEnds(page);
  await target.finish(head);
  return { ...counts, head };
}

/**
 * Finds by folding what workers read from the store: the next timer of an unfinished tree, and the leases that its
 * former writer has left. A tree that does not fold has none: no worker could take it up.
 * @param store null if the target needs no leases
 */
async function recover(store: LedgerStore | null, tree: CopiedTree): Promise<RecoveredTree> {
  const folded = store === null || !tree.unfinished ? null : await foldUnlessDamaged(store, tree.tree_id);
  if (folded === null) return { ...tree, leases: [] };
  const wake_at = folded.timers.map(({ at }) => at).sort()[0] ?? null;
  const leases = leasesOf(folded);
  folded.stop();
  return { ...tree, wake_at, leases };
}

async function foldUnlessDamaged(store: LedgerStore, tree_id: string): Promise<Tree | null> {
  try {
    return (await foldTree(store, tree_id))?.tree ?? null;
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

const differentLogError = (size: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `the log is not what its head states, from entry ${nameInLedger(size)} on: run \`turnpike ledger verify\` on the source`,
  });
