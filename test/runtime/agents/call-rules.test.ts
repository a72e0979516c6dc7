// Call rules in the pipeline (0061): decided calls, their approvals, and what people are shown. Every bench is verified
// and replayed when it is closed.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Json } from '../../../src/core/contract/json.js';
import type { Lane } from '../../../src/core/contract/policy/lanes.js';
import type { StepResponse } from '../../../src/core/contract/run/response.js';
import { contentOf, NATIVE_TOOLS } from '../../../src/features/hooks/native-calls.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { decisionsIn } from '../../../src/features/simulation/decision-fold.js';
import { explain } from '../../../src/features/simulation/explain.js';
import type { RecordedDecision } from '../../../src/features/simulation/recorded-decision.js';
import { compareDecision } from '../../../src/features/simulation/simulate.js';
import type { AgentRun } from '../../../src/runtime/agents/agent-run.js';
import { defineExternalTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit, type World } from '../../fixtures/service.js';
import { proposal } from '../../fixtures/tree.js';

const CALLS = `
    calls:
      - { id: secrets, tools: [native.shell], decision: deny, paths: ['**/.env*'] }
      - { id: status, tools: [native.shell], decision: allow, commands: [git status] }
      - { id: publish, tools: [native.shell], decision: approval, commands: [git push] }
      - { id: charge, tools: [billing.charge], decision: approval }
`;
const APPROVALS = `
approvals:
  - { for: call.publish, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
  - { for: call.charge, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const edit: NonNullable<BenchOptions['edit']> = (name, text) => {
  const edited = serviceEdit(name, text);
  if (name === 'actions') return `${edited}${APPROVALS}`;
  return name === 'lanes'
    ? `${edited.replace('tools: [billing.charge', 'tools: [native.shell, native.read, billing.charge')}${CALLS}`
    : edited;
};
const external = NATIVE_TOOLS.filter(({ name }) => name === 'native.shell' || name === 'native.read').map(
  ({ name, input, outside, timeout }) => defineExternalTool({ name, input, outside, timeout }),
);

let bench: Bench;
let agent: AgentRun;
let world: World;
beforeEach(async () => {
  const made = service();
  world = made.world;
  bench = await Bench.open({ edit, tools: [...external, ...made.tools] });
  agent = await bench.turnpike.startAgent({ ...CASE_AGENT, case: 'case-0001' });
});
afterEach(() => bench.close());

const call = (tool: string, input: Record<string, Json>): Promise<StepResponse> =>
  agent.submit(JSON.stringify(proposal('CALL_TOOL', { tool, input })));
const run = (command: string): Promise<StepResponse> => call('native.shell', { command: contentOf(command) });

/** The rule of each decided call, from the audit. */
const decidedBy = async (): Promise<readonly string[]> =>
  (await bench.entries()).flatMap(({ type, body }) =>
    type === 'audit_event' && body.action_type === 'authz_decision' && body.run_id.startsWith(`${agent.run_id}.`)
      ? [body.authz?.rule_id ?? '']
      : [],
  );

async function approve(): Promise<void> {
  const open = (await bench.turnpike.requests(agent.run_id)).filter(({ status }) => status === 'open');
  const digests = open.map(({ digest }) => digest);
  const ballot = { run: agent.run_id, digests, decision: 'approve', actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
  expect(await bench.turnpike.approve(ballot)).toEqual(
    digests.map((digest) => expect.objectContaining({ digest, counted: true })),
  );
}

/** The recorded decisions about calls of the agent, in order. */
async function decisions(): Promise<readonly RecordedDecision[]> {
  const found: RecordedDecision[] = [];
  const read = { trees: 0, entries: 0, not_recomputed: 0 };
  for await (const decision of decisionsIn(bench.turnpike.ledger.folded, undefined, read)) {
    if (decision.facts.kind === 'step') found.push(decision);
  }
  return found;
}

describe('0061: a call', () => {
  test('is denied by the rule of its lane, and the agent learns only that policy denies it', async () => {
    const responses = [
      await run('git status --file=.env'),
      await run('rm x'),
      await run('git status $X'),
      await call('native.read', { path: 'a.ts' }),
    ];
    expect(await decidedBy()).toEqual([
      'call.denied.secrets',
      'call.not_allowed',
      'call.unreadable',
      'call.not_allowed',
    ]);
    expect(new Set(responses.map((response) => JSON.stringify('error' in response ? response.error : null))).size).toBe(
      1,
    );
    for (const response of responses) {
      expect(response).toMatchObject({ outcome: 'DENIED', error: { error_code: 'POLICY_VIOLATION' } });
      expect(JSON.stringify(response)).not.toMatch(/secrets|call\./);
    }
  });

  test('is allowed if a rule allows each of its parts', async () => {
    expect(await run('git status && git status -s')).toMatchObject({
      outcome: 'SUCCESS',
      result: { authorized: true },
    });
    expect(await decidedBy()).toEqual(['lane.granted']);
  });
});

describe('0061 D7: a call that a call rule wants approved', () => {
  test('is requested under the name of the rule, voted on, and allowed once', async () => {
    expect(await run('git push')).toMatchObject({ outcome: 'DENIED' });
    expect(await run('git push --force')).toMatchObject({ outcome: 'DENIED' });
    const requests = await bench.turnpike.requests(agent.run_id);
    expect(requests.map(({ name, status }) => [name, status])).toEqual([
      ['call.publish', 'open'],
      ['call.publish', 'open'],
    ]);
    const pending = [];
    for await (const { name, quorum, approver_roles, request } of bench.turnpike.ledger.approvals(
      new Date(bench.clock.now()).toISOString(),
    ))
      pending.push({ name, quorum, approver_roles, request });
    expect(pending[0]).toEqual({
      name: 'call.publish',
      quorum: 1,
      approver_roles: ['ATTORNEY_ADMIN'],
      request: { action: 'CALL_TOOL', args: { tool: 'native.shell', input: { command: contentOf('git push') } } },
    });
    const [first] = requests;
    const ballot = { run: agent.run_id, decision: 'approve', actor: 'anna', role: 'ATTORNEY_ADMIN' } as const;
    await bench.turnpike.approve({ ...ballot, digests: [first?.digest ?? ''] });
    expect(await run('git push --force')).toMatchObject({ outcome: 'DENIED' });
    expect(await run('git push')).toMatchObject({ outcome: 'SUCCESS', result: { authorized: true } });
    expect(await run('git push')).toMatchObject({ outcome: 'DENIED' });
    expect(await decidedBy()).toEqual([
      'approval.required',
      'approval.required',
      'approval.required',
      'lane.granted',
      'approval.consumed',
    ]);
  });

  test('is executed once if the platform executes it', async () => {
    expect(await call('billing.charge', { amount: 5 })).toMatchObject({ outcome: 'DENIED' });
    expect(world.effects).toEqual([]);
    await approve();
    expect(await call('billing.charge', { amount: 5 })).toMatchObject({ outcome: 'SUCCESS' });
    expect(await call('billing.charge', { amount: 5 })).toMatchObject({ outcome: 'DENIED' });
    expect(world.effects.map(({ amount }) => amount)).toEqual([5]);
  });

  test('is not approved by an agent, nor in a role that the rule does not name', async () => {
    await run('git push');
    const [request] = await bench.turnpike.requests(agent.run_id);
    const ballot = { run: agent.run_id, digests: [request?.digest ?? ''], decision: 'approve' } as const;
    for (const role of ['CASE_AGENT', 'ASSOCIATE'])
      expect(await bench.turnpike.approve({ ...ballot, actor: 'anna', role })).toMatchObject([{ counted: false }]);
    expect(await run('git push')).toMatchObject({ outcome: 'DENIED' });
  });
});

describe('0061: a recorded decision about a call', () => {
  const withCalls = (policy: Policy, calls: Lane['calls']): Policy => ({
    ...policy,
    lanes: new Map(
      [...policy.lanes].map(([id, lane]) => [
        id,
        id === 'CASE_WORK' && calls !== undefined ? { ...lane, calls } : lane,
      ]),
    ),
  });
  const callsOf = ({ policy }: RecordedDecision): NonNullable<Lane['calls']> =>
    policy.lanes.get('CASE_WORK')?.calls ?? [];

  test('is the same under its own policy, and another under other call rules', async () => {
    await run('git status');
    await run('git push');
    await approve();
    await run('git push');
    await run('rm x');
    const recorded = await decisions();
    expect(recorded.map(({ said }) => said.rule_id)).toEqual([
      'lane.granted',
      'approval.required',
      'lane.granted',
      'call.not_allowed',
    ]);
    const under = (change: (calls: NonNullable<Lane['calls']>) => NonNullable<Lane['calls']>) =>
      recorded.map((decision) => {
        const found = compareDecision(decision, withCalls(decision.policy, change(callsOf(decision))));
        return found === null ? 'same' : (found.undecidable ?? found.now?.rule_id);
      });
    expect(under((calls) => calls)).toEqual(['same', 'same', 'same', 'same']);
    expect(under((calls) => calls.filter(({ id }) => id !== 'status' && id !== 'publish'))).toEqual([
      'call.not_allowed',
      'call.not_allowed',
      'call.not_allowed',
      'same',
    ]);
    const allowing = under((calls) => calls.map((rule) => ({ ...rule, decision: 'allow' as const })));
    expect(allowing).toEqual(['same', 'lane.granted', 'same', 'same']);
    // Votes were given under another rule, so they decide nothing under this one.
    const other = under((calls) => calls.map((rule) => (rule.id === 'publish' ? { ...rule, id: 'charge' } : rule)));
    expect(other).toEqual(['same', 'same', 'approval.other_rule', 'same']);
  });

  test('is explained by its check, and by the changes of call rules that reverse it', async () => {
    await run('git status .env');
    await run('git push');
    await run('rm x');
    const explained = await Promise.all((await decisions()).map((decision) => explain(decision)));
    const decided = explained.map(({ checks }) => checks.find(({ verdict }) => verdict === 'decided')?.name);
    expect(decided).toEqual([
      'the call rules of the lane allow each part of the call',
      'the required approvals are granted',
      'the call rules of the lane allow each part of the call',
    ]);
    const lane = 'lane CASE_WORK would have to';
    expect(explained.map(({ changes }) => changes.map(({ text }) => text))).toEqual([
      [`${lane} no longer have the call rule secrets`],
      [
        `${lane} allow in the call rule publish without an approval`,
        `${lane} have a call rule that allows this call of native.shell`,
      ],
      [`${lane} have a call rule that allows this call of native.shell`],
    ]);
  });
});
