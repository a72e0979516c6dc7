// The golden history of behaviour flag 30: acts of operators that were denied, approved by a second person, and
// allowed.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { goldenHash, readGolden } from '../../fixtures/golden-history.js';

const SHA256 = '06e89d2448416dbae4e704b8ab06b58949ba4ccb7309e06c7c20e8424df519b1';

describe('the golden history operator-acts', () => {
  test('C101: is unmodified, replays as recorded, and contains what flag 30 records', async () => {
    expect(goldenHash('operator-acts')).toBe(SHA256);
    await readGolden('operator-acts', async (reader) => {
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      const events: string[] = [];
      for await (const { text } of reader.log()) {
        const { type, body } = JSON.parse(text) as Entry;
        if (type !== 'audit_event' || !/^ledger\./.test(body.target?.name ?? '')) continue;
        events.push(`${body.target?.name ?? ''} ${body.outcome} ${body.authz?.rule_id ?? 'reported'}`);
      }
      expect(events).toEqual([
        'ledger.rotate_keys deny hold',
        'ledger.rotate_keys allow approval.required',
        'ledger.rotate_keys allow operator.not_limited',
        'ledger.rotate_keys success reported',
        'ledger.rotate_keys allow operator.not_limited',
        'ledger.rotate_keys success reported',
        'ledger.archive allow operator.not_limited',
        'ledger.archive failure reported',
      ]);
    });
  });
});
