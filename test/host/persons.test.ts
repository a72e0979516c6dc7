// C87 to C89 through a whole home: who may approve, which names files have, and which numbers reach a tool.

import { afterEach, describe, expect, test } from '@jest/globals';
import { join } from 'node:path';
import { overlayFiles } from '../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../src/home/policy/overlay-writer.js';
import { TokenFile } from '../../src/stores/keys/token-file.js';
import type { Entry } from '../../src/core/contract/run/entry.js';
import { homePaths } from '../../src/home/home-paths.js';
import { Bench, type BenchOptions } from '../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../fixtures/service.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import { proposal } from '../fixtures/tree.js';

let bench: Bench | null = null;
afterEach(async () => {
  await bench?.close();
  bench = null;
});

const TWO = 'approvals:\n  - { for: export, approver_roles: [ATTORNEY_ADMIN], quorum: 2, expires_minutes: 5 }\n';
const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  return name === 'actions' ? `${edited}\n${TWO}` : edited;
};
async function open(): Promise<Bench> {
  const made = service();
  bench = await Bench.open({ edit, tools: made.tools, targets: made.targets });
  return bench;
}
const ROLE = 'ATTORNEY_ADMIN';
const bundle = (of: Bench, actor: string) =>
  of.turnpike.export({
    actor,
    role: ROLE,
    case: 'case-local',
    reason: 'a request',
    destination: join(of.folder, 'bag'),
  });
const recorded = (entries: readonly Entry[], kind: string) =>
  entries.flatMap((entry) => (entry.type === 'input' && entry.body.kind === kind ? [entry.body] : []));

describe('S4-78 C87 an export that needs two approvals', () => {
  test('is not approved by one person under two names, or by a look-alike of the requester', async () => {
    const of = await open();
    const { run_id, digest, finished } = await bundle(of, 'anna-maria');
    const vote = async (actor: string): Promise<string | undefined> => {
      const ballot = { run: run_id, digests: [digest ?? ''], decision: 'approve' as const, actor, role: ROLE };
      return (await of.turnpike.approve(ballot))[0]?.rule_id;
    };
    expect(await vote('anna\u2010maria')).toBe('approval.look_alike');
    expect(await vote('\u0430nna-m\u0430ria')).toBe('approval.look_alike');
    expect(await vote('ANNA-MARIA\u200b')).toBe('approval.by_requester');
    expect(await vote('Ren\u00e9e')).toBe('approval.accepted');
    expect(await vote('Rene\u034f\u0301e')).toBe('approval.already_voted');
    await expect(vote('anna\u{10d4a}')).rejects.toMatchObject({ code: 'USAGE' });
    expect(await vote('berta')).toBe('approval.granted');
    expect(await finished).toMatchObject({ state: 'completed' });
    const entries = await of.entries();
    const person = { canonical_id: 'anna-maria', tables: 'unicode-15.0.0' };
    expect(recorded(entries, 'start_run')).toMatchObject([{ person }]);
    const voters = recorded(entries, 'vote').flatMap((body) => ('approver' in body ? [body.approver.person] : []));
    expect(new Set(voters.map((voter) => voter?.canonical_id)).size).toBe(5);
    expect(voters).toHaveLength(6);
  });
});

