import type { CommitResult, HeadAnchor, LedgerStore, LogHead } from '../ports/ledger-store.js';
import { Sequencer } from './sequencer.js';

export interface HeadWriterOptions {
  readonly store: LedgerStore;
  readonly anchor: HeadAnchor;
  /** The last head that an earlier epoch of this process knew; null without one. */
  readonly known: LogHead | null;
  /** Called with the error when a head cannot be written, or appends cannot be integrated. */
  readonly failed: (error: unknown) => void;
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
  #wanted = false;
  #integrations = 0;

  constructor(options: HeadWriterOptions) {
    this.#options = options;
    this.#head = options.known;
    this.#sequencer = new Sequencer(options.store, (head) => {
      this.#head = head;
      if (this.#wanted) this.#write(head);
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
  async integrated(): Promise<void> {
    this.#integrate();
    await this.#integrating;
  }

  /** @param wanted whether a head that covers this commit is to be written now */
  committed({ head }: CommitResult, wanted: boolean): void {
    if (head === null) {
      this.#wanted ||= wanted;
      this.#integrate();
      return;
    }
    this.#head = head;
    if (wanted) this.#write(head);
  }

  /** Waits for what is under way, and writes the last head. @param failed whether nothing more may be written */
  async stop(failed: () => boolean): Promise<void> {
    await this.#integrating;
    if (!failed() && this.#head !== null) this.#write(this.#head);
    await this.#writing.catch(() => undefined);
  }

  /** When nothing is under way: what was has failed, or is done. */
  async idle(): Promise<void> {
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
        if (this.#wanted) this.#write(head);
        this.#wanted = false;
      },
      (error: unknown) => this.#options.failed(error),
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
    this.#writing = this.#options.anchor.write({ size, root });
    this.#writing.catch((error: unknown) => this.#options.failed(error));
  }
}
