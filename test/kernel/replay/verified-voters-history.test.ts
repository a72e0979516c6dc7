// The golden history of voters with and without an authentication that the vote records.

import { describe, expect, test } from '@jest/globals';
import type { Entry } from '../../../src/core/contract/run/entry.js';
import type { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { readGolden } from '../../fixtures/golden-history.js';

const NAME = 'verified-voters';

async function entriesIn(reader: LedgerReader): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const { text } of reader.log()) entries.push(JSON.parse(text) as Entry);
  return entries;
}

describe(`the golden history ${NAME}`, () => {
  test('U-06: is unmodified, and replays as recorded', async () => {
    expect(await readGolden(NAME, (reader) => reader.verify())).toMatchObject({ ok: true });
    expect(await readGolden(NAME, (reader) => reader.replay())).toMatchObject({ ok: true, difference: null });
  });

  test('U-06 C98: contains every rule about the authentication of voters, and what each voter had', async () => {
    const entries = await readGolden(NAME, entriesIn);
    const votes = entries.flatMap(({ type, body }) =>
      type === 'audit_event' && body.target?.name === 'approval'
        ? [[body.actor.actor_id, body.identity?.source ?? 'none', body.authz?.rule_id]]
        : [],
    );
    expect(votes).toEqual([
      ['anna', 'none', 'approval.not_verified'],
      ['anna', 'token', 'approval.not_verified'],
      ['anna', 'oidc', 'approval.not_verified'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.step_up_required'],
      ['anna', 'oidc', 'approval.accepted'],
      ['otto', 'oidc', 'approval.already_voted'],
      ['a.berg', 'oidc', 'approval.already_voted'],
      ['requester', 'oidc', 'approval.by_requester'],
      ['a person', 'oidc', 'approval.by_requester'],
      ['otto', 'oidc', 'approval.accepted'],
      ['carla', 'oidc', 'approval.role_unknown'],
      ['dora', 'oidc', 'approval.granted'],
      ['anna', 'oidc', 'approval.accepted'],
      ['otto', 'oidc', 'approval.person_unmapped'],
      ['berta', 'none', 'approval.person_unmapped'],
      ['berta', 'token', 'approval.person_unmapped'],
      ['berta', 'token', 'approval.accepted'],
      ['dora', 'oidc', 'approval.granted'],
    ]);
  });
});
