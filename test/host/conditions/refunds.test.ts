// Conditions, end to end: an agent calls a tool that refunds money, and the amount decides. Closing the bench verifies
// each ledger and replays it from its bytes alone.

import { afterEach, describe, expect, test } from '@jest/globals';
import { isWithheld, type Artifact } from '../../../src/core/contract/artifact-ref.js';
import { engineVersion } from '../../../src/features/conditions/cedar.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../src/core/contract/run/run-context.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { coverageOf } from '../../../src/features/simulation/policy-coverage.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { proposal } from '../../fixtures/tree.js';
import { refund, refundCall, refundEdit, refunds } from './refund-service.js';

const CONDITIONS = `// Refunds.
@id("refund_two_people")
@approvals("2")
@approver_role("ATTORNEY_ADMIN")
@expires("30m")
@message("Above 100, two people decide.")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.args.amount > 100 };

@id("refund_limit")
@message("Refunds above 5,000 are paid by hand.")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.args.amount > 5000 };

@id("closing_time")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.now >= datetime("2026-01-05T18:00:00Z") };

@id("secret_files")
forbid (principal, action, resource is Path)
when { resource.name like ".env*" || resource in Path::"/sandbox/.git" };
`;

const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
const FILES = { lane: 'SANDBOX_FILES', role: 'SANDBOX_AGENT' } as const;
const ANNA = { actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
const BERTA = { actor: 'berta', role: 'ATTORNEY_ADMIN' } as const;
type Voter = typeof ANNA | typeof BERTA;

let bench: Bench;
afterEach(async () => {
  await bench.close();
  refunds.length = 0;
});

const open = async (conditions = CONDITIONS, more: BenchOptions = {}): Promise<void> => {
  bench = await Bench.open({ edit: refundEdit, conditions, tools: [refund], ...more });
};

async function vote({ run_id }: { readonly run_id: string }, who: Voter): Promise<string | undefined> {
  const [{ digest } = { digest: '' }] = await bench.pendingApprovals();
  const ballot = { run: run_id, digests: [digest], decision: 'approve', ...who } as const;
  return (await bench.turnpike.approve(ballot))[0]?.rule_id;
}

describe('the amount of a refund decides', () => {
  test('50: allowed', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    expect(await agent.submit(refundCall(50))).toMatchObject({ outcome: 'SUCCESS', result: { receipt: 'r-50' } });
  });

  test('5,001: denied by the id of the condition; the agent learns neither its id nor its message', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    const response = await agent.submit(refundCall(5_001));
    expect(response).toMatchObject({ outcome: 'DENIED', error: { error_code: 'POLICY_VIOLATION' } });
    expect(JSON.stringify(response)).not.toMatch(/refund_limit|by hand/);
    expect(await bench.lastRule()).toBe('refund_limit');
    expect(refunds).toEqual([]);
  });

  test('500: two people have to approve, also across a restart, and each of them once', async () => {
    await open();
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'refunds' });
    expect(await agent.submit(refundCall(500))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('approval.required');
    const [request] = await bench.pendingApprovals();
    expect(request).toMatchObject({
      quorum: 2,
      approver_roles: ['ATTORNEY_ADMIN'],
      conditions: [{ id: 'refund_two_people', message: 'Above 100, two people decide.' }],
    });
    expect(await vote(agent, ANNA)).toBe('approval.accepted');
    expect(await agent.submit(refundCall(500))).toMatchObject({ outcome: 'DENIED' });

    await bench.turnpike.close();
    bench = await Bench.reopen(bench, { tools: [refund], clock: bench.clock });
    expect(await vote(agent, ANNA)).toBe('approval.already_voted');
    expect(await vote(agent, BERTA)).toBe('approval.granted');
    const again = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'refunds' });
    expect(await again.submit(refundCall(500))).toMatchObject({ outcome: 'SUCCESS', result: { receipt: 'r-500' } });
    expect(refunds).toEqual([{ key: expect.any(String), amount: 500 }]);
    expect(await again.submit(refundCall(500))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('approval.consumed');
  });

  test('a condition is decided again when the approval is used', async () => {
    await open(CONDITIONS, { clock: new ManualClock('2026-01-05T17:50:00.000Z') });
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote' });
    await agent.submit(refundCall(500));
    expect([await vote(agent, ANNA), await vote(agent, BERTA)]).toEqual(['approval.accepted', 'approval.granted']);
    bench.clock.advance(600_000);
    expect(await agent.submit(refundCall(500))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('closing_time');
    expect(refunds).toEqual([]);
  });

  test('the request expires as the condition says', async () => {
    await open(CONDITIONS, { clock: new ManualClock('2026-01-05T08:00:00.000Z') });
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote' });
    await agent.submit(refundCall(500));
    const [request] = await bench.pendingApprovals();
    expect(request?.expires_at).toMatch(/^2026-01-05T08:30:0/);
  });
});

