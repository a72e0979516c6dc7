import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { modelStore } from '../../fixtures/ledger-model/model-store.js';
import { ledgerStoreContract } from './ledger-store.contract.js';

ledgerStoreContract('the model of the contract', () => {
  const state = new LedgerModel();
  const open = () => modelStore(state);
  return {
    open,
    openReader: open,
    loseLock: () => state.loseLock(),
    breakCommits: () => state.breakCommits(true),
    repair: () => state.breakCommits(false),
    remove: () => undefined,
  };
});
