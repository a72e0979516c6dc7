// Merges several trees into log order, as a stream.

import type { LedgerStore, StoredEntry, TreeSummary } from '../../engine/ports/ledger/ledger-store.js';
import { tamperedTreeError, TreeCursor } from './tree-cursor.js';

/**
 * Limit of trees that are read concurrently, each with one page of the store. Beyond it, the trees whose next entry is
 * furthest away are parked. Memory stays bounded; a parked tree costs one more query.
 */
const PAGES_MAX = 128;

interface MergeOptions {
  /** Only entries below this log size are yielded. */
  readonly size: number;
  /** Called at the end of each tree, before the next entry is yielded. It may throw. */
  readonly onTreeEnd: (tree: TreeSummary, cursor: TreeCursor) => Promise<void>;
}

/**
 * The entries of these trees in log order, each verified within its tree.
 * @param trees in the order of their first entries
 * @throws LedgerError LEDGER_TAMPERED, LEDGER_ARCHIVED, and what `onTreeEnd` throws
 */
export async function* mergeTrees(
  store: Pick<LedgerStore, 'tree'>,
  trees: readonly TreeSummary[],
  { size, onTreeEnd }: MergeOptions,
): AsyncGenerator<StoredEntry> {
  // A tree is opened when the pass reaches its first entry.
  const pending = trees
    .filter(isPlaced)
    .filter(({ log_index }) => log_index < size)
    .reverse();
  const active = new ActiveTrees();
  let nearest: ActiveTree | null = null;
  try {
    for (;;) {
      for (let tree = pending.at(-1); tree !== undefined && tree.log_index < active.next; tree = pending.at(-1)) {
        pending.pop();
        const cursor = new TreeCursor(store, tree.tree_id, size);
        await cursor.begin();
        if (cursor.next !== tree.log_index) throw tamperedTreeError(tree.tree_id);
        await active.insert({ tree, cursor });
      }
      nearest = active.pop();
      if (nearest === null) return;
      yield await nearest.cursor.take();
      if (nearest.cursor.next === null) await onTreeEnd(nearest.tree, nearest.cursor);
      else await active.insert(nearest);
    }
  } finally {
    await nearest?.cursor.suspend();
    await active.park();
  }
}

interface PlacedTree extends TreeSummary {
  readonly log_index: number;
}

const isPlaced = (tree: TreeSummary): tree is PlacedTree => tree.log_index !== null;

interface ActiveTree {
  readonly tree: TreeSummary;
  readonly cursor: TreeCursor;
}

/** The trees that still have entries, sorted by the next entry. */
class ActiveTrees {
  /** The nearest is last. All but the last `PAGES_MAX` are parked. */
  readonly #sorted: ActiveTree[] = [];

  /** The log index of the nearest entry. */
  get next(): number {
    return this.#sorted.at(-1)?.cursor.next ?? Infinity;
  }

  pop(): ActiveTree | null {
    return this.#sorted.pop() ?? null;
  }

  async insert(tree: ActiveTree): Promise<void> {
    const index = this.#insertionIndex(tree.cursor.next ?? Infinity);
    this.#sorted.splice(index, 0, tree);
    const overflow = this.#sorted.length - PAGES_MAX - 1;
    if (overflow >= 0) await this.#sorted[Math.min(index, overflow)]?.cursor.suspend();
  }

  async park(): Promise<void> {
    for (const { cursor } of this.#sorted) await cursor.suspend();
  }

  /** The index behind all trees whose next entry is further away. */
  #insertionIndex(next: number): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle]?.cursor.next ?? Infinity) > next) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