describe('D1 C87 a person whom the overlay has suspended', () => {
  const suspend = (of: Bench, actor_id: string) => {
    const paths = homePaths(of.home);
    const rules = (_: unknown, epoch: number) => [{ rule_id: `deny-${epoch}`, reason: 'A stolen key.', actor_id }];
    return writeOverlay(overlayFiles(paths.overlay, paths.keys), { issued_at_utc: '2026-01-05T09:00:00.000Z', rules });
  };

  test('cannot vote under another name, and earlier votes no longer count', async () => {
    const of = await open();
    const { run_id, digest, finished } = await bundle(of, 'anna-maria');
    const vote = async (actor: string): Promise<string | undefined> => {
      const ballot = { run: run_id, digests: [digest ?? ''], decision: 'approve' as const, actor, role: ROLE };
      return (await of.turnpike.approve(ballot))[0]?.rule_id;
    };
    expect(await vote('PAUL lDA')).toBe('approval.accepted');
    await suspend(of, 'paul ida');
    expect(await vote('paul Ida')).toBe('approval.role_unknown');
    expect(await vote('PAUL \u0406DA')).toBe('approval.role_unknown');
    expect(await vote('berta')).toBe('approval.accepted');
    expect(await vote('carl')).toBe('approval.granted');
    expect(await finished).toMatchObject({ state: 'completed' });
  });

  test('starts no run under another name, and a running one is denied its next step', async () => {
    const of = await open();
    const start = (actor: string) => of.turnpike.startAgent({ actor });
    const write = JSON.stringify(proposal('WRITE_FILE', { path: '/sandbox/a.md', content: 'a' }));
    const agent = await start('PAUL lDA');
    await suspend(of, 'paul ida');
    expect(await agent.submit(write)).toMatchObject({
      outcome: 'DENIED',
    });
    await expect((await bundle(of, 'P\u0430ul Ida')).finished).resolves.toMatchObject({ state: 'denied' });
    const other = await start('berta');
    expect(await other.submit(write)).toMatchObject({
      outcome: 'SUCCESS',
    });
  });
});

describe('C88 C89 a proposal', () => {
  test('is rejected with an invisible name, and with a number that would be rounded', async () => {
    const of = await open();
    const agent = await of.turnpike.startAgent();
    const outcome = async (payload: string): Promise<unknown> =>
      ((await agent.submit(payload)) as { outcome: string }).outcome;
    const write = (path: string): string => JSON.stringify(proposal('WRITE_FILE', { path, content: 'x' }));
    expect(await outcome(write('/sandbox/invoice\u202etxt.md'))).toBe('VALIDATION_ERROR');
    expect(await outcome(write('/sandbox/no\u200bte.md'))).toBe('VALIDATION_ERROR');
    expect(await outcome(write('/sandbox/no\u{e0074}te.md'))).toBe('VALIDATION_ERROR');
    expect(await outcome(write('/sandbox/note.md'))).toBe('SUCCESS');
    await agent.end();
    const caller = await of.turnpike.startAgent(CASE_AGENT);
    const call = (amount: string): string =>
      JSON.stringify(proposal('CALL_TOOL', { tool: 'billing.charge', input: { amount: 7 } })).replace(
        '7}',
        `${amount}}`,
      );
    expect(await caller.submit(call('9007199254740993'))).toMatchObject({ outcome: 'VALIDATION_ERROR' });
    expect(await caller.submit(call('9007199254740992'))).toMatchObject({ outcome: 'SUCCESS' });
    await caller.end();
  });
});

describe('C87 a token', () => {
  const home = () => new TokenFile(join(tempFolder('tokens'), 'tokens.json'));
  const grant = (actor: string) => ({ actor, role: ROLE, rights: ['approve' as const] });

  test.each([
    ['in another case', 'Anna-Maria'],
    ['with another hyphen', 'anna\u2010maria'],
    ['with a Cyrillic letter', '\u0430nna-maria'],
    ['with rn for m', 'anna-rnaria'],
  ])('is not created for another spelling or look-alike of a known name: %s', (_, actor) => {
    const tokens = home();
    tokens.mint(grant('anna-maria'));
    expect(() => tokens.mint(grant(actor))).toThrow(expect.objectContaining({ code: 'USAGE' }));
    expect(tokens.mint(grant('anna-maria')).record.actor).toBe('anna-maria');
    expect(tokens.mint(grant('berta')).record.actor).toBe('berta');
    expect(tokens.list()).toHaveLength(3);
  });

  test.each(['an\u200bna', 'an\u202ena', 'anna\u{10d4a}', '\u200b\u200b\u200b'])(
    'is not created for the invalid name %j',
    (actor) => {
      expect(() => home().mint(grant(actor))).toThrow(expect.objectContaining({ code: 'USAGE' }));
    },
  );
});
