import { needed } from '../ledger/withheld.js';
import type { LedgerStore, TreeEntry } from '../ports/ledger-store.js';
import { LedgerError } from '../errors.js';
import { Fold, type Difference } from '../kernel/fold.js';
import { Tree } from '../kernel/tree.js';
import { fromSnapshot, snapshotOf } from './snapshots.js';

/**
 * The trees that are alive in memory. Whatever is not here is folded again from the ledger, which gives the same, so
 * that putting a tree out costs time and nothing else.
 */
export class LiveTrees {
  readonly #store: LedgerStore;
  readonly #max: number;
  readonly #snapshotEntries: number;
  readonly #leaving: (tree: Tree) => void;
  /** In order of use, the longest unused first. */
  readonly #trees = new Map<string, Tree>();
  /** Up to which seq the last snapshot of a long tree reaches. */
  readonly #saved = new Map<string, number>();

  constructor(
    store: LedgerStore,
    max: number,
    snapshotEntries: number,
    leaving: (tree: Tree) => void = () => undefined,
  ) {
    this.#leaving = leaving;
    this.#store = store;
    this.#max = max;
    this.#snapshotEntries = snapshotEntries;
  }

  get size(): number {
    return this.#trees.size;
  }

  /** The tree, if it is in memory, for somebody who does not use it. */
  readonly seen = (tree_id: string): Tree | null => this.#trees.get(tree_id) ?? null;

  /** The tree, if it is in memory. */
  alive(tree_id: string): Tree | null {
    const tree = this.#trees.get(tree_id) ?? null;
    if (tree !== null) this.keep(tree);
    return tree;
  }

  /** @returns null when the ledger has no such tree @throws LedgerError LEDGER_TAMPERED when it does not fold */
  async get(tree_id: string): Promise<Tree | null> {
    const alive = this.alive(tree_id);
    if (alive !== null) return alive;
    const folded = await this.#fold(tree_id);
    if (folded !== null) this.keep(folded);
    return folded;
  }

  keep(tree: Tree): void {
    this.#trees.delete(tree.tree_id);
    this.#trees.set(tree.tree_id, tree);
  }

  /** What is in memory may not be what is in the ledger: forget it. */
  drop(tree_id: string): void {
    this.#trees.delete(tree_id);
    this.#saved.delete(tree_id);
  }

  /** Whether a tree has grown long since its last snapshot. */
  isDue(tree_id: string): boolean {
    const tree = this.#trees.get(tree_id);
    return tree !== undefined && tree.head.seq - (this.#saved.get(tree_id) ?? 0) >= this.#snapshotEntries;
  }

  /** Keeps a snapshot of a tree. All its entries must be committed. */
  async save(tree_id: string): Promise<void> {
    const tree = this.#trees.get(tree_id);
    if (tree === undefined) return;
    this.#saved.set(tree_id, tree.head.seq);
    await this.#store.snapshots.save(snapshotOf(tree));
  }

  /** Puts out the longest unused above the limit. Call it only between commits. */
  evict(isBusy: (tree: Tree) => boolean): void {
    for (const tree of this.#trees.values()) {
      if (this.#trees.size <= this.#max) return;
      if (isBusy(tree)) continue;
      this.#leaving(tree);
      this.drop(tree.tree_id);
    }
  }

  async #fold(tree_id: string): Promise<Tree | null> {
    const fold = new Fold((await fromSnapshot(this.#store, tree_id)) ?? tree_id);
    let entries = fold.tree.head.seq;
    if (entries > 0) this.#saved.set(tree_id, entries);
    for await (const stored of this.#store.tree(tree_id, entries)) {
      entries += 1;
      const artifacts = stored.type === 'input' ? needed(await this.#store.artifactsOf(stored)) : [];
      const taken = fold.take(stored, artifacts);
      if ('difference' in taken) throw tampered(stored, taken.difference);
    }
    const rest = fold.finish();
    if (rest !== null) throw tampered(null, rest);
    return entries === 0 ? null : fold.tree;
  }
}

const tampered = (stored: TreeEntry | null, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${seq} (${rule}` +
      `${stored === null ? '' : `, log index ${stored.log_index ?? 'none'}`}); run \`turnpike replay ${tree_id}\` for the difference`,
  });
