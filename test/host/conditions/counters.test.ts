// Counters, end to end: what a case has been refunded today decides about the next refund. Closing the bench verifies
// each ledger and replays it from its bytes alone.

import { afterEach, describe, expect, test } from '@jest/globals';
import Type from 'typebox';
import type { CounterFact } from '../../../src/core/contract/run/counter-fact.js';
import { ActionNotExecutedError } from '../../../src/core/errors.js';
import { defineExternalTool, defineTool } from '../../../src/runtime/effects/define-effects.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { proposal } from '../../fixtures/tree.js';
import { refundEdit } from './refund-service.js';

const CONDITIONS = `@id("two_people") @approvals("2") @approver_role("ATTORNEY_ADMIN")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.args.amount > 5000 };

@id("daily_limit")
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.counters.refunds_today + context.args.amount > 20000 };
`;

const COUNTERS = `version: v1
contract_version: v1
last_updated: 2026-01-05
counters:
  - name: refunds_today
    over: case
    window: { calendar: day, time_zone: Europe/Berlin }
    currency: EUR
    counts:
      - { action: 'CALL_TOOL:payments.refund', sum: amount, currency: currency }
    gives_back:
      - { action: 'CALL_TOOL:billing.charge', sum: amount }
`;

type Answer = 'done' | 'failed' | 'unknown';
let answer: Answer = 'done';
const paid: number[] = [];

const money = (name: string) =>
  defineTool({
    name,
    summary: 'Move money.',
    input: Type.Object(
      { amount: Type.Integer({ minimum: -1_000_000 }), currency: Type.String({ maxLength: 3 }) },
      { additionalProperties: false },
    ),
    output: Type.Object({ receipt: Type.String() }, { additionalProperties: false }),
    idempotent: false,
    timeout: 1_000,
    resultBytesMax: 1_000,
    run: ({ amount }) => {
      if (answer === 'unknown') throw new Error('the connection was lost');
      if (answer === 'failed') throw new ActionNotExecutedError('no such order');
      paid.push(amount);
      return { receipt: 'r' };
    },
  });

const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
const call = (tool: string, amount: number, currency = 'EUR'): string =>
  JSON.stringify(proposal('CALL_TOOL', { tool, input: { amount, currency } }));
const refund = (amount: number, currency?: string): string => call('payments.refund', amount, currency);

let bench: Bench;
afterEach(async () => {
  answer = 'done';
  paid.length = 0;
  await bench.close();
});

const tools = [money('payments.refund'), money('billing.charge')];
const open = async (more: BenchOptions = {}): Promise<void> => {
  const clock = new ManualClock('2026-01-05T10:00:00.000Z');
  bench = await Bench.open({ edit: refundEdit, conditions: CONDITIONS, counters: COUNTERS, tools, clock, ...more });
};

/** The facts of all decisions. */
const counted = async (): Promise<readonly CounterFact[]> =>
  (await bench.entries()).flatMap(({ type, body }) =>
    type === 'input' && body.kind === 'facts' ? (body.counters ?? []) : [],
  );

describe('a daily limit of a case', () => {
  test('counts what was refunded, and records its value and the beginning of its window with each decision', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    for (const amount of [5_000, 5_000, 5_000, 4_000])
      expect(await agent.submit(refund(amount))).toMatchObject({ outcome: 'SUCCESS' });
    expect(await agent.submit(refund(1_001))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('daily_limit');
    expect(await agent.submit(refund(1_000))).toMatchObject({ outcome: 'SUCCESS' });
    expect((await counted()).map(({ used }) => used)).toEqual([0, 5_000, 10_000, 15_000, 19_000, 19_000]);
    expect((await counted())[0]).toEqual({
      name: 'refunds_today',
      key: 'case:case-local',
      used: 0,
      since: '2026-01-04T23:00:00.000Z',
      adds: 5_000,
    });
  });

  test('holds for all agents of the case, and after a restart', async () => {
    await open();
    const first = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'a' });
    for (let i = 0; i < 4; i += 1) await first.submit(refund(4_900));
    await bench.turnpike.close();
    bench = await Bench.reopen(bench, { tools, clock: bench.clock });
    const second = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'a' });
    expect(await second.submit(refund(401))).toMatchObject({ outcome: 'DENIED' });
    expect(await second.submit(refund(400))).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('begins again at midnight of its time zone', async () => {
    await open();
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'a' });
    for (let i = 0; i < 4; i += 1) await agent.submit(refund(5_000));
    expect(await agent.submit(refund(1))).toMatchObject({ outcome: 'DENIED' });
    bench.clock.advance(13 * 3_600_000);
    const next = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'b' });
    expect(await next.submit(refund(5_000))).toMatchObject({ outcome: 'SUCCESS' });
  });

  test('holds for callers at the same time', async () => {
    await open();
    const agents = await Promise.all(Array.from({ length: 16 }, () => bench.turnpike.startAgent(AGENT)));
    const responses = await Promise.all(agents.map((agent) => agent.submit(refund(3_000))));
    expect(responses.filter((response) => 'result' in response && response.result !== null)).toHaveLength(6);
    expect(paid).toEqual(Array.from({ length: 6 }, () => 3_000));
  });

  test('a second approval after the limit was used up is denied', async () => {
    await open();
    const agent = await bench.turnpike.startAgent({ ...AGENT, link: 'remote', key: 'refunds' });
    await agent.submit(refund(6_000));
    const { turnpike } = bench;
    const [request] = await bench.pendingApprovals();
    for (const actor of ['anna', 'berta'])
      await turnpike.approve({
        run: agent.run_id,
        digests: [request?.digest ?? ''],
        decision: 'approve',
        actor,
        role: 'ATTORNEY_ADMIN',
      });
    const other = await turnpike.startAgent(AGENT);
    for (let i = 0; i < 3; i += 1) await other.submit(refund(5_000));
    expect(await agent.submit(refund(6_000))).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('daily_limit');
    expect(paid).toEqual([5_000, 5_000, 5_000]);
  });
});

