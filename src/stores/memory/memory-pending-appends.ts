import { nameInTree } from '../../core/contract/entry-name.js';
import { InvariantError } from '../../core/errors.js';
import type { Batch, Integration, PendingAppend } from '../../engine/ports/ledger/ledger-store.js';

/** The appends of a ledger in memory that are not integrated yet. */
export class MemoryPendingAppends {
  #appends: PendingAppend[] = [];
  #commits = 0;

  /** @throws InvariantError if an append is not the next pending one of its tree, or the head has the wrong size */
  check({ from, appends, head }: Integration): void {
    const remaining = [...this.#appends];
    let size = from;
    for (const append of appends) {
      const at = remaining.findIndex(({ tree_id }) => tree_id === append.tree_id);
      const [next] = at === -1 ? [] : remaining.splice(at, 1);
      const isNext = next?.seq === append.seq && next.leaf_hashes.join() === append.leaf_hashes.join();
      if (!isNext)
        throw new InvariantError(`entry ${nameInTree(append.tree_id, append.seq)} is not what is integrated next`);
      size += append.leaf_hashes.length;
    }
    if (head.size !== size) throw new InvariantError(`a log of ${size} entries cannot have a head of ${head.size}`);
  }

  add({ trees }: Batch): void {
    const commit_no = this.#commits;
    this.#commits += 1;
    for (const { tree_id, from, entries } of trees) {
      this.#appends.push({ commit_no, tree_id, seq: from, leaf_hashes: entries.map(({ leaf_hash }) => leaf_hash) });
    }
  }

  first(limit: number): readonly PendingAppend[] {
    return this.#appends.slice(0, limit);
  }

  remove(appends: readonly PendingAppend[]): void {
    const removed = new Set(appends.map(({ tree_id, seq }) => `${tree_id} ${seq}`));
    this.#appends = this.#appends.filter(({ tree_id, seq }) => !removed.has(`${tree_id} ${seq}`));
  }
}
