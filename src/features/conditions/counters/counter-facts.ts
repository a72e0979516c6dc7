import type { LedgerFactsSource } from '../../../engine/ledger-facts.js';
import { LedgerCounters } from './ledger-counters.js';
import { loadBook } from './read-counters.js';
import { SharedCounters } from './shared-counters.js';

/** The facts of the ledger that conditions read: the values of counters. */
export const COUNTER_FACTS: LedgerFactsSource = {
  ofOnlyWorker: (store) => new LedgerCounters(store),
  ofSharedWorker: (store) => new SharedCounters(store),
  readTotals: async (store) => (await loadBook(store)).totals(),
};
