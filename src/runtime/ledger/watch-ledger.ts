// Shows a ledger to XState's inspectors: it folds the run trees again with XState, follows them, and reports the
// inspection events of XState to an observer. The engine's own trees are not touched.

import { systemPace } from '../../system/system-pace.js';
import { systemClock } from '../../system/system-clock.js';
import { parseOwnJson } from '../../core/contract/json.js';
import { checkAvailable } from '../../core/contract/artifact-ref.js';
import { Fold, readContentToFold } from '../../kernel/fold.js';
import type { InspectionListener, Interpretation } from '../../kernel/interpreter/interpreter.js';
import { xstateInterpretation } from '../../kernel/interpreter/xstate-actors.js';
import { restoreTree, Tree, type TreeSnapshot } from '../../kernel/tree.js';
import { BackgroundJob } from '../../engine/background-job.js';
import type { Clock } from '../../engine/ports/clock.js';
import type { StoredEntry } from '../../engine/ports/ledger/ledger-store.js';
import type { Pace, Pause } from '../../engine/ports/pace.js';
import type { LedgerReader } from './ledger-reader.js';

const POLL_MS = 100;
/** Limit of trees that are followed at the same time. Beyond it, the tree that was silent longest is evicted. */
const TREES_MAX = 64;
/** Limit of evicted trees with a remembered state, and of the size of all those states. */
const EVICTED_TREES_MAX = 8_192;
const EVICTED_CHARS_MAX = 32 * 1_048_576;
/** Milliseconds that it works before other work runs. */
const TURN_MS = 3;

/** Options of a watch on a ledger. */
export interface WatchOptions {
  /** Shows the trees that have an entry from this index on, each from its beginning. Default: from now. */
  readonly from?: number;
  readonly clock?: Clock;
  /** Divides the work. Default: by the machine's clock. */
  readonly pace?: Pace;
  /** Subscribes to announcements that the ledger has grown: they shorten the time to the next poll. */
  readonly subscribe?: ((listener: () => void) => () => void) | undefined;
  /** Called once if the ledger cannot be read any more: nothing is followed after that. */
  readonly failed?: (error: unknown) => void;
}

export type WatchedLedger = Pick<LedgerReader, 'size' | 'log' | 'tree' | 'folded'>;

/** A watch that follows a ledger until it is closed. */
export interface LedgerWatch {
  /** Resolves when everything that was in the ledger at the call has been reported. */
  caughtUp(): Promise<void>;
  /** Stops following the ledger. */
  close(): Promise<void>;
}

/** Follows a ledger until it is closed. Trees that cannot be folded, because their content is gone, are omitted. */
export function watchLedger(
  ledger: WatchedLedger,
  observe: InspectionListener,
  {
    from,
    clock = systemClock(),
    pace = systemPace(),
    subscribe,
    failed: onFailure = () => undefined,
  }: WatchOptions = {},
): LedgerWatch {
  const follower = new LedgerFollower(ledger, observe, pace.begin(TURN_MS));
  let failure: { readonly error: unknown } | null = null;
  const job: BackgroundJob = new BackgroundJob({
    clock,
    run: async () => {
      follower.next ??= from ?? (await ledger.size());
      await follower.poll(() => job.isStopped);
      return POLL_MS;
    },
    onFailed: (error) => {
      failure = { error };
      job.close();
      unsubscribe();
      onFailure(error);
      return null;
    },
  });
  const unsubscribe = subscribe?.(() => job.request(0)) ?? (() => undefined);
  job.start(0);
  return {
    caughtUp: async () => {
      job.request(0);
      await job.settled();
      if (failure !== null) throw failure.error;
    },
    close: async () => {
      job.close();
      unsubscribe();
      await job.settled();
    },
  };
}

