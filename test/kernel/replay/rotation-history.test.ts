// The golden history of a ledger whose key was replaced twice.

import { describe, expect, test } from '@jest/globals';
import { toEventRow } from '../../../src/interfaces/inspector/contract/event-row.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readKeyHistory } from '../../../src/core/ledger/proof/key-history.js';
import { rotationTreeId } from '../../../src/home/keys/rotate-ledger-key.js';
import { readGolden } from '../../fixtures/golden-history.js';

describe('the golden history rotated', () => {
  test('U-06: is unmodified, replays as recorded, and contains the key rotation', async () => {
    await readGolden('rotated', async (reader) => {
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      const notes: string[] = [];
      const events: string[] = [];
      const labels: string[] = [];
      for await (const { text, log_index, leaf_hash } of reader.log()) {
        labels.push(toEventRow(text, log_index, leaf_hash).label);
        const { type, tree_id, body } = JSON.parse(text) as Entry & { readonly tree_id: string };
        if (type === 'input' && body.kind === 'rotate_key' && body.rotation.purpose === 'ledger') {
          notes.push(body.rotation.note);
          expect(tree_id).toBe(rotationTreeId(notes.length));
        }
        if (type === 'audit_event' && body.outcome_reason === 'KEY_ROTATED') events.push(body.notes ?? '');
      }
      expect(readKeyHistory(notes)).toMatchObject({ rotations: [{ number: 1 }, { number: 2 }] });
      expect(labels).toEqual(expect.arrayContaining(['ledger key rotation 1', 'ledger key rotation 2', 'KEY_ROTATED']));
      expect(events).toHaveLength(2);
      expect(events[0]).toMatch(/^the key turnpike\/\S+ replaces turnpike\/\S+, and both have signed that$/);
    });
  });
});
