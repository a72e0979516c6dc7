import { LedgerEngine } from './ledger-engine.js';
import { withSuspension } from './effect-runner.js';
import type { EngineFactory, EngineParts, Recovery } from './tree-engine.js';
import { recover, type RecoveringEngine } from './recovery.js';
import { LazyLedgerFacts } from './ledger-facts.js';
import { QuotaReservations } from './reservations/quota-reservations.js';
import { commitBatch } from './tick/batch-builder.js';
import type { Tick } from './tick/tick.js';
import type { CommittedTick, LedgerWriter } from './writers/ledger-writer.js';

/** The engine of one process (ledger-engine.ts): the default. */
export const embeddedEngine: EngineFactory = (parts) => {
  const suspendable = withSuspension(parts);
  return new LedgerEngine(suspendable, new ExclusiveWriter(suspendable));
};

const NOTHING: ReadonlySet<string> = new Set();

/** The only writer of a ledger. No other worker overtakes it, and a start finds everything that is unfinished. */
class ExclusiveWriter implements LedgerWriter {
  readonly sharesTrees = false;
  readonly reservations = new QuotaReservations();
  readonly ledgerFacts: LazyLedgerFacts;
  readonly #parts: EngineParts;
  #epoch = 0;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.ledgerFacts = new LazyLedgerFacts((source) => source.ofOnlyWorker(parts.store));
  }

  async acquire(): Promise<void> {
    this.ledgerFacts.created?.clear();
    this.#epoch = await this.#parts.store.acquire();
  }

  lockContested(): null {
    return null;
  }

  async commit({ batch: decided }: Tick): Promise<CommittedTick | null> {
    if (decided.isEmpty) return null;
    const { store, meter } = this.#parts;
    const batch = decided.build(this.#epoch);
    return { batch, result: await commitBatch(store, batch, meter), overtaken: NOTHING, sentAt: 0 };
  }

  unlock(): Promise<void> {
    return Promise.resolve();
  }

  recover(engine: RecoveringEngine): Promise<Recovery> {
    return recover(engine, this.#parts);
  }

  permitEffect(): null {
    return null;
  }

  stop(): void {
    // It has no background work.
  }

  waitUntilIdle(): Promise<void> {
    return Promise.resolve();
  }
}
