// The golden history of a ledger that was restored twice, and acknowledged each time.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readRestoreHistory, restoreTreeId } from '../../../src/engine/restore-history.js';
import { readGolden } from '../../fixtures/golden-history.js';

describe('the golden history restored', () => {
  test('U-06: is unmodified, replays as recorded, and contains the restore', async () => {
    await readGolden('restored', async (reader, store) => {
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      expect(await readRestoreHistory(store)).toEqual({ restores: 2, unacknowledged: null });
      const found: unknown[] = [];
      for await (const { text } of reader.log()) {
        const { type, tree_id, body } = JSON.parse(text) as Entry & { readonly tree_id: string };
        if (type === 'input' && body.kind === 'restore') found.push([tree_id, body.event, body.lost !== null]);
      }
      expect(found).toEqual([
        [restoreTreeId(1), 'restored', false],
        [restoreTreeId(1), 'acknowledged', false],
        [restoreTreeId(2), 'restored', true],
        [restoreTreeId(2), 'acknowledged', true],
      ]);
    });
  });
});
