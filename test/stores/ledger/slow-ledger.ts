import type { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { Sequencer } from '../../../src/engine/sequencer.js';
import type { LedgerStore } from '../../../src/engine/ports/ledger/ledger-store.js';
import { Scheduler, SlowStore } from '../../fixtures/slow-store.js';
import type { LedgerUnderTest } from './ledger-bench.js';

export interface SlowLedgerOptions {
  readonly state: LedgerModel;
  readonly seed: number;
  readonly losses?: number;
  /** As configured in the state. @default true */
  readonly integrates?: boolean;
  /** Plants a fault in the store behind the delays. */
  readonly plant?: (store: LedgerStore) => LedgerStore;
}

/** A ledger in memory whose stores are slow. */
export function slowLedger(options: SlowLedgerOptions): LedgerUnderTest {
  const { state, seed, losses = 0, integrates = true, plant = (store: LedgerStore) => store } = options;
  const scheduler = new Scheduler(seed);
  const open = (): LedgerStore => new SlowStore(plant(modelStore(state)), { scheduler, losses });
  return {
    open,
    openReader: open,
    loseLock: () => state.loseLock(),
    breakCommits: () => state.breakCommits(true),
    repair: () => state.breakCommits(false),
    remove: () => undefined,
    integrates,
    settle: () =>
      new Sequencer(
        {
          head: () => Promise.resolve(state.head),
          pending: (limit) => Promise.resolve(state.pending(limit)),
          integrate: (integration) => Promise.resolve(state.integrate(integration)),
        },
        () => undefined,
      ).run(),
  };
}
