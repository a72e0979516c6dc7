import { LedgerError } from '../core/errors.js';
import { extendHead } from '../core/ledger/proof/merkle.js';
import type { LogHead, LogStore } from './ports/ledger/ledger-store.js';
import { isOutcomeUnknown } from './tick/batch-builder.js';

/** Maximum number of appends in one integration. */
const APPENDS_MAX = 1_024;
/** Maximum failed attempts: another sequencer may win, or a response may be lost. */
const ATTEMPTS_MAX = 16;

/** Integrates pending appends into the log, for stores whose commits do not. Only one run is active at a time. */
export class Sequencer {
  readonly #store: Pick<LogStore, 'head' | 'pending' | 'integrate'>;
  readonly #head: () => Promise<LogHead>;
  readonly #onIntegrated: (head: LogHead, before: LogHead) => void;
  #running: Promise<void> | null = null;
  #rerun = false;

  /**
   * @param onIntegrated receives each head that covers more entries than the one before
   * @param head reads the head of the store
   */
  constructor(
    store: Pick<LogStore, 'head' | 'pending' | 'integrate'>,
    onIntegrated: (head: LogHead, before: LogHead) => void,
    head = (): Promise<LogHead> => store.head(),
  ) {
    this.#store = store;
    this.#head = head;
    this.#onIntegrated = onIntegrated;
  }

  /** Integrates everything pending now. @throws LedgerError as `integrate` does, or after too many attempts */
  run(): Promise<void> {
    this.#rerun = true;
    this.#running ??= this.#drain();
    return this.#running;
  }

  async #drain(): Promise<void> {
    try {
      while (this.#rerun) {
        this.#rerun = false;
        await this.#integrateAll();
      }
    } finally {
      this.#running = null;
    }
  }

  async #integrateAll(): Promise<void> {
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
      // The head first: if another sequencer integrates in between, the size has changed, and `integrate` refuses.
      const before = await this.#head();
      const appends = await this.#store.pending(APPENDS_MAX);
      if (appends.length === 0) return;
      const head = extendHead(
        before,
        appends.flatMap(({ leaf_hashes }) => leaf_hashes),
      );
      if (!(await this.#integrate({ from: before.size, appends, head }, before))) continue;
      // What was committed meanwhile is left to the next run, which integrates it together with more.
      if (appends.length < APPENDS_MAX) return;
      attempts = -1;
    }
    throw new LedgerError({
      code: 'LEDGER_UNAVAILABLE',
      message: `appends are not in the log after ${ATTEMPTS_MAX} attempts: responses were lost, or another sequencer was faster`,
    });
  }

  /** @returns false if another sequencer has moved the log, or may have */
  async #integrate(integration: Parameters<LogStore['integrate']>[0], before: LogHead): Promise<boolean> {
    try {
      if (!(await this.#store.integrate(integration))) return false;
    } catch (error) {
      if (isOutcomeUnknown(error)) return false;
      throw error;
    }
    this.#onIntegrated(integration.head, before);
    return true;
  }
}
