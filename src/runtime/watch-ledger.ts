// A ledger as XState's inspectors see actors: its trees are folded again through XState itself, and followed while they
// go on. What XState tells of that, an observer of the caller's is told. The ledger's own trees are not touched.

import { systemClock } from '../adapters/system-clock.js';
import { Fold } from '../kernel/fold.js';
import { Tree, type Watch } from '../kernel/tree.js';
import type { Clock } from '../ports/clock.js';
import type { StoredEntry } from '../ports/ledger-store.js';
import type { LedgerReader } from './ledger-reader.js';

const POLL_MS = 100;
/** Trees that are followed at the same time; of one more, the one that was silent longest is let go of. */
const TREES_MAX = 64;
/** Entries between which others have their turn. */
const TURN_ENTRIES = 64;

export interface WatchOptions {
  /** Trees are shown that have an entry from here on, each from its beginning. Default: from now. */
  readonly from?: number;
  readonly clock?: Clock;
  /** Told once when the ledger cannot be read any more: nothing is followed after that. */
  readonly failed?: (error: unknown) => void;
}

export interface LedgerWatch {
  /** When all that was there when it was asked has been told. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

/** Follows a ledger until it is closed. What cannot be folded, because its content is gone, is left out. */
export function watchLedger(
  ledger: Pick<LedgerReader, 'size' | 'log' | 'tree' | 'artifactsOf'>,
  observe: Watch,
  { from, clock = systemClock(), failed = () => undefined }: WatchOptions = {},
): LedgerWatch {
  const follower = new Follower(ledger, observe);
  let closed = false;
  let callOff: () => void = () => undefined;
  let turn: Promise<void> = Promise.resolve();
  const look = (): Promise<void> => {
    turn = turn.then(() => (closed ? undefined : follower.look(() => closed)));
    return turn;
  };
  const again = (): void => {
    callOff = clock.wake(clock.now() + POLL_MS, () => void look().then(again, stop));
  };
  const stop = (error: unknown): void => {
    closed = true;
    failed(error);
  };
  turn = Promise.resolve(from ?? ledger.size()).then((size) => void (follower.next = size));
  turn.then(again, stop);
  return {
    caughtUp: look,
    close: async () => {
      closed = true;
      callOff();
      await turn.catch(() => undefined);
    },
  };
}

class Follower {
  readonly #ledger: Pick<LedgerReader, 'size' | 'log' | 'tree' | 'artifactsOf'>;
  readonly #observe: Watch;
  /** The tree that was heard of last comes last. Null: it cannot be folded any further. */
  readonly #folds = new Map<string, Fold | null>();
  next = 0;

  constructor(ledger: Pick<LedgerReader, 'size' | 'log' | 'tree' | 'artifactsOf'>, observe: Watch) {
    this.#ledger = ledger;
    this.#observe = observe;
  }

  async look(isClosed: () => boolean): Promise<void> {
    const size = await this.#ledger.size();
    if (this.next >= size) return;
    for await (const stored of this.#ledger.log(this.next)) {
      if (isClosed() || stored.log_index >= size) return;
      await this.#follow(stored);
      this.next = stored.log_index + 1;
      if (this.next % TURN_ENTRIES === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #follow(stored: StoredEntry): Promise<void> {
    const { tree_id, seq } = stored;
    let fold = this.#folds.get(tree_id);
    this.#folds.delete(tree_id);
    if (fold === undefined) fold = await this.#begun(tree_id, seq);
    this.#folds.set(tree_id, fold === null ? null : await this.#taken(fold, stored));
    for (const oldest of this.#folds.size > TREES_MAX ? this.#folds.keys() : []) {
      this.#folds.delete(oldest);
      break;
    }
  }

  /** A tree that comes new, with what it has before this entry. */
  async #begun(tree_id: string, seq: number): Promise<Fold | null> {
    let fold: Fold | null = new Fold(new Tree(tree_id, this.#observe));
    if (seq === 0) return fold;
    for await (const stored of this.#ledger.tree(tree_id)) {
      if (stored.seq >= seq || fold === null) break;
      fold = await this.#taken(fold, stored);
    }
    return fold;
  }

  async #taken(fold: Fold, stored: StoredEntry): Promise<Fold | null> {
    const artifacts = stored.type === 'input' ? await this.#ledger.artifactsOf(stored.log_index) : [];
    return 'decision' in fold.take(stored, artifacts) ? fold : null;
  }
}
