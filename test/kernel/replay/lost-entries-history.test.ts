// The golden history of a restore and a failover, each acknowledged with confirmations.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readRestoreHistory, restoreTreeId } from '../../../src/engine/restore-history.js';
import { readGolden } from '../../fixtures/golden-history.js';

describe('the golden history lost-entries', () => {
  test('U-06: is unmodified, replays as recorded, and contains the lost entries', async () => {
    await readGolden('lost-entries', async (reader, store) => {
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      expect(await readRestoreHistory(store)).toEqual({ restores: 2, unacknowledged: null });
      const found: unknown[] = [];
      const digests = new Set<string>();
      for await (const { text } of reader.log()) {
        const { type, tree_id, body } = JSON.parse(text) as Entry & { readonly tree_id: string };
        if (type !== 'input' || body.kind !== 'restore') continue;
        for (const digest of body.confirmed?.approvals ?? []) digests.add(digest);
        const { confirmed } = body;
        const counts = confirmed === undefined ? null : [confirmed.approvals.length, confirmed.counters];
        found.push([tree_id, body.event, body.backup_sha256 !== null, counts]);
      }
      expect(found).toEqual([
        [restoreTreeId(1), 'restored', true, null],
        [restoreTreeId(1), 'acknowledged', true, [1, ['writes']]],
        [restoreTreeId(2), 'restored', false, null],
        [restoreTreeId(2), 'acknowledged', false, [1, ['writes']]],
      ]);
      expect(digests.size).toBe(1);
    });
  });
});
