// The golden history of behaviour flag 29: a restore and a failover, each acknowledged with confirmations.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readRestoreHistory, restoreTreeId } from '../../../src/engine/suspension.js';
import { goldenHash, readGolden } from '../../fixtures/golden-history.js';

const SHA256 = 'c0c0e896f7142e3ed0a698bdb47edf8cdc178d55125a08688f5f2271040bdadd';

describe('the golden history lost-entries', () => {
  test('U-06: is unmodified, replays as recorded, and contains what flag 29 records', async () => {
    expect(goldenHash('lost-entries')).toBe(SHA256);
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
