import { InvariantError } from '../core/errors.js';
import { isShared } from './ports/ledger/shared-store.js';
import { LedgerEngine } from './ledger-engine.js';
import { withSuspension } from './effect-runner.js';
import type { EngineFactory } from './tree-engine.js';
import { SharedWriter } from './writers/shared-writer.js';

/** The engine of one of several workers on a shared store. @throws InvariantError for any other store */
export const sharedEngine: EngineFactory = (parts) => {
  const { store } = parts;
  if (!isShared(store)) throw new InvariantError('this store has one writer: use the embedded engine');
  const suspendable = withSuspension(parts);
  return new LedgerEngine(suspendable, new SharedWriter(store, suspendable));
};

export { isShared };
