// An engine has facts of the ledger only if a policy needs them, and only from the feature that reads them.

import { expect, test } from '@jest/globals';
import { LazyLedgerFacts, installLedgerFacts, type LedgerFacts } from '../../src/engine/ledger-facts.js';
import type { Policy } from '../../src/core/policy/policy.js';
import type { Tree } from '../../src/kernel/tree.js';

const treeWith = (policy: Partial<Policy> | null): Tree => ({ policy }) as unknown as Tree;
const COUNTING = treeWith({ counters: { all: [{ name: 'writes' }] } });

test('facts are created once, for the first policy that needs them, by the installed feature', () => {
  const facts = {} as LedgerFacts;
  let created = 0;
  const lazy = new LazyLedgerFacts(() => {
    created += 1;
    return facts;
  });
  expect([lazy.for(treeWith(null)), lazy.for(treeWith({})), lazy.created]).toEqual([null, null, null]);
  expect(() => lazy.for(COUNTING)).toThrow('nothing reads them');
  installLedgerFacts({} as Parameters<typeof installLedgerFacts>[0]);
  expect(lazy.for(COUNTING)).toBe(facts);
  expect(lazy.for(COUNTING)).toBe(facts);
  expect(lazy.created).toBe(facts);
  expect(lazy.for(treeWith({}))).toBeNull();
  expect(created).toBe(1);
});
