import { isUnsupported } from '../../kernel/pinned-policy.js';

/** Maximum trees that are remembered; beyond it, the one that was met first is forgotten and may be met again. */
export const LATER_TREES_MAX = 4_096;

/**
 * The trees that this process cannot evaluate, as far as it has met them: a later version of the program started them,
 * and a worker of that version has to continue them.
 */
export class LaterTrees {
  readonly #ids = new Set<string>();

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  get count(): number {
    return this.#ids.size;
  }

  /** Remembers the tree if the error says that this process cannot evaluate it. */
  note(tree_id: string, error: unknown): void {
    if (!isUnsupported(error)) return;
    const [first] = this.#ids;
    if (this.#ids.size >= LATER_TREES_MAX && first !== undefined) this.#ids.delete(first);
    this.#ids.add(tree_id);
  }
}
