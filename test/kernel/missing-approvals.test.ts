/** @modules own */
// An installation without the feature approvals: policies that can ask for one are refused, and ledgers that pinned one
// are verified but for their decisions.

import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPolicy } from '../../src/core/policy/files/check-policy.js';
import { requireApprovals } from '../../src/kernel/pinned-policy.js';
import { readGolden } from '../fixtures/golden-store.js';
import { unapproved } from '../fixtures/unapproved.js';
import { ROOT } from '../root.js';

const MISSING = expect.stringContaining('this installation does not have the feature approvals') as unknown;

const read = (name: string): Uint8Array => readFileSync(join(ROOT, 'policies/contract/v1/policy', `${name}.yaml`));
const [lanes, roles, actions] = [read('lanes'), read('roles'), read('actions')];

test('a policy with approval rules is not loaded, and one without them is', () => {
  const refused = expect.objectContaining({ code: 'POLICY_UNSUPPORTED', message: MISSING });
  expect(() => loadPolicy({ lanes, roles, actions })).toThrow(refused);
  const without = Buffer.from(unapproved(Buffer.from(actions).toString()));
  expect(loadPolicy({ lanes, roles, actions: without }).approvals).toEqual([]);
});

test('votes are not counted', () => {
  expect(requireApprovals).toThrow(expect.objectContaining({ code: 'LEDGER_UNSUPPORTED', message: MISSING }));
});

test('a ledger with approvals is verified but for its decisions, which are not checked', async () => {
  const verdict = await readGolden('finish-rules', (reader) => reader.verify());
  expect(verdict).toMatchObject({ ok: false, verdict: 'by_hash_alone', problems: [] });
  const { withheld } = verdict as { readonly withheld: { readonly unsupported?: unknown } };
  const unchecked = expect.arrayContaining([expect.objectContaining({ needs: MISSING })]) as unknown;
  expect(withheld.unsupported).toEqual(unchecked);
  const report = await readGolden('finish-rules', (reader) => reader.replay());
  expect(report).toMatchObject({ ok: false, verdict: 'by_hash_alone', difference: null, not_recomputed: unchecked });
});
