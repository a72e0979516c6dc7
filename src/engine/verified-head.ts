import { LedgerError } from '../core/errors.js';
import { extendHead } from '../core/ledger/proof/merkle.js';
import type { LogHead, LogStore } from './ports/ledger/ledger-store.js';

/** Leaf hashes that are read at once. */
const LEAVES_PER_PAGE = 4_096;

/**
 * The last head of the log that this process has read, or null before the first. Each later one must extend it: a
 * database that has fallen back to an earlier state, in a fail-over for example, is refused.
 */
export class VerifiedHead {
  readonly #store: Pick<LogStore, 'head' | 'log' | 'leafHashes'>;
  #known: LogHead | null;
  /** The heads that this process has computed itself, by the size that they extend. */
  readonly #own = new Map<number, { readonly root: string; readonly head: LogHead }>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: Pick<LogStore, 'head' | 'log' | 'leafHashes'>, known: LogHead | null) {
    this.#store = store;
    this.#known = known;
  }

  /** This process has extended the log itself: these entries need not be read. */
  noteOwn(from: LogHead, head: LogHead): void {
    this.#own.set(from.size, { root: from.root, head });
  }

  /**
   * Reads the head, one read at a time: a slow one must not pass for a fall back.
   * @throws LedgerError LEDGER_BELOW_HEAD
   */
  read(): Promise<LogHead> {
    const read = this.#last.then(async () => {
      const head = await this.#store.head();
      await this.#verify(head);
      this.#known = head;
      this.#own.clear();
      return head;
    });
    this.#last = read.catch(() => undefined);
    return read;
  }

  async #verify(head: LogHead): Promise<void> {
    if (this.#known === null) return;
    let reached = this.#known;
    for (let own = this.#own.get(reached.size); own !== undefined; own = this.#own.get(reached.size)) {
      if (own.root !== reached.root || own.head.size > head.size || own.head.size <= reached.size) break;
      reached = own.head;
    }
    while (reached.size < head.size) {
      const leaves = await this.#leaves(reached.size, Math.min(LEAVES_PER_PAGE, head.size - reached.size));
      if (leaves.length === 0) break;
      reached = extendHead(reached, leaves);
    }
    if (reached.size === head.size && reached.root === head.root) return;
    throw new LedgerError({
      code: 'LEDGER_BELOW_HEAD',
      message:
        `the log has ${head.size} entries and does not extend the ${this.#known.size} entries that this process has ` +
        'read: restore the ledger from a backup, and run `turnpike ledger verify`',
    });
  }

  async #leaves(from: number, count: number): Promise<readonly string[]> {
    if (this.#store.leafHashes !== undefined) return this.#store.leafHashes(from, count);
    const leaves: string[] = [];
    for await (const { leaf_hash } of this.#store.log(from)) {
      leaves.push(leaf_hash);
      if (leaves.length === count) break;
    }
    return leaves;
  }
}
