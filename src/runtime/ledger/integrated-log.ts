import type { CursorOptions, ReadableLedger, StoredEntry, TreeEntry } from '../../core/ledger/readable-ledger.js';

/** A ledger as its log shows it: only the integrated entries of each tree. */
export interface IntegratedLog extends Pick<ReadableLedger, 'log' | 'artifactsOf'> {
  tree(tree_id: string, fromSeq?: number, options?: CursorOptions): AsyncIterable<StoredEntry>;
}

/** Yields the entries of a tree in order, up to the first that is not integrated yet. */
export async function* readIntegrated(entries: AsyncIterable<TreeEntry>): AsyncGenerator<StoredEntry> {
  for await (const entry of entries) {
    if (!isIntegrated(entry)) return;
    yield entry;
  }
}

/** Restricts a store to the part that its log covers. */
export const integratedLog = (store: Pick<ReadableLedger, 'log' | 'tree' | 'artifactsOf'>): IntegratedLog => ({
  log: (fromIndex, options) => store.log(fromIndex, options),
  tree: (tree_id, fromSeq, options) => readIntegrated(store.tree(tree_id, fromSeq, options)),
  artifactsOf: (place) => store.artifactsOf(place),
});

/** An entry that is not yet integrated lies beyond every size of the log. */
export const isIntegrated = (entry: TreeEntry): entry is StoredEntry => entry.log_index !== null;
