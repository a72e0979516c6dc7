import type { CommitResult, HeadAnchor, LedgerStore, LogHead } from '../ports/ledger-store.js';
import { Sequencer } from './sequencer.js';

export interface HeadWriterOptions {
  readonly store: LedgerStore;
  readonly anchor: HeadAnchor;
  /** Told what keeps heads from being written, or appends from being integrated. */
  readonly failed: (error: unknown) => void;
}

/**
 * Writes heads of the log to the head file. A head covers only what is integrated; where commits do not integrate, a
 * sequencer does. A write follows its commit and is not waited for: the file can only be behind, never ahead.
 */
export class HeadWriter {
  readonly #options: HeadWriterOptions;
  readonly #sequencer: Sequencer;
  #head: LogHead | null = null;
  #writing: Promise<void> = Promise.resolve();
  #integrating: Promise<void> = Promise.resolve();
  /** What was committed last is in no head that was written, because no policy wanted one yet. */
  #behind = false;
  /** Something that waits to be integrated wants a head to be written. */
  #wanted = false;

  constructor(options: HeadWriterOptions) {
    this.#options = options;
    this.#sequencer = new Sequencer(options.store, (head) => {
      this.#head = head;
      if (this.#wanted) this.#write(head);
    });
  }

  /** Integrates what an earlier process has left. */
  async start(): Promise<void> {
    await this.#sequencer.run();
    this.#head = await this.#options.store.head();
  }

  /** @param wanted whether a head that covers this commit is to be written now */
  committed({ head }: CommitResult, wanted: boolean): void {
    this.#behind = true;
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
    if (this.#behind && !failed() && this.#head !== null) this.#write(this.#head);
    await this.#writing.catch(() => undefined);
  }

  #integrate(): void {
    this.#integrating = this.#sequencer.run().then(
      () => {
        if (this.#wanted && this.#behind && this.#head !== null) this.#write(this.#head);
        this.#wanted = false;
      },
      (error: unknown) => this.#options.failed(error),
    );
  }

  #write({ size, root }: LogHead): void {
    this.#behind = false;
    this.#writing = this.#options.anchor.write({ size, root });
    this.#writing.catch((error: unknown) => this.#options.failed(error));
  }
}
