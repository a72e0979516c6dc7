import { InvariantError } from '../errors.js';
import type { LedgerStore } from '../ports/ledger/ledger-store.js';
import type { SharedLedgerStore } from '../ports/ledger/shared-store.js';
import { LedgerEngine } from './ledger-engine.js';
import type { EngineFactory } from './tree-engine.js';
import { SharedWriter } from './writers/shared-writer.js';

/** The engine of one of several workers on a shared store. @throws InvariantError for any other store */
export const sharedEngine: EngineFactory = (parts) => {
  const { store } = parts;
  if (!isShared(store)) throw new InvariantError('this store has one writer: use the embedded engine');
  return new LedgerEngine(parts, new SharedWriter(store, parts));
};

/** Whether several workers can write to a store at once. */
export const isShared = (store: LedgerStore): store is SharedLedgerStore => 'commitTrees' in store;
