// Caches the courses of trees that readers have requested. A folded tree continues with its new entries. Only the most
// recently used trees are cached.

import type { TreeReplaySource } from './history.js';
import type { ReadControl } from '../../core/contract/read-control.js';
import { readContentToFold } from '../fold.js';
import { TreeCourse } from './tree-course.js';

/**
 * Maximum number of cached trees, and of their entries and transitions together. The tree of the last request always
 * stays.
 */
const TREES_MAX = 64;
const WEIGHT_MAX = 4_000_000;

export interface CourseCacheOptions {
  readonly source: TreeReplaySource;
  /** The number of entries in the log. */
  readonly size: () => Promise<number>;
  /** Awaited between entries, so that other work can run. */
  readonly pause: () => Promise<void> | undefined;
  readonly treesMax?: number;
}

/** A tree up to the current end of the log. */
export interface CourseSnapshot {
  readonly tree: TreeCourse;
  /** The index of the first log entry that it does not include. */
  readonly through: number;
}

export class CourseCache {
  readonly #options: CourseCacheOptions;
  readonly #trees = new Map<string, TreeCourse>();
  /** Requests for one tree run one after another. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: CourseCacheOptions) {
    this.#options = options;
  }

  /**
   * Folds the tree up to the end of the log. @returns null if there is no such tree @throws LedgerError LEDGER_ARCHIVED
   */
  refresh(tree_id: string, control?: ReadControl): Promise<CourseSnapshot | null> {
    const task = (this.#queues.get(tree_id) ?? Promise.resolve()).then(() => this.#refresh(tree_id, control));
    const settled = task.then(
      () => undefined,
      () => undefined,
    );
    this.#queues.set(tree_id, settled);
    void settled.then(() => {
      if (this.#queues.get(tree_id) === settled) this.#queues.delete(tree_id);
    });
    return task;
  }

  async #refresh(tree_id: string, control?: ReadControl): Promise<CourseSnapshot | null> {
    control?.signal.throwIfAborted();
    const through = await this.#options.size();
    const tree = this.#trees.get(tree_id) ?? new TreeCourse(tree_id);
    this.#trees.delete(tree_id);
    const { source, pause } = this.#options;
    try {
      await foldUpTo(tree, { source, pause: control?.pause ?? pause }, through);
    } catch (error) {
      // Cancelled between two entries: the next read of this tree resumes here.
      if (control?.signal.aborted === true && tree.next > 0) this.#trees.set(tree_id, tree);
      throw error;
    }
    if (tree.next === 0) return null;
    this.#trees.set(tree_id, tree);
    this.#evict();
    return { tree, through };
  }

  #evict(): void {
    let weight = [...this.#trees.values()].reduce((sum, tree) => sum + tree.weight, 0);
    for (const [tree_id, tree] of this.#trees) {
      if (this.#trees.size <= 1) return;
      if (this.#trees.size <= (this.#options.treesMax ?? TREES_MAX) && weight <= WEIGHT_MAX) return;
      this.#trees.delete(tree_id);
      weight -= tree.weight;
    }
  }
}

/** Applies the tree's entries whose log index is below `end`. */
export async function foldUpTo(
  tree: TreeCourse,
  { source, pause }: Pick<CourseCacheOptions, 'source' | 'pause'>,
  end: number,
): Promise<void> {
  for await (const entry of source.tree(tree.tree_id, tree.next)) {
    if (entry.log_index >= end) return;
    // A block of entries may begin before the requested one.
    if (entry.seq < tree.next) continue;
    const isContentNeeded = tree.shouldReadContent(entry) || entry.seq === 0;
    tree.take(entry, isContentNeeded ? await readContentToFold(entry, source) : []);
    await pause();
  }
}
