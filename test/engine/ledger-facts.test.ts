/** @modules own */
// An engine has facts of the ledger only if a policy needs them, and only from the feature that reads them.

import { expect, test } from '@jest/globals';
import { LazyLedgerFacts, installLedgerFacts, type LedgerFacts } from '../../src/engine/ledger-facts.js';

test('facts are created once, for the first policy that needs them, by the installed feature', () => {
  const facts = {} as LedgerFacts;
  let created = 0;
  const lazy = new LazyLedgerFacts(() => {
    created += 1;
    return facts;
  });
  expect(lazy.created).toBeNull();
  expect(() => lazy.get()).toThrow('nothing reads them');
  installLedgerFacts({} as Parameters<typeof installLedgerFacts>[0]);
  expect(lazy.get()).toBe(facts);
  expect(lazy.get()).toBe(facts);
  expect(lazy.created).toBe(facts);
  expect(created).toBe(1);
});
