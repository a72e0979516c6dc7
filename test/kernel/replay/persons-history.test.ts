// The golden histories of how people are compared.

import { expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { readGolden } from '../../fixtures/golden-history.js';

async function entriesOf(name: string): Promise<readonly Entry[]> {
  return readGolden(name, async (_reader, store) => {
    const entries: Entry[] = [];
    for await (const { text } of store.log(0)) entries.push(JSON.parse(text) as Entry);
    return entries;
  });
}

const votesIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) =>
    entry.type === 'audit_event' && entry.body.target?.name === 'approval' ? [entry.body.authz?.rule_id] : [],
  );
const rulesIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) => (entry.type === 'step_trace' ? [entry.body.rule_id] : []));

test('U-06: votes of look-alikes, unreadable names and rounded numbers replay as recorded', async () => {
  const entries = await entriesOf('look-alike-voters');
  expect(votesIn(entries)).toEqual([
    'approval.look_alike',
    'approval.accepted',
    'approval.already_voted',
    'approval.look_alike',
    'approval.granted',
  ]);
  const rules = rulesIn(entries);
  expect(rules).toEqual([null, 'path.invisible_character', 'path.invisible_character', 'json.number_not_exact']);
});

test('U-06: names that need a change of case and a look-alike replay as recorded', async () => {
  const entries = await entriesOf('look-in-either-case');
  // The requester and the first voter in other spellings; that voter while another name is suspended, and their own.
  expect(votesIn(entries)).toEqual([
    'approval.look_alike',
    'approval.accepted',
    'approval.look_alike',
    'approval.already_voted',
    'approval.accepted',
    'approval.role_unknown',
    'approval.accepted',
    'approval.granted',
  ]);
  expect(rulesIn(entries)).toEqual([null, 'overlay.deny-3']);
  const persons = entries.flatMap((entry) =>
    entry.type === 'input' && entry.body.kind === 'vote' ? [entry.body.approver.person?.looks] : [],
  );
  expect(persons).toHaveLength(8);
  expect(persons).not.toContain(undefined);
});
