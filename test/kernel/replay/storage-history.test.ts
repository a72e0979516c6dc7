// The golden history of the behaviour flags 1, 2 and 3 replays as recorded.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { ROOT } from '../../root.js';
import { goldenHash, readGolden } from '../../fixtures/golden-history.js';

const NAME = 'storage-limits';
const GOLDEN = {
  sha256: 'f205801e4bbd03a94a3b471a7cf36bbf0a3541b177ab9bcaf7cf64bfc0f3049e',
  report: { trees: 4, entries: 148 },
};

test('U-06: the history of storage limits is small, and has its original bytes', () => {
  expect(statSync(join(ROOT, 'test/fixtures/histories', `${NAME}.db.gz`)).size).toBeLessThan(100_000);
  expect(goldenHash(NAME)).toBe(GOLDEN.sha256);
});

test('U-06 C80 C81 C82: replays and verifies as recorded', async () => {
  expect(await readGolden(NAME, (reader) => reader.replay())).toMatchObject({
    ok: true,
    difference: null,
    ...GOLDEN.report,
  });
  expect(await readGolden(NAME, (reader) => reader.verify())).toMatchObject({ ok: true });
});

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
