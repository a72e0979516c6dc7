// Reads the entries of one tree and verifies each: it is the next of its tree, has the stored hash, and names the hash
// of the entry before it. The tree alone cannot prove that its last entry is the last.

import { nameInLedger } from '../../core/contract/entry-name.js';
import { quote } from '../../core/contract/json.js';
import { NO_PREV } from '../../core/contract/run/entry.js';
import { LedgerError } from '../../core/errors.js';
import { leafHash } from '../../core/ledger/proof/merkle.js';
import type { LedgerStore, StoredEntry, TreeEntry } from '../../engine/ports/ledger/ledger-store.js';
import { isIntegrated } from '../ledger/integrated-log.js';

/** How many entries a tree has, and the leaf hash of its last one. */
export interface TreeTip {
  readonly seq: number;
  readonly prev: string;
}

/**
 * Reads a tree up to a size of the log. A cursor can be parked between two entries: then it keeps its position, but no
 * entry and no page of the store.
 */
export class TreeCursor {
  readonly tree_id: string;
  readonly #store: Pick<LedgerStore, 'tree'>;
  /** Only entries below this log size are yielded. */
  readonly #size: number;
  #tip: TreeTip = { seq: 0, prev: NO_PREV };
  #log_index = -1;
  #entries: AsyncIterator<TreeEntry> | null = null;
  #next: StoredEntry | null = null;
  #next_index: number | null = null;

  constructor(store: Pick<LedgerStore, 'tree'>, tree_id: string, size: number) {
    this.#store = store;
    this.tree_id = tree_id;
    this.#size = size;
  }

  /** The log index of the next entry; null at the end or beyond the size. */
  get next(): number | null {
    return this.#next_index;
  }

  /** The end of the part of the tree that was taken. */
  get tip(): TreeTip {
    return this.#tip;
  }

  /** Reads the first entry. @throws LedgerError LEDGER_TAMPERED, LEDGER_ARCHIVED */
  async begin(): Promise<void> {
    await this.#advance();
  }

  /**
   * Returns the next entry and reads the one after it.
   * @throws LedgerError LEDGER_TAMPERED, LEDGER_ARCHIVED
   */
  async take(): Promise<StoredEntry> {
    const expected_index = this.#next_index;
    if (this.#next === null) await this.#advance();
    const stored = this.#next;
    if (stored === null || stored.log_index !== expected_index) throw tamperedTreeError(this.tree_id);
    this.#accept(stored);
    await this.#advance();
    return stored;
  }

  /**
   * Verifies also the entries beyond the size, until the tree has `seq` entries.
   * @returns the tip there, or a later one if the tree had more entries below the size
   * @throws LedgerError LEDGER_TAMPERED if the tree is shorter
   */
  async verifyUntil(seq: number): Promise<TreeTip> {
    while (this.#tip.seq < seq) {
      const stored = await this.#read();
      if (stored === null) throw tamperedTreeError(this.tree_id);
      this.#accept(stored);
    }
    await this.suspend();
    return this.#tip;
  }

  async suspend(): Promise<void> {
    const entries = this.#entries;
    [this.#entries, this.#next] = [null, null];
    await entries?.return?.();
  }

  async #advance(): Promise<void> {
    const stored = await this.#read();
    if (stored !== null && isIntegrated(stored) && stored.log_index < this.#size) {
      [this.#next, this.#next_index] = [stored, stored.log_index];
      return;
    }
    this.#next_index = null;
    await this.suspend();
  }

  /** The entry after the tip, verified; null at the end of the tree. */
  async #read(): Promise<TreeEntry | null> {
    this.#entries ??= this.#store.tree(this.tree_id, this.#tip.seq)[Symbol.asyncIterator]();
    const read = await this.#entries.next();
    if (read.done === true) return null;
    const { log_index } = read.value;
    if (!this.#isNextEntry(read.value))
      throw log_index === null ? tamperedTreeError(this.tree_id) : tamperedEntryError(log_index);
    return read.value;
  }

  /** Canonical JSON ends with the envelope; `body`, which contains untrusted text, comes before it. */
  #isNextEntry({ tree_id, seq, type, text, leaf_hash, log_index }: TreeEntry): boolean {
    const tip = this.#tip;
    const envelope = `,"prev":"${tip.prev}","seq":${tip.seq},"tree_id":${quote(this.tree_id)},"type":${quote(type)}}`;
    return (
      tree_id === this.tree_id &&
      seq === tip.seq &&
      (log_index === null || log_index > this.#log_index) &&
      text.endsWith(envelope) &&
      leafHash(text) === leaf_hash
    );
  }

  #accept({ log_index, leaf_hash }: TreeEntry): void {
    this.#tip = { seq: this.#tip.seq + 1, prev: leaf_hash };
    if (log_index !== null) this.#log_index = log_index;
  }
}

export const tamperedEntryError = (log_index: number): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `entry ${nameInLedger(log_index)} was changed: run \`turnpike ledger verify\``,
  });

export const tamperedTreeError = (tree_id: string): LedgerError =>
  new LedgerError({
    code: 'LEDGER_TAMPERED',
    message: `entries of the tree ${tree_id} were changed or removed: run \`turnpike ledger verify\``,
  });