class LedgerFollower {
  readonly #ledger: WatchedLedger;
  readonly #interpretation: Interpretation;
  /** The most recently used tree is last. Null: it cannot be folded any further. */
  readonly #folds = new Map<string, Fold | null>();
  readonly #evicted = new EvictedTrees();
  readonly #pause: Pause;
  /** The index of the next entry; null before the first poll. */
  next: number | null = null;

  constructor(ledger: WatchedLedger, observe: InspectionListener, pause: Pause) {
    this.#ledger = ledger;
    this.#interpretation = xstateInterpretation(observe);
    this.#pause = pause;
  }

  async poll(isClosed: () => boolean): Promise<void> {
    const next = this.next ?? 0;
    const size = await this.#ledger.size();
    if (next >= size) return;
    for await (const stored of this.#ledger.log(next)) {
      if (isClosed() || stored.log_index >= size) return;
      await this.#follow(stored);
      this.next = stored.log_index + 1;
      await this.#pause();
    }
  }

  async #follow(stored: StoredEntry): Promise<void> {
    const { tree_id } = stored;
    const known = this.#folds.get(tree_id);
    const fold = known === undefined ? await this.#startFold(stored) : known;
    this.#folds.delete(tree_id);
    this.#folds.set(tree_id, fold === null ? null : await this.#applyEntry(fold, stored));
    for (const [oldest, evictedFold] of this.#folds.size > TREES_MAX ? this.#folds : []) {
      this.#folds.delete(oldest);
      this.#evicted.store(oldest, evictedFold);
      break;
    }
  }

  /** The fold of a tree that is not followed, before this entry: restored from its evicted state, or built anew. */
  async #startFold({ tree_id, seq }: StoredEntry): Promise<Fold | null> {
    let fold = await this.#resumeFold(tree_id);
    if (seq === 0 || fold === null) return fold;
    for await (const stored of this.#ledger.tree(tree_id, fold.tree.head.seq)) {
      if (stored.seq >= seq || fold === null) break;
      fold = await this.#applyEntry(fold, stored);
      await this.#pause();
    }
    return fold;
  }

  async #resumeFold(tree_id: string): Promise<Fold | null> {
    const evicted = this.#evicted.remove(tree_id);
    if (evicted === undefined) return new Fold(new Tree(tree_id, this.#interpretation));
    if (evicted === null) return null;
    for await (const first of this.#ledger.tree(tree_id)) {
      const opening = checkAvailable(await this.#ledger.folded.artifactsOf(first));
      // Its case was erased in the meantime.
      return 'withheld' in opening ? null : new Fold(restoreTree(evicted, opening, this.#interpretation));
    }
    return null;
  }

  async #applyEntry(fold: Fold, stored: StoredEntry): Promise<Fold | null> {
    const artifacts = await readContentToFold(stored, this.#ledger.folded);
    return 'decision' in fold.apply(stored, artifacts) ? fold : null;
  }
}

/** The states of evicted trees as text, which is small. A forgotten state is folded anew. */
class EvictedTrees {
  readonly #texts = new Map<string, string | null>();
  #chars = 0;

  /** @param fold null for a tree that cannot be folded any further */
  store(tree_id: string, fold: Fold | null): void {
    // A tree has no stable state in the middle of what an input caused.
    if (fold !== null && (!fold.isComplete || fold.tree.policy === null)) return;
    const text = fold === null ? null : JSON.stringify(fold.tree.snapshot());
    this.#texts.set(tree_id, text);
    this.#chars += text?.length ?? 0;
    for (const oldest of this.#texts.keys()) {
      if (this.#texts.size <= EVICTED_TREES_MAX && this.#chars <= EVICTED_CHARS_MAX) return;
      this.remove(oldest);
    }
  }

  /** @returns undefined for an unknown tree */
  remove(tree_id: string): TreeSnapshot | null | undefined {
    const text = this.#texts.get(tree_id);
    this.#texts.delete(tree_id);
    this.#chars -= text?.length ?? 0;
    return text === undefined || text === null ? text : (parseOwnJson(text) as TreeSnapshot);
  }
}
