// The golden history of a ledger in which the keys of two cases were replaced, one of them twice.

import { describe, expect, test } from '@jest/globals';
import { toEventRow } from '../../../src/interfaces/inspector/contract/event-row.js';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { caseRotationTreeId } from '../../../src/home/keys/rotate-case-keys.js';
import { readGolden } from '../../fixtures/golden-history.js';

describe('the golden history rotated-case', () => {
  test('C100: is unmodified, replays as recorded, and contains the rotation of a case key', async () => {
    await readGolden('rotated-case', async (reader) => {
      expect(await reader.verify()).toMatchObject({ ok: true });
      expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
      const rotations: string[] = [];
      const events: string[] = [];
      const labels: string[] = [];
      for await (const { text, log_index, leaf_hash } of reader.log()) {
        labels.push(toEventRow(text, log_index, leaf_hash).label);
        const { type, tree_id, body } = JSON.parse(text) as Entry & { readonly tree_id: string };
        if (type === 'input' && body.kind === 'rotate_key' && body.rotation.purpose === 'case') {
          const { case_id, key_no, contents } = body.rotation;
          rotations.push(`${case_id}.${key_no}`);
          expect(contents).toBeGreaterThan(0);
          expect(tree_id).toBe(caseRotationTreeId(case_id, key_no));
        }
        if (type === 'audit_event' && body.outcome_reason === 'KEY_ROTATED') events.push(body.notes ?? '');
      }
      expect(rotations).toEqual(['case-0001.1', 'case-0001.2', 'case-0002.1']);
      expect(labels).toEqual(expect.arrayContaining(['case key rotation case-0002.1', 'KEY_ROTATED']));
      expect(events).toHaveLength(3);
      expect(events[1]).toMatch(/^key 3 replaces key 2 of case-0001, which then had \d+ contents$/);
    });
  });
});
