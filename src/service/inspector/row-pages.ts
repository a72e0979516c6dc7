import { packRows, RowPacker, rowOf } from '../../contract/event-row.js';
import type { RowPage } from '../../contract/inspection.js';
import type { ReadControl } from '../../ports/pace.js';
import type { LookedAt } from './looked-at.js';
import { ROWS_MAX } from './source.js';

/** Rows of remembered pages together. */
const ROWS_KEPT = 200_000;

/** Pages of rows. One that was made is the same for everybody, for ever: entries do not change. */
export class RowPages {
  readonly #looked: LookedAt;
  readonly #pause: () => Promise<void> | undefined;
  readonly #pages = new Map<string, Promise<RowPage>>();
  readonly #lengths = new Map<string, number>();
  #kept = 0;

  constructor(looked: LookedAt, pause: () => Promise<void> | undefined) {
    this.#looked = looked;
    this.#pause = pause;
  }

  /** @throws LedgerError LEDGER_ARCHIVED */
  async page(from: number, to: number, control?: ReadControl): Promise<RowPage> {
    const end = Math.min(to, from + ROWS_MAX, await this.#looked.size());
    if (end <= from) return packRows([]);
    const key = `${from}-${end}`;
    for (let known = this.#pages.get(key); known !== undefined; known = this.#pages.get(key)) {
      try {
        return await known;
      } catch (error) {
        if (!isCancelled(error)) throw error;
        // The client that it was made for has left: it is made again for this one.
        control?.signal.throwIfAborted();
        if (this.#pages.get(key) === known) this.#forget(key);
      }
    }
    const page = this.#made(from, end, control);
    this.#remember(key, page, end - from);
    page.catch(() => {
      if (this.#pages.get(key) === page) this.#forget(key);
    });
    return page;
  }

  async #made(from: number, end: number, control?: ReadControl): Promise<RowPage> {
    const packer = new RowPacker();
    const pause = control?.pause ?? this.#pause;
    const options = control === undefined ? {} : { signal: control.signal };
    for await (const { text, log_index, leaf_hash } of this.#looked.log(from, options)) {
      if (log_index >= end) break;
      packer.add(rowOf(text, log_index, leaf_hash));
      await pause();
    }
    return packer.page();
  }

  #remember(key: string, page: Promise<RowPage>, length: number): void {
    this.#pages.set(key, page);
    this.#lengths.set(key, length);
    this.#kept += length;
    for (const oldest of this.#pages.keys()) {
      if (this.#kept <= ROWS_KEPT || oldest === key) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#kept -= this.#lengths.get(key) ?? 0;
    this.#lengths.delete(key);
    this.#pages.delete(key);
  }
}

const isCancelled = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError';
