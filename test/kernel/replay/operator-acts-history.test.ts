// The golden history of acts of operators that were denied, approved by a second person, and
// allowed.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readGolden } from '../../fixtures/golden-history.js';

describe('the golden history operator-acts', () => {
  test('C101: is unmodified, replays as recorded, and contains what flag 30 records', async () => {
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
