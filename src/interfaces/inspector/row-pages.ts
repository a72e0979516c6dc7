import { packRows, RowPacker, toEventRow } from './contract/event-row.js';
import type { RowPage } from '../../core/contract/inspection/inspection.js';
import type { ReadControl } from '../../engine/ports/pace.js';
import type { LedgerView } from './ledger-view.js';
import { ROWS_MAX } from './inspector-source.js';

/** Limit of the rows of all cached pages. */
const ROWS_CACHED_MAX = 200_000;

/** Pages of rows, cached: a page is the same for every client, because entries never change. */
export class RowPages {
  readonly #ledger: LedgerView;
  readonly #pause: () => Promise<void> | undefined;
  readonly #pages = new Map<string, Promise<RowPage>>();
  readonly #lengths = new Map<string, number>();
  #cachedRows = 0;

  constructor(ledger: LedgerView, pause: () => Promise<void> | undefined) {
    this.#ledger = ledger;
    this.#pause = pause;
  }

  /** @throws LedgerError LEDGER_ARCHIVED */
  async page(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    const end = Math.min(to, from + ROWS_MAX, await this.#ledger.size());
    if (end <= from) return packRows([]);
    const key = `${from}-${end}`;
    for (let known = this.#pages.get(key); known !== undefined; known = this.#pages.get(key)) {
      try {
        return await known;
      } catch (error) {
        if (!isCancelled(error)) throw error;
        // The client for which the page was computed has left: compute it again for this one.
        control?.signal.throwIfAborted();
        if (this.#pages.get(key) === known) this.#forget(key);
      }
    }
    const page = this.#createPage(from, end, control);
    this.#remember(key, page, end - from);
    page.catch(() => {
      if (this.#pages.get(key) === page) this.#forget(key);
    });
    return page;
  }

  async #createPage(from: number, end: number, control?: ReadControl): Promise<RowPage> {
    const packer = new RowPacker();
    const pause = control?.pause ?? this.#pause;
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { text, log_index, leaf_hash } of this.#ledger.log(from, options)) {
      if (log_index >= end) break;
      packer.add(toEventRow(text, log_index, leaf_hash));
      await pause();
    }
    return packer.page();
  }

  #remember(key: string, page: Promise<RowPage>, length: number): void {
    this.#pages.set(key, page);
    this.#lengths.set(key, length);
    this.#cachedRows += length;
    for (const oldest of this.#pages.keys()) {
      if (this.#cachedRows <= ROWS_CACHED_MAX || oldest === key) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#cachedRows -= this.#lengths.get(key) ?? 0;
    this.#lengths.delete(key);
    this.#pages.delete(key);
  }
}

const isCancelled = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';