describe('several conditions', () => {
  const asking = (id: string, annotations: string, above: number): string =>
    `@id("${id}") ${annotations}
forbid (principal, action in Action::"CALL_TOOL", resource) when { context has args.amount && context.args.amount > ${above} };
`;

  test('ask for the highest quorum, the roles that all accept, and the earliest expiry', async () => {
    const roles = 'ATTORNEY_ADMIN,REVIEWER';
    await open(
      asking('a', `@approvals("1") @approver_role("${roles}") @expires("2h")`, 10) +
        asking('b', '@approvals("3") @approver_role("ATTORNEY_ADMIN") @expires("1d")', 20),
      { edit: withReviewer },
    );
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote' });
    await agent.submit(refundCall(15));
    await agent.submit(refundCall(25));
    const [first, second] = await bench.pendingApprovals();
    expect(first).toMatchObject({ quorum: 1, approver_roles: ['ATTORNEY_ADMIN', 'REVIEWER'] });
    expect(second).toMatchObject({ quorum: 3, approver_roles: ['ATTORNEY_ADMIN'] });
    const minutes = (Date.parse(second!.expires_at) - Date.parse(second!.requested_at)) / 60_000;
    expect(minutes).toBe(120);
  });

  test('that share no role of approvers deny', async () => {
    await open(
      asking('a', '@approvals("1") @approver_role("REVIEWER")', 10) +
        asking('b', '@approvals("1") @approver_role("ATTORNEY_ADMIN")', 20),
      { edit: withReviewer },
    );
    const agent = await bench.turnpike.startAgent(AGENT);
    await agent.submit(refundCall(25));
    expect(await bench.lastRule()).toBe('condition.no_approver');
    expect(await bench.pendingApprovals()).toEqual([]);
  });

  test('and an approval rule: both must hold', async () => {
    const rule = '{ for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN, REVIEWER], quorum: 2, expires_minutes: 10 }';
    await open(asking('a', '@approvals("1") @approver_role("ATTORNEY_ADMIN")', 10), {
      edit: (name, text) => withReviewer(name, name === 'actions' ? `${text}\napprovals:\n  - ${rule}\n` : text),
    });
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote' });
    await agent.submit(refundCall(5));
    await agent.submit(refundCall(25));
    expect(await bench.pendingApprovals()).toMatchObject([
      { quorum: 2, approver_roles: ['ATTORNEY_ADMIN', 'REVIEWER'] },
      { quorum: 2, approver_roles: ['ATTORNEY_ADMIN'], conditions: [{ id: 'a', message: null }] },
    ]);
  });
});

/** The policy with a second role of people. */
const withReviewer: NonNullable<BenchOptions['edit']> = (name, text) =>
  name === 'roles'
    ? `${refundEdit(name, text)}
  - role_id: REVIEWER
    description: A person who reviews.
    class: human
    privileges: { lanes: [] }
`
    : refundEdit(name, text);

describe('paths', () => {
  const write = (path: string): string => JSON.stringify(proposal('WRITE_FILE', { path, content: 'x' }));

  test('a rule on a name or a directory holds in every folder below', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(FILES);
    for (const path of ['/sandbox/.env.txt', '/sandbox/a/.env.md', '/sandbox/.git/hooks/a.txt']) {
      expect([path, await agent.submit(write(path))]).toMatchObject([path, { outcome: 'DENIED' }]);
      expect([path, await bench.lastRule()]).toEqual([path, 'secret_files']);
    }
    for (const path of ['/sandbox/env.txt', '/sandbox/.gitignore.txt', '/sandbox/git.md']) {
      expect([path, await agent.submit(write(path))]).toMatchObject([path, { outcome: 'SUCCESS' }]);
    }
  });

  test('both paths of a rename are decided', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(FILES);
    await agent.submit(write('/sandbox/a.txt'));
    const rename = { source: '/sandbox/a.txt', destination: '/sandbox/.env.txt' };
    await agent.submit(JSON.stringify(proposal('RENAME_FILE', rename)));
    expect(await bench.lastRule()).toBe('secret_files');
  });
});

describe('errors deny', () => {
  test('a condition that cannot be evaluated denies', async () => {
    await open(`@id("overflow")
forbid (principal, action in Action::"CALL_TOOL", resource)
when { context has args.amount && context.args.amount * 9223372036854775807 < 0 };
`);
    const agent = await bench.turnpike.startAgent(AGENT);
    expect(await agent.submit(refundCall(1))).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.submit(refundCall(2))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('condition.error');
  });
});

describe('a ledger with conditions', () => {
  test('pins their bytes, and its coverage names each of them', async () => {
    await open();
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote' });
    for (const amount of [50, 500, 5_001]) await agent.submit(refundCall(amount));
    await vote(agent, ANNA);
    await bench.turnpike.close();
    const { store, externalHeadStore } = openHome(homePaths(bench.home), { readOnly: true });
    const { folded } = new LedgerReader(store, externalHeadStore);
    const { policies } = await coverageOf(folded, { from: 0, to: (await store.head()).size });
    const [policy] = policies;
    expect(policy?.files).toHaveProperty('conditions');
    const counted = policy?.elements.filter(({ kind }) => kind === 'condition');
    expect(counted).toMatchObject([
      { name: 'refund_two_people', allowed: 1, denied: 1 },
      { name: 'refund_limit', allowed: 0, denied: 1 },
      { name: 'closing_time', allowed: 0, denied: 0 },
      { name: 'secret_files', allowed: 0, denied: 0 },
    ]);
    await store.close();
  });

  test('U-06: pins the version of Cedar, and a ledger without conditions does not', async () => {
    const pinned = async (): Promise<unknown> => {
      const { run_id } = await bench.turnpike.startAgent(AGENT);
      const materials = await bench.turnpike.ledger.artifactsOf({ tree_id: rootRunIdOf(run_id), seq: 0 });
      const machines = materials.find((artifact) => !isWithheld(artifact) && artifact.kind === 'machines');
      return JSON.parse(Buffer.from((machines as Artifact).bytes).toString());
    };
    await open();
    expect(await pinned()).toMatchObject({ cedar: engineVersion() });
    await bench.close();
    bench = await Bench.open({ edit: refundEdit, tools: [refund] });
    expect(await pinned()).not.toHaveProperty('cedar');
  });
});