describe('the outcome settles what a step has counted', () => {
  const usedAfter = async (outcome: Answer): Promise<number | null | undefined> => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    answer = outcome;
    await agent.submit(refund(4_000));
    answer = 'done';
    await agent.submit(refund(1));
    return (await counted()).at(-1)?.used;
  };

  test('a refusal of the tool gives it back', async () => expect(await usedAfter('failed')).toBe(0));
  test('an unknown outcome counts', async () => expect(await usedAfter('unknown')).toBe(4_000));

  test.each([
    ['done', 4_000],
    ['not_executed', 0],
  ] as const)('an unknown outcome that a person resolves as %s counts %d', async (outcome, used) => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    answer = 'unknown';
    await agent.submit(refund(4_000));
    answer = 'done';
    await bench.turnpike.resolve({ run: `${agent.run_id}.1`, outcome, actor: 'anna', role: 'ATTORNEY_ADMIN' });
    await agent.submit(refund(1));
    expect((await counted()).at(-1)?.used).toBe(used);
  });

  test('a denied step counts nothing', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    await agent.submit(refund(6_000));
    await agent.submit(refund(1));
    expect((await counted()).map(({ used }) => used)).toEqual([0, 0]);
  });

  test('what policy gives back is counted once it has happened', async () => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    await agent.submit(refund(5_000));
    answer = 'failed';
    await agent.submit(call('billing.charge', 2_000));
    answer = 'done';
    await agent.submit(call('billing.charge', 1_500));
    await agent.submit(refund(1));
    expect((await counted()).map(({ used, adds }) => [used, adds])).toEqual([
      [0, 5_000],
      [5_000, -2_000],
      [5_000, -1_500],
      [3_500, 1],
    ]);
  });
});

describe('an action that the caller executes', () => {
  test('counts from the decision on, whatever is reported: nothing proves a report', async () => {
    const input = Type.Object(
      { amount: Type.Integer(), currency: Type.String({ maxLength: 3 }) },
      { additionalProperties: false },
    );
    const external = defineExternalTool({ name: 'payments.refund', input, timeout: 60_000 });
    await open({ tools: [external, money('billing.charge')] });
    const caller = { actor: 'gateway', role: AGENT.role, lane: AGENT.lane } as const;
    const decide = (amount: number) =>
      bench.turnpike.decide({ ...caller, tool: 'payments.refund', input: { amount, currency: 'EUR' } });
    for (const status of ['failed', 'unknown', 'done'] as const) {
      const { call } = (await decide(5_000)) as { readonly call: string };
      await bench.turnpike.report({ run: call, status });
    }
    await decide(5_000);
    expect(await decide(1)).toMatchObject({ decision: false });
    expect(await bench.lastRule()).toBe('daily_limit');
    expect((await counted()).map(({ used }) => used)).toEqual([0, 5_000, 10_000, 15_000, 20_000]);
  });
});

describe('what cannot be counted is denied', () => {
  test.each([
    ['another currency', refund(5, 'USD')],
    ['a negative amount', refund(-5_000)],
  ])('%s', async (_what, request) => {
    await open();
    const agent = await bench.turnpike.startAgent(AGENT);
    expect(await agent.submit(request)).toMatchObject({ outcome: 'DENIED' });
    expect(await bench.lastRule()).toBe('condition.error');
    expect(paid).toEqual([]);
  });
});
