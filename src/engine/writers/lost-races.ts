/** A tree that was lost so often in a row is decided under its lock. */
const LOSSES_MAX = 2;
/** A contested tree stays so for this many commits of this worker. */
const CONTESTED_COMMITS = 64;
/** Maximum trees that are remembered. */
const TREES_MAX = 4_096;

/** The trees that several workers extend at once. */
export class LostRaces {
  /** Losses in a row, by tree. */
  readonly #losses = new Map<string, number>();
  /** Commits for which a tree is still contested. */
  readonly #contested = new Map<string, number>();

  isContested(tree_id: string): boolean {
    return this.#contested.has(tree_id);
  }

  note(tree_id: string, lost: boolean): void {
    if (lost) this.#noteLoss(tree_id);
    else this.#noteSuccess(tree_id);
  }

  #noteLoss(tree_id: string): void {
    const losses = (this.#losses.get(tree_id) ?? 0) + 1;
    if (this.#losses.size >= TREES_MAX) this.#losses.clear();
    this.#losses.set(tree_id, losses);
    if (losses < LOSSES_MAX) return;
    if (this.#contested.size >= TREES_MAX) this.#contested.clear();
    this.#contested.set(tree_id, CONTESTED_COMMITS);
  }

  #noteSuccess(tree_id: string): void {
    this.#losses.delete(tree_id);
    const left = this.#contested.get(tree_id);
    if (left === undefined) return;
    if (left <= 1) this.#contested.delete(tree_id);
    else this.#contested.set(tree_id, left - 1);
  }
}
