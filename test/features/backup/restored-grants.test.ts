// An approval that was used after a backup, and a counter that counted after it: a restore shows both, and nothing
// uses them again before a person has confirmed each.

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { manifestPolicySource } from '../../../src/home/policy/manifest-policy-source.js';
import { winstonLog } from '../../../src/system/winston-log.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { backupHome } from '../../../src/features/backup/backup-home.js';
import { restoreHome } from '../../../src/features/backup/restore-home.js';
import { resolveLocation } from '../../../src/home/ledger-location.js';
import { openTurnpike, type Turnpike } from '../../../src/host/turnpike.js';
import { turnpike as command } from '../../interfaces/cli/fake-io.js';
import { Bench } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';

const CONDITIONS = `@id("deletions_of_a_case")
forbid (principal, action == Action::"WRITE_FILE", resource)
when { context.counters.writes >= 100 };
`;
const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-11-28
counters:
  - name: writes
    over: case
    counts: [{ action: WRITE_FILE }]
`;
const RULE =
  '\napprovals:\n  - { for: DELETE_FILE, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n';

let bench: Bench;
let restored: string;
let now: number;
const opened: Turnpike[] = [];

beforeEach(async () => {
  bench = await Bench.open({
    conditions: CONDITIONS,
    counters: COUNTERS,
    edit: (name, text) => (name === 'actions' ? `${text}${RULE}` : text),
  });
  restored = join(bench.folder, 'restored');
  now = bench.clock.now();
});
afterEach(async () => {
  for (const turnpike of opened.splice(0)) await turnpike.close();
  await bench.close();
});

const remove = JSON.stringify(proposal('DELETE_FILE', { path: '/sandbox/a.txt' }));
const again = (text: string): string => JSON.stringify({ ...JSON.parse(text), id: crypto.randomUUID() });
const write = (name: string): string =>
  JSON.stringify(proposal('WRITE_FILE', { path: `/sandbox/${name}.txt`, content: 'x' }));

async function approve(agent: AgentRun): Promise<string> {
  const [request] = await bench.turnpike.requests(agent.run_id);
  const digest = request?.digest ?? '';
  const vote = { run: agent.run_id, digests: [digest], decision: 'approve', actor: 'bert', role: 'ATTORNEY_ADMIN' };
  await bench.turnpike.approve(vote as never);
  return digest;
}

const openRestored = async (): Promise<Turnpike> => {
  const turnpike = await openTurnpike({
    home: restored,
    policies: manifestPolicySource(bench.contract),
    clock: { now: () => now, wake: () => () => undefined },
    log: winstonLog('silent'),
  });
  opened.push(turnpike);
  return turnpike;
};

const acknowledge = (...more: readonly string[]) =>
  command(bench.folder, ['restore', 'acknowledge', '--home', restored, '--actor', 'otto', '--yes', ...more]);

test('an approval used after the backup and a lower counter are shown, and each is used again only once it is confirmed', async () => {
  const agent = await bench.turnpike.startAgent({ case: 'case-a', link: 'remote' });
  for (const name of ['a', 'b']) expect(await agent.submit(write(name))).toMatchObject({ outcome: 'SUCCESS' });
  expect(await agent.submit(remove)).toMatchObject({ outcome: 'DENIED' });
  const digest = await approve(agent);
  const to = join(bench.folder, 'backup');
  const made = { madeBy: '0.0.0', madeAt: new Date(now).toISOString(), contract: null } as const;
  await backupHome({ from: resolveLocation(bench.home), to, keys: true, ...made });
  // After the backup: the approval is used, and the counter counts.
  expect(await agent.submit(again(remove))).toMatchObject({ outcome: 'SUCCESS' });
  expect(await agent.submit(write('c'))).toMatchObject({ outcome: 'SUCCESS' });
  await agent.end();
  await restoreHome({
    ...{ backup: to, home: restored, keys: null, erasures: 'none', heads: [] },
    policies: manifestPolicySource(bench.contract),
    actor: 'otto',
    log: winstonLog('silent'),
  });
  expect(existsSync(join(restored, 'sandbox/case-a/a.txt'))).toBe(true);

  const refused = await acknowledge();
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(`approval ${digest}: DELETE_FILE in case case-a`);
  expect(refused.stderr).toMatch(/counter writes: case:case-a = 2\b/);
  expect(refused.stderr).toContain(`--approval ${digest} --counter writes`);
  const suspended = await openRestored();
  const waiting = (await suspended.agent(agent.run_id))!;
  await expect(waiting.submit(again(remove))).rejects.toMatchObject({ code: 'EXECUTION_SUSPENDED' });
  await suspended.close();
  opened.length = 0;

  for (const partial of [
    ['--approval', digest],
    ['--counter', 'writes'],
    ['--approval', 'f'.repeat(64), '--counter', 'writes'],
  ])
    expect(await acknowledge(...partial)).toMatchObject({ code: 2 });
  expect(await acknowledge('--approval', digest, '--counter', 'writes')).toMatchObject({ code: 0 });
  const turnpike = await openRestored();
  const entries: string[] = [];
  for await (const { text } of turnpike.ledger.log()) entries.push(text);
  expect(entries.filter((text) => text.includes('"event":"acknowledged"'))).toEqual([
    expect.stringContaining(`"confirmed":{"approvals":["${digest}"],"counters":["writes"]}`),
  ]);
  expect(entries.some((text) => text.includes('confirmed: 1 approvals, 1 counters'))).toBe(true);
  const going = (await turnpike.agent(agent.run_id))!;
  expect(await going.submit(again(remove))).toMatchObject({ outcome: 'SUCCESS' });
  await going.end();
  expect(await turnpike.ledger.verify()).toMatchObject({ ok: true });
  expect(await turnpike.replay()).toMatchObject({ difference: null });
}, 60_000);
