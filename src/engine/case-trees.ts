import type { LedgerStore, TreeSummary } from '../ports/ledger-store.js';
import { inUse } from './refusals.js';

/** The trees that were opened for one case, as far as they are known: that of an opened tree never changes. */
export class CaseTrees {
  readonly #store: LedgerStore;
  readonly #case_id: string;
  /** Whether a tree is one of the case, of all that were looked at. */
  readonly #known = new Map<string, boolean>();

  constructor(store: LedgerStore, case_id: string) {
    this.#store = store;
    this.#case_id = case_id;
  }

  /** Those that there are now. Asked again, it looks only at what is new. */
  async all(): Promise<readonly TreeSummary[]> {
    const found: TreeSummary[] = [];
    for await (const tree of this.#store.trees()) {
      const known = this.#known.get(tree.tree_id) ?? (await this.#look(tree.tree_id));
      this.#known.set(tree.tree_id, known);
      if (known) found.push(tree);
    }
    return found;
  }

  /** The ids of those that there are now. @throws RunError CASE_IN_USE while one of them lives */
  async ended(): Promise<readonly string[]> {
    const found = await this.all();
    const living = found.find(({ ended }) => !ended);
    if (living !== undefined) throw inUse(this.#case_id, living.tree_id);
    return found.map(({ tree_id }) => tree_id);
  }

  async #look(tree_id: string): Promise<boolean> {
    for await (const { text } of this.#store.tree(tree_id)) {
      const { body } = JSON.parse(text) as { readonly body?: { readonly case_id?: unknown } };
      return body?.case_id === this.#case_id;
    }
    return false;
  }
}
