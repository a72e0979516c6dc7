import type { CommitResult, ExternalHeadStore, LedgerStore, LogHead, LogStore } from './ports/ledger/ledger-store.js';
import { Sequencer } from './sequencer.js';
import type { IntegrationLeader, LedgerWriter } from './writers/ledger-writer.js';
import { LedgerError } from '../core/errors.js';
import { extendHead } from '../core/ledger/proof/merkle.js';

interface HeadWriterOptions {
  readonly store: LedgerStore;
  readonly externalHeadStore: ExternalHeadStore;
  /** The last head of an earlier epoch of this process, or null. */
  readonly known: LogHead | null;
  /** Called with the error when a head cannot be written, or appends cannot be integrated. */
  readonly onFailed: (error: unknown) => void;
  /** For one of several workers. */
  readonly createLeader?: LedgerWriter['createLeader'];
}

/**
 * Writes log heads to the head file. A head covers only integrated entries; if commits do not integrate, a sequencer
 * does. The engine does not wait for a write after its commit, so the file can lag but never lead.
 */
export class HeadWriter {
  readonly #options: HeadWriterOptions;
  readonly #sequencer: Sequencer;
  readonly #verified: VerifiedHead;
  /** Decides when to integrate; null for the only writer, which does at every commit. */
  readonly #leader: IntegrationLeader | null;
  #head: LogHead | null;
  #writing: Promise<void> = Promise.resolve();
  /** Resolves to whether the last integration succeeded. */
  #integrating: Promise<boolean> = Promise.resolve(true);
  /** The size of the last head that was written, or found in the file at the start. */
  #written = 0;
  /** Whether to write a head when the pending appends are integrated. */
  #shouldWrite = false;
  #integrations = 0;
  /** Whether the last commit has returned a head that covers it. */
  #commitsIntegrate = false;

  constructor(options: HeadWriterOptions) {
    this.#options = options;
    this.#head = options.known;
    this.#verified = new VerifiedHead(options.store, options.known);
    this.#sequencer = new Sequencer(
      options.store,
      (head, before) => {
        this.#verified.noteOwn(before, head);
        this.#head = head;
        if (this.#shouldWrite) this.#write(head);
      },
      () => this.#verified.read(),
    );
    const work = { integrate: () => this.#integrateForAll(), follow: () => this.#follow() };
    this.#leader = options.createLeader?.(work) ?? null;
  }

  /** The last known head; null before the start. */
  get head(): LogHead | null {
    return this.#head;
  }

  /** Integrates what an earlier process left pending. */
  async start(): Promise<void> {
    // An earlier process may have ended between a commit and its head.
    this.#written = (await this.#options.externalHeadStore.read())?.size ?? 0;
    this.#head = await this.#integratedHead();
    this.#leader?.start();
  }

  /** Resolves to true when everything committed before is integrated, to false if it cannot be. */
  async waitUntilIntegrated(): Promise<boolean> {
    this.#integrate();
    return this.#integrating;
  }

  /**
   * Writes a head that covers all that was integrated before this call.
   * @returns null if it cannot be written: the ledger has failed
   */
  async confirm(): Promise<LogHead | null> {
    try {
      const head = this.#commitsIntegrate && this.#head !== null ? this.#head : await this.#verified.read();
      this.#write(head);
      await this.#writing;
      return head;
    } catch (error) {
      this.#options.onFailed(error);
      return null;
    }
  }

  /** As `confirm`, after the integration of what is pending: null also if that fails. For the only writer. */
  async confirmOwn(): Promise<LogHead | null> {
    const isIntegrated = this.#commitsIntegrate || (await this.waitUntilIntegrated());
    return isIntegrated ? this.confirm() : null;
  }

  /** @param shouldWrite whether to write a head that covers this commit now */
  onCommitted({ head }: CommitResult, shouldWrite: boolean): void {
    this.#commitsIntegrate = head !== null;
    if (head === null) {
      this.#shouldWrite ||= shouldWrite;
      if (this.#leader === null) this.#integrate();
      else this.#leader.onCommitted();
      return;
    }
    this.#head = head;
    if (shouldWrite) this.#write(head);
  }

  /** Waits for work in flight and writes the last head. @param hasFailed whether writing is no longer allowed */
  async stop(hasFailed: () => boolean): Promise<void> {
    this.#leader?.stop();
    if (this.#leader !== null && !hasFailed()) this.#integrate();
    await this.#integrating;
    if (!hasFailed() && this.#head !== null) this.#write(this.#head);
    await this.#writing.catch(() => undefined);
  }

  /** Resolves when no write is in flight, whether the last one failed or not. */
  async waitUntilIdle(): Promise<void> {
    this.#leader?.stop();
    await this.#integrating;
    await this.#writing.catch(() => undefined);
  }

  #integrate(): void {
    const integration = (this.#integrations += 1);
    this.#integrating = this.#integratedHead().then(
      (head) => {
        // A later integration covers the commits since, and writes its head.
        if (integration !== this.#integrations) return true;
        this.#head = head;
        if (this.#shouldWrite) this.#write(head);
        this.#shouldWrite = false;
        return true;
      },
      (error: unknown) => {
        this.#options.onFailed(error);
        return false;
      },
    );
  }

  /** Reads the head from the store: another sequencer may have won, or a response was lost. */
  async #integratedHead(): Promise<LogHead> {
    await this.#sequencer.run();
    return this.#verified.read();
  }

  /** Integrates the appends of all workers. @returns whether the log has grown */
  async #integrateForAll(): Promise<boolean> {
    const before = this.#head?.size ?? 0;
    this.#integrate();
    await this.#integrating;
    const hasGrown = (this.#head?.size ?? 0) > before;
    // The commits of others do not say when to write.
    if (!hasGrown && this.#head !== null) this.#write(this.#head);
    return hasGrown;
  }

  /** Another worker integrates: keeps its head too. */
  async #follow(): Promise<void> {
    try {
      this.#head = await this.#verified.read();
      this.#write(this.#head);
    } catch (error) {
      this.#options.onFailed(error);
    }
  }

  #write({ size, root }: LogHead): void {
    if (size <= this.#written) return;
    this.#written = size;
    this.#writing = this.#options.externalHeadStore.write({ size, root });
    this.#writing.catch((error: unknown) => this.#options.onFailed(error));
  }
}

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
