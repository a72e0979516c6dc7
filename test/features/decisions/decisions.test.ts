// Decisions about actions that the caller executes itself.

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import { defineExternalTool } from '../../../src/runtime/effects/define-effects.js';
import type { ActionDecision, DecisionRequest } from '../../../src/runtime/agents/decision-request.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { CASE_AGENT, service, serviceEdit } from '../../fixtures/service.js';

const mail = defineExternalTool({
  name: 'mail.send',
  input: Type.Object({ to: Type.String() }, { additionalProperties: false }),
});
/** No lane lists it. */
const shell = defineExternalTool({
  name: 'native.shell',
  input: Type.Object({}, { additionalProperties: false }),
});
const APPROVALS = `
approvals:
  - { for: CALL_TOOL, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }
`;
const withApprovals: NonNullable<BenchOptions['edit']> = (name, text) =>
  name === 'actions' ? `${serviceEdit(name, text)}${APPROVALS}` : serviceEdit(name, text);

const CALLER = { ...CASE_AGENT, actor: 'agent-one', case: 'case-0001' };
const inside = service();
const tools = [mail, shell, ...inside.tools];
let bench: Bench;
const open = async (edit = serviceEdit): Promise<void> => {
  bench = await Bench.open({ edit, tools });
};
beforeEach(() => open());
afterEach(() => bench.close());

const decide = (more: Partial<DecisionRequest> = {}): Promise<ActionDecision> =>
  bench.turnpike.decide({ ...CALLER, tool: 'mail.send', input: { to: 'beth' }, ...more });

describe('a decision', () => {
  test('is recorded as a run that waits for its report', async () => {
    const { decision, call, code } = await decide();
    expect([decision, code]).toEqual([true, 'ALLOWED']);
    expect(await bench.turnpike.ledger.run(call ?? '')).toMatchObject({ status: 'running' });
    await bench.turnpike.report({ run: call ?? '', status: 'done' });
    expect(await bench.turnpike.ledger.run(call ?? '')).toMatchObject({ status: 'completed' });
  });

  test('of one caller is made in one run, and of another in another, also in another process', async () => {
    const [first, second, other] = [await decide(), await decide(), await decide({ actor: 'agent-two' })];
    expect(second.run).toBe(first.run);
    expect(other.run).not.toBe(first.run);
    await bench.turnpike.close();
    bench = await Bench.reopen(bench, { tools, clock: bench.clock });
    expect((await decide()).run).toBe(first.run);
  });

  test('never executes a tool of the platform', async () => {
    const answer = await decide({ tool: 'billing.charge', input: { amount: 1 } });
    expect(answer).toMatchObject({ decision: false, code: 'NOT_EXTERNAL', call: null });
    expect(inside.world.calls).toEqual([]);
  });

  test('follows in the next run when policy has ended the former after too many denials', async () => {
    const denied = { tool: 'native.shell', input: {} };
    const first = await decide(denied);
    expect(first).toMatchObject({ decision: false, code: 'POLICY_VIOLATION', rule: 'lane.tool_not_allowed' });
    const runs = new Set([first.run]);
    for (let n = 0; n < 24; n += 1) runs.add((await decide(denied)).run);
    expect(runs.size).toBe(3);
    expect(await decide()).toMatchObject({ decision: true });
    await bench.turnpike.close();
    bench = await Bench.reopen(bench, { tools, clock: bench.clock });
    expect(runs).toContain((await decide()).run);
  });

  test('is the recorded one for an equal request with the same key', async () => {
    const [first, second] = [await decide({ key: 'one' }), await decide({ key: 'one' })];
    expect(second).toEqual(first);
    await expect(decide({ key: 'one', input: { to: 'jerry' } })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    expect((await decide({ key: 'two', input: { to: 'jerry' } })).call).not.toBe(first.call);
  });
});

test('an action that needs an approval is pending, and allowed once after the vote', async () => {
  await bench.close();
  await open(withApprovals);
  const pending = await decide();
  expect(pending).toMatchObject({
    decision: false,
    pending: true,
    code: 'APPROVAL_PENDING',
    rule: 'approval.required',
  });
  const [request] = await bench.turnpike.requests(pending.run);
  const ballot = { actor: 'anna', role: 'ATTORNEY_ADMIN', decision: 'approve' } as const;
  await bench.turnpike.approve({ run: pending.run, digests: [request?.digest ?? ''], ...ballot });
  expect(await decide()).toMatchObject({ decision: true, pending: false });
  expect(await decide()).toMatchObject({ decision: false });
});

test.each([
  ['an empty tool', { tool: '' }],
  ['a long tool', { tool: 'x'.repeat(129) }],
  ['a long key', { key: 'x'.repeat(256) }],
  ['a large input', { input: { to: 'x'.repeat(262_144) } }],
  ['an input that is not JSON', { input: { to: Number.NaN } }],
])('%s is refused, and nothing is recorded', async (_what, more) => {
  const before = (await bench.entries()).length;
  await expect(decide(more)).rejects.toMatchObject({ code: 'USAGE' });
  expect(await bench.entries()).toHaveLength(before);
});
