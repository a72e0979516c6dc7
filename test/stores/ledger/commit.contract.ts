// The promises of a commit, run over one kind of store.

import { test } from '@jest/globals';
import { COMMIT_CHECKS } from './commit-checks.js';
import { CommitGround } from './commit-environment.js';
import type { LedgerUnderTest } from './ledger-bench.js';

export function commitContract(makeLedger: () => LedgerUnderTest): void {
  test.each(COMMIT_CHECKS)('$name', async ({ run }) => {
    const ground = await CommitGround.open(makeLedger());
    try {
      await run(ground);
    } finally {
      await ground.close();
    }
  });
}
