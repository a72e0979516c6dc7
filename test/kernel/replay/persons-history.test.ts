// The golden histories of how people are compared, behaviour flags 6 to 8 and 13. They are never edited and never
// recorded again.

import { expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import { goldenHash, readGolden } from '../../fixtures/golden-history.js';

const NAMES = {
  'look-alike-voters': '0f811fcc21de76a54c60258635e0c2b17a0fc0d895a69b28e4602a6e0488e14c',
  'look-in-either-case': '907d0d560865e773d7523c3b8af135f95734cdabb186b7095c846960c24b5431',
} as const;

/** The entries of a history that is unmodified and replays as recorded. */
async function entriesOf(name: keyof typeof NAMES): Promise<readonly Entry[]> {
  expect(goldenHash(name)).toBe(NAMES[name]);
  return readGolden(name, async (reader, store) => {
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(await reader.replay()).toMatchObject({ ok: true, difference: null });
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
