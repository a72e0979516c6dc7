// The fold of a whole log, from its first entry or from a point that was remembered: which runs live, which have ended,
// and where each tree stands. Of trees that have ended nothing stays in memory, and of the others only so many.

import type { Entry } from '../contract/entry.js';
import { LedgerError } from '../errors.js';
import { sha256 } from '../contract/hash.js';
import { Fold, type Difference } from '../kernel/fold.js';
import { restoreTree, type TreeSnapshot } from '../kernel/tree.js';
import { needed } from '../ledger/withheld.js';
import type { HistoryCache, HistoryPoint, HistorySnapshot } from '../ports/history-cache.js';
import { NOTHING_ARCHIVED, PointBook, type Beginning, type Ended } from './point-book.js';
import type { ReplayEntry, ReplaySource } from './replay.js';
import type { RunAt, SessionAt } from './state.js';

/** How many trees stay in memory from one point to the next. */
const FOLDS_KEPT = 512;

/** A source of which a tree can be read from any of its entries on. */
export interface TreeSource extends ReplaySource {
  tree(tree_id: string, fromSeq?: number): AsyncIterable<ReplayEntry>;
}

export class History {
  readonly #source: TreeSource;
  readonly #cache: HistoryCache | null;
  readonly #book: PointBook;
  readonly #folds = new Map<string, Fold>();
  readonly #changed = new Set<string>();
  /** Whose entries came last: only this tree can be in the middle of what an input caused. */
  #last: Fold | null = null;

  /** @param archived what comes before the log: it begins there, with no tree alive */
  constructor(source: TreeSource, cache: HistoryCache | null, archived: Beginning = NOTHING_ARCHIVED) {
    this.#source = source;
    this.#cache = cache;
    this.#book = new PointBook(archived);
  }

  /** Goes on from a point that fits the ledger. */
  takeUp(point: HistoryPoint): void {
    this.#book.takeUp(point);
  }

  /** How many entries of the log it has folded. */
  get size(): number {
    return this.#book.size;
  }

  get time(): string | null {
    return this.#book.time;
  }

  get trees(): { readonly begun: number; readonly ended: number } {
    return this.#book.trees;
  }

  /** Whether the last input has all that it caused. */
  get settled(): boolean {
    return this.#last?.settled !== false;
  }

  /** What has ended since the point that it was taken up at, or that was put down last. */
  get ended(): Ended {
    return this.#book.ended;
  }

  /** The runs that live, each where it stands. */
  get live(): readonly RunAt[] {
    this.#place();
    return this.#book.live;
  }

  /** The sessions that are not over. */
  get sessions(): readonly SessionAt[] {
    this.#place();
    return this.#book.sessions;
  }

  /** Takes the next entry. @throws LedgerError LEDGER_TAMPERED when the machines would not have spoken it */
  async take(entry: ReplayEntry & { readonly leaf_hash?: string }): Promise<void> {
    const { tree_id } = entry;
    const fold = this.#book.isLost(tree_id) ? null : (this.#folds.get(tree_id) ?? (await this.#fold(entry)));
    const isFolded = fold !== null && (await takenBy(fold, entry, this.#source, this.#note));
    if (!isFolded) this.#takeUnfolded(entry);
    this.#last = isFolded ? fold : null;
    this.#book.reach(entry.log_index + 1, entry.leaf_hash ?? '');
    this.#changed.add(tree_id);
    // A tree has ended: its fold stays until the next point.
    if (isFolded && fold.settled && fold.tree.ended) this.#book.place(fold.tree);
  }

  /** The live trees of which entries tell all that is known, because content that they need is not to be had. */
  get lost(): readonly string[] {
    return this.#book.lost;
  }

  readonly #note = (entry: Entry, log_index: number): void => {
    this.#book.note(entry, log_index);
  };

  #takeUnfolded({ tree_id, text, log_index }: ReplayEntry): void {
    this.#folds.delete(tree_id);
    this.#book.note(JSON.parse(text) as Entry, log_index);
    this.#book.lose(tree_id);
  }

  /** Puts down where everything stands, and forgets what a point remembers from now on. Only when settled. */
  point(): { readonly point: HistoryPoint; readonly snapshots: readonly HistorySnapshot[] } {
    this.#place();
    const snapshots = [...this.#changed].flatMap((tree_id) => {
      const fold = this.#folds.get(tree_id);
      return fold === undefined ? [] : (this.#book.snapshot(fold.tree) ?? []);
    });
    this.#changed.clear();
    if (this.#folds.size > FOLDS_KEPT) this.#folds.clear();
    for (const [tree_id, { tree }] of this.#folds) if (tree.ended) this.#folds.delete(tree_id);
    return { point: this.#book.point(), snapshots };
  }

  #place(): void {
    for (const tree_id of this.#changed) {
      const fold = this.#folds.get(tree_id);
      if (fold !== undefined) this.#book.place(fold.tree);
    }
  }

  /** The fold that takes this entry: from its tree's last snapshot, or first entry; null where it cannot be folded. */
  async #fold({ tree_id, seq }: ReplayEntry): Promise<Fold | null> {
    const fold = (seq === 0 ? null : await this.#restored(tree_id, seq)) ?? new Fold(tree_id);
    const from = fold.tree.head.seq;
    if (from < seq) {
      for await (const entry of this.#source.tree(tree_id, from)) {
        if (entry.seq >= seq) break;
        if (entry.seq >= from && !(await takenBy(fold, entry, this.#source))) return null;
      }
    }
    this.#folds.set(tree_id, fold);
    return fold;
  }

  async #restored(tree_id: string, seq: number): Promise<Fold | null> {
    const known = this.#book.tree(tree_id);
    if (known === null || known.point === null || this.#cache === null) return null;
    const stored = await this.#cache.snapshot(tree_id, known.point);
    if (stored === null || sha256(stored.text) !== stored.sha256) return null;
    const snapshot = JSON.parse(stored.text) as TreeSnapshot;
    if (snapshot.seq > seq) return null;
    const policies = needed(await this.#source.artifactsOf({ tree_id, seq: 0, log_index: known.first }));
    return new Fold(restoreTree(snapshot, policies));
  }
}

type Told = Parameters<PointBook['note']>;

/**
 * @returns false where content that it needs is not to be had: nothing can be taken after that
 * @throws LedgerError LEDGER_TAMPERED when the machines would not have spoken it
 */
async function takenBy(
  fold: Fold,
  entry: ReplayEntry,
  source: ReplaySource,
  tell: (...told: Told) => void = () => undefined,
): Promise<boolean> {
  const taken = fold.take(entry, entry.type === 'input' ? await source.artifactsOf(entry) : []);
  if ('difference' in taken) throw tampered(entry, taken.difference);
  if ('withheld' in taken) return false;
  for (const { entry: caused } of taken.decision?.entries ?? []) tell(caused, entry.log_index + caused.seq - entry.seq);
  return true;
}

const tampered = ({ log_index }: ReplayEntry, { tree_id, seq, rule }: Difference): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message:
      `tree ${tree_id} does not fold at entry ${seq} (${rule}, log index ${log_index}); ` +
      `run \`turnpike replay ${tree_id}\` for the difference`,
  });
