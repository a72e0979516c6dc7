// The store contract over a store that delays, reorders and loses answers.

import { describe } from '@jest/globals';
import { LedgerModel } from '../../fixtures/ledger-model/ledger-model.js';
import { commitContract } from './commit.contract.js';
import { ledgerStoreContract } from './ledger-store.contract.js';
import { slowLedger } from './slow-ledger.js';

ledgerStoreContract('slow, integrating by itself', () => slowLedger({ state: new LedgerModel(), seed: 1 }));
ledgerStoreContract('slow, with appends that wait for the log', () =>
  slowLedger({ state: new LedgerModel({ integrates: false }), seed: 2, integrates: false }),
);

describe.each([11, 12, 13, 14, 15])('commits to a slow store that loses a third of its answers, seed %i', (seed) => {
  commitContract(() =>
    slowLedger({ state: new LedgerModel({ integrates: false }), seed, losses: 0.33, integrates: false }),
  );
});
