import { memoryStore } from '../../../src/stores/memory/memory-ledger-store.js';
import { MemoryState } from '../../../src/stores/memory/memory-state.js';
import { ledgerStoreContract } from '../ledger/ledger-store.contract.js';

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
