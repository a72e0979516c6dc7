// Folds a whole log, from its first entry or from a replay point: the live runs, the ended runs, and the state of each
// tree. Ended trees leave memory, and the number of other trees in memory is limited.

import { loadFeaturesNamedIn } from '../../core/contract/run/feature-vocabulary.js';
import { nameInLedger, nameInTree } from '../../core/contract/entry-name.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { LedgerError } from '../../core/errors.js';
import { sha256 } from '../../core/contract/hash.js';
import { Fold, readContentToFold, type Difference } from '../fold.js';
import { TABLE_DRIVEN } from '../interpreter/interpreter.js';
import { isUnsupported, loadPinnedFeatures } from '../pinned-policy.js';
import { restoreTree, type TreeSnapshot } from '../tree.js';
import { requireContent } from '../../core/ledger/require-content.js';
import type { HistoryCache, ReplayPoint, HistorySnapshot } from '../../core/ledger/history-cache.js';
import {
  type PlacedSummary,
  type RunSnapshot,
  NOTHING_ARCHIVED,
  ReplayPointBuilder,
  type ArchivedPrefix,
  type EndedItems,
} from './ledger-state.js';
import type { ReplayEntry, ReplaySource } from './replay.js';

/** Maximum number of trees in memory between two points. */
const FOLDS_MAX = 512;

/** A source from which a tree can be read from any seq. */
export interface TreeReplaySource extends ReplaySource {
  /** The entries of one tree, from `fromSeq` on; by default from the first one. */
  tree(tree_id: string, fromSeq?: number): AsyncIterable<ReplayEntry>;
}

export class History {
  readonly #source: TreeReplaySource;
  readonly #cache: HistoryCache | null;
  readonly #points: ReplayPointBuilder;
  readonly #folds = new Map<string, Fold>();
  readonly #changed = new Set<string>();
  /** The tree of the last entry: only this tree can have consequences of an input still to come. */
  #last: Fold | null = null;
  #needs: string | null = null;

  /** @param archived what precedes the log, which then begins there with no live tree */
  constructor(source: TreeReplaySource, cache: HistoryCache | null, archived: ArchivedPrefix = NOTHING_ARCHIVED) {
    this.#source = source;
    this.#cache = cache;
    this.#points = new ReplayPointBuilder(archived);
  }

  /** Continues from a point that matches the ledger. */
  resumeFrom(point: ReplayPoint): void {
    this.#points.resumeFrom(point);
  }

  /** The number of folded entries of the log. */
  get size(): number {
    return this.#points.size;
  }

  get time(): string | null {
    return this.#points.time;
  }

  get trees(): { readonly begun: number; readonly ended: number } {
    return this.#points.trees;
  }

  /** Whether all consequences of the last input have been applied. */
  get isSettled(): boolean {
    return this.#last?.isComplete !== false;
  }

  /** What has ended since the last point that was restored or created. */
  get ended(): EndedItems {
    return this.#points.ended;
  }

  /** The live runs with their states. */
  get live(): readonly RunSnapshot[] {
    this.#placeChanged();
    return this.#points.live;
  }

  /** The trees of features that have not ended. */
  get summaries(): readonly PlacedSummary[] {
    this.#placeChanged();
    return this.#points.summaries;
  }

  /** Applies the next entry. @throws LedgerError LEDGER_TAMPERED if the machines do not produce it */
  async take(entry: ReplayEntry & { readonly leaf_hash?: string }): Promise<void> {
    const { tree_id } = entry;
    const fold = this.#points.isUnfoldable(tree_id) ? null : (this.#folds.get(tree_id) ?? (await this.#foldFor(entry)));
    const isFolded =
      fold !== null && (await foldEntry(fold, entry, this.#source, this.#recordUnsupported, this.#recordEntry));
    if (!isFolded) this.#recordUnfolded(entry);
    this.#last = isFolded ? fold : null;
    this.#points.advanceTo(entry.log_index + 1, entry.leaf_hash ?? '');
    this.#changed.add(tree_id);
    // A tree has ended: its fold stays until the next point.
    if (isFolded && fold.isComplete && fold.tree.hasEnded) this.#points.placeTree(fold.tree);
  }

  /** The live trees that are known from entries alone: their content is unavailable, or they cannot be evaluated. */
  get unfoldable(): readonly string[] {
    return this.#points.unfoldable;
  }

  /** What to install to fold the trees that this installation cannot evaluate; null if it can evaluate all. */
  get needs(): string | null {
    return this.#needs;
  }

  readonly #recordUnsupported = (needs: string): void => {
    this.#needs ??= needs;
  };

  readonly #recordEntry = (entry: Entry, log_index: number): void => {
    this.#points.recordEntry(entry, log_index);
  };

