import type { CommitResult, ExternalHeadStore, LedgerStore, LogHead } from '../ports/ledger/ledger-store.js';
import { Sequencer } from './sequencer.js';

export interface HeadWriterOptions {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  /** The last head that an earlier epoch of this process knew; null without one. */
  readonly known: LogHead | null;
  /** Called with the error when a head cannot be written, or appends cannot be integrated. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * Writes heads of the log to the head file. A head covers only what is integrated; where commits do not integrate, a
 * sequencer does. A write follows its commit and is not waited for: the file can only be behind, never ahead.
 */
export class HeadWriter {
  readonly #options: HeadWriterOptions;
  readonly #sequencer: Sequencer;
  #head: LogHead | null;
  #writing: Promise<void> = Promise.resolve();
  #integrating: Promise<void> = Promise.resolve();
  /** The size of the last head that was written, or that the start found. */
  #written = 0;
  /** Something that waits to be integrated wants a head to be written. */
  #shouldWrite = false;
  #integrations = 0;

  constructor(options: HeadWriterOptions) {
    this.#options = options;
    this.#head = options.known;
    this.#sequencer = new Sequencer(options.store, (head) => {
      this.#head = head;
      if (this.#shouldWrite) this.#write(head);
    });
  }

  /** The last head that is known; null before the start. */
  get head(): LogHead | null {
    return this.#head;
  }

  /** Integrates what an earlier process has left. */
  async start(): Promise<void> {
    const { store } = this.#options;
    this.#written = (await store.head()).size;
    this.#head = await this.#integratedHead();
  }

  /** When all that was committed before has its place in the log, or cannot get it. */
  async waitUntilIntegrated(): Promise<void> {
    this.#integrate();
    await this.#integrating;
  }

  /** @param shouldWrite whether a head that covers this commit is to be written now */
  onCommitted({ head }: CommitResult, shouldWrite: boolean): void {
    if (head === null) {
      this.#shouldWrite ||= shouldWrite;
      this.#integrate();
      return;
    }
    this.#head = head;
    if (shouldWrite) this.#write(head);
  }

  /** Waits for what is under way, and writes the last head. @param hasFailed whether nothing more may be written */
  async stop(hasFailed: () => boolean): Promise<void> {
    await this.#integrating;
    if (!hasFailed() && this.#head !== null) this.#write(this.#head);
    await this.#writing.catch(() => undefined);
  }

  /** When nothing is under way: what was has failed, or is done. */
  async waitUntilIdle(): Promise<void> {
    await this.#integrating;
    await this.#writing.catch(() => undefined);
  }

  #integrate(): void {
    const integration = (this.#integrations += 1);
    this.#integrating = this.#integratedHead().then(
      (head) => {
        // A later one covers what was committed since, and writes its head.
        if (integration !== this.#integrations) return;
        this.#head = head;
        if (this.#shouldWrite) this.#write(head);
        this.#shouldWrite = false;
      },
      (error: unknown) => this.#options.onFailed(error),
    );
  }

  /** The store's own head: another sequencer may have been first, or an answer was lost. */
  async #integratedHead(): Promise<LogHead> {
    await this.#sequencer.run();
    return this.#options.store.head();
  }

  #write({ size, root }: LogHead): void {
    if (size <= this.#written) return;
    this.#written = size;
    this.#writing = this.#options.externalHeadStore.write({ size, root });
    this.#writing.catch((error: unknown) => this.#options.onFailed(error));
  }
}
