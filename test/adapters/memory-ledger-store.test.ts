import { memoryStore, MemoryState } from '../../src/adapters/memory-ledger-store.js';
import { ledgerStoreContract } from './ledger-store.contract.js';

ledgerStoreContract('memory', () => {
  const state = new MemoryState();
  const open = () => memoryStore({ state });
  return {
    open,
    openReader: open,
    loseLock: () => state.loseLock(),
    breakCommits: () => state.breakCommits(true),
    repair: () => state.breakCommits(false),
    remove: () => undefined,
  };
});