  #recordUnfolded({ tree_id, text, log_index }: ReplayEntry): void {
    this.#folds.delete(tree_id);
    this.#points.recordEntry(JSON.parse(text) as Entry, log_index);
    this.#points.markUnfoldable(tree_id);
  }

  /** Creates a point with the current state, and drops from memory what it stores. Call it only when `isSettled`. */
  createPoint(): { readonly point: ReplayPoint; readonly snapshots: readonly HistorySnapshot[] } {
    this.#placeChanged();
    const snapshots = [...this.#changed].flatMap((tree_id) => {
      const fold = this.#folds.get(tree_id);
      return fold === undefined ? [] : (this.#points.createSnapshot(fold.tree) ?? []);
    });
    this.#changed.clear();
    if (this.#folds.size > FOLDS_MAX) this.#folds.clear();
    for (const [tree_id, { tree }] of this.#folds) if (tree.hasEnded) this.#folds.delete(tree_id);
    return { point: this.#points.createPoint(), snapshots };
  }

  #placeChanged(): void {
    for (const tree_id of this.#changed) {
      const fold = this.#folds.get(tree_id);
      if (fold !== undefined) this.#points.placeTree(fold.tree);
    }
  }

  /** The fold that takes this entry, from the tree's last snapshot or first entry; null if it cannot be folded. */
  async #foldFor({ tree_id, seq }: ReplayEntry): Promise<Fold | null> {
    const fold = (seq === 0 ? null : await this.#restore(tree_id, seq)) ?? new Fold(tree_id, TABLE_DRIVEN);
    const from = fold.tree.head.seq;
    if (from < seq) {
      for await (const entry of this.#source.tree(tree_id, from)) {
        if (entry.seq >= seq) break;
        if (entry.seq >= from && !(await foldEntry(fold, entry, this.#source, this.#recordUnsupported))) return null;
      }
    }
    this.#folds.set(tree_id, fold);
    return fold;
  }

  async #restore(tree_id: string, seq: number): Promise<Fold | null> {
    const known = this.#points.tree(tree_id);
    if (known === null || known.point === null || this.#cache === null) return null;
    const stored = await this.#cache.snapshot(tree_id, known.point);
    if (stored === null || sha256(stored.text) !== stored.sha256) return null;
    await loadFeaturesNamedIn(stored.text);
    const snapshot = JSON.parse(stored.text) as TreeSnapshot;
    if (snapshot.seq > seq) return null;
    const policies = requireContent(await this.#source.artifactsOf({ tree_id, seq: 0, log_index: known.first }));
    await loadPinnedFeatures(policies);
    try {
      return new Fold(restoreTree(snapshot, policies, TABLE_DRIVEN));
    } catch (error) {
      if (isUnsupported(error)) return null;
      throw error;
    }
  }
}

type EntryAndIndex = Parameters<ReplayPointBuilder['recordEntry']>;

/**
 * @returns false if required content is unavailable, or the policy cannot be evaluated; apply nothing more then
 * @throws LedgerError LEDGER_TAMPERED if the machines do not produce the entry
 */
async function foldEntry(
  fold: Fold,
  entry: ReplayEntry,
  source: ReplaySource,
  onUnsupported: (needs: string) => void,
  onEntry: (...args: EntryAndIndex) => void = () => undefined,
): Promise<boolean> {
  const outcome = fold.apply(entry, await readContentToFold(entry, source));
  if ('difference' in outcome) throw tamperedError(entry, outcome.difference);
  if ('withheld' in outcome) return false;
  if ('unsupported' in outcome) {
    onUnsupported(outcome.unsupported.message);
    return false;
  }
  for (const { entry: caused } of outcome.decision?.entries ?? [])
    onEntry(caused, entry.log_index + caused.seq - entry.seq);
  return true;
}

const tamperedError = ({ log_index }: ReplayEntry, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${nameInTree(tree_id, seq)} (${rule}, ${nameInLedger(log_index)}); ` +
      `run \`turnpike replay ${tree_id}\` for the difference`,
  });
