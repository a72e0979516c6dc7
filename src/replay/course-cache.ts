// Courses of the trees that somebody looks at. A tree that was folded goes on from where it stands when new entries
// have come; of many trees only the last ones are kept.

import type { TreeReplaySource } from './history.js';
import type { ReadControl } from '../ports/pace.js';
import { TreeCourse } from './tree-course.js';

/** Trees, and entries and moves of them together, that are kept. The one that was asked for last always is. */
const TREES_MAX = 64;
const WEIGHT_MAX = 4_000_000;

export interface CourseCacheOptions {
  readonly source: TreeReplaySource;
  /** How many entries the log has. */
  readonly size: () => Promise<number>;
  /** Awaited between entries, so that others have their turns. */
  readonly pause: () => Promise<void> | undefined;
  readonly treesMax?: number;
}

/** A tree as far as the log had come. */
export interface CourseSnapshot {
  readonly tree: TreeCourse;
  /** The first entry of the log that is not in it. */
  readonly through: number;
}

export class CourseCache {
  readonly #options: CourseCacheOptions;
  readonly #trees = new Map<string, TreeCourse>();
  /** One question after the other for each tree. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: CourseCacheOptions) {
    this.#options = options;
  }

  /** The tree as it stands. @returns null for one that there is not @throws LedgerError LEDGER_ARCHIVED */
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

/** Takes the entries of the tree that stand below `end` in the log. */
export async function foldUpTo(
  tree: TreeCourse,
  { source, pause }: Pick<CourseCacheOptions, 'source' | 'pause'>,
  end: number,
): Promise<void> {
  for await (const entry of source.tree(tree.tree_id, tree.next)) {
    if (entry.log_index >= end) return;
    // A block of entries may begin before.
    if (entry.seq < tree.next) continue;
    tree.take(entry, tree.shouldReadContent(entry) || entry.seq === 0 ? await source.artifactsOf(entry) : []);
    await pause();
  }
}
