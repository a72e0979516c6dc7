// The PostgreSQL store over the suites of every ledger store.

import { afterAll, describe, test } from '@jest/globals';
import { startPostgres } from '../../fixtures/postgres.js';
import { failedCommitContract } from '../ledger/failed-commit.contract.js';
import { ledgerStoreContract } from '../ledger/ledger-store.contract.js';
import { BREAK_COMMIT, BREAK_INSERT, PostgresLedgerUnderTest } from './postgres-harness.js';

const server = await startPostgres({ isDurable: true });
const removals: Promise<unknown>[] = [];
const makeLedger = (breakage: string) => () => new PostgresLedgerUnderTest(server?.url ?? '', breakage, removals);

afterAll(async () => {
  await Promise.all(removals);
  await server?.stop();
});

if (server === null) {
  test.skip('PostgreSQL is not installed', () => undefined);
} else {
  // Archives: the store refuses to remove entries (decision 0041).
  ledgerStoreContract('PostgreSQL, where the insert fails when a commit fails', makeLedger(BREAK_INSERT), {
    archives: false,
  });
  describe('a ledger store: PostgreSQL, where the COMMIT fails when a commit fails', () => {
    failedCommitContract(makeLedger(BREAK_COMMIT));
  });
}
