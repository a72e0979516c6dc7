// The golden history of storage limits.

import { expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readGolden } from '../../fixtures/golden-history.js';

const NAME = 'storage-limits';

test('U-06 C80 C81 C82: contains a prefix, reservations, a denial by them, and a run that its proposals have ended', async () => {
  const entries = await readGolden(NAME, async (reader) => {
    const found: Entry[] = [];
    for await (const { text } of reader.log()) found.push(JSON.parse(text) as Entry);
    return found;
  });
  const inputs = entries.flatMap((entry) => (entry.type === 'input' ? [entry.body] : []));
  expect(inputs.filter((input) => input.kind === 'proposal' && input.prefix !== undefined)).toHaveLength(2);
  expect(inputs.filter((input) => input.kind === 'facts' && input.reserved !== undefined)).not.toEqual([]);
  const rules = entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.rule_id] : []));
  expect(rules).toEqual(expect.arrayContaining(['quota.bytes', 'payload.bytes_max', 'payload.blank']));
  const reasons = entries.flatMap((entry) => (entry.type === 'audit_event' ? [entry.body.outcome_reason] : []));
  expect(reasons).toContain('failed:INVALID_PROPOSALS');
});
