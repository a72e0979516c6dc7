// Conditions in promotions and exports, and in what people read and ask of a ledger: simulation, explanation, matrix.

import { afterEach, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPolicy } from '../../../src/core/policy/files/check-policy.js';
import type { Policy } from '../../../src/core/policy/policy.js';
import { decisionsIn } from '../../../src/features/simulation/decision-fold.js';
import { explain } from '../../../src/features/simulation/explain.js';
import type { RecordedDecision } from '../../../src/features/simulation/recorded-decision.js';
import { simulate, type SimulationFinding } from '../../../src/features/simulation/simulate.js';
import { homePaths, openHome } from '../../../src/home/home.js';
import { LedgerReader } from '../../../src/runtime/ledger/ledger-reader.js';
import { rootRunIdOf } from '../../../src/core/contract/run/run-context.js';
import { buildPolicyMatrix } from '../../../src/features/policy-lint/policy-matrix.js';
import { Bench, type BenchOptions } from '../../fixtures/bench.js';
import { ManualClock } from '../../fixtures/manual-clock.js';
import { refund, refundCall, refundEdit } from './refund-service.js';

const AGENT = { lane: 'CASE_WORK', role: 'CASE_AGENT' } as const;
const ROLE = 'ATTORNEY_ADMIN';

/** A condition on refunds above an amount. */
const above = (id: string, amount: number, annotations = ''): string => `@id("${id}") ${annotations}
forbid (principal, action == Action::"CALL_TOOL:payments.refund", resource)
when { context.args.amount > ${amount} };
`;
const asking = (quorum: number): string => `@approvals("${quorum}") @approver_role("${ROLE}")`;

const TWO_PEOPLE = above('two_people', 100, asking(2));
const LIMIT = above('limit', 5_000);

const EXPORTS = `@id("export_two_people") ${asking(2)} @expires("7d")
forbid (principal, action == Action::"export", resource);
@id("export_closed")
forbid (principal, action == Action::"export", resource == Case::"case-local")
when { context.now >= datetime("2026-01-05T18:00:00Z") };
`;

let bench: Bench;
afterEach(() => bench.close());

const open = async (conditions: string, more: BenchOptions = {}): Promise<void> => {
  bench = await Bench.open({ edit: refundEdit, conditions, tools: [refund], ...more });
};

/** The ledger of the closed bench. */
async function reading<T>(use: (reader: LedgerReader) => Promise<T>): Promise<T> {
  await bench.turnpike.close();
  const { store, externalHeadStore } = openHome(homePaths(bench.home), { readOnly: true });
  try {
    return await use(new LedgerReader(store, externalHeadStore));
  } finally {
    await store.close();
  }
}

/** The first decision about a step of an agent run. */
async function stepIn({ folded }: LedgerReader, run_id: string): Promise<RecordedDecision> {
  const count = { trees: 0, entries: 0, not_recomputed: 0 };
  for await (const decision of decisionsIn(folded, rootRunIdOf(run_id), count))
    if (decision.facts.kind === 'step') return decision;
  throw new Error('no step was decided');
}

/** The policy of the bench with other conditions; undefined: none. */
function policyWith(conditions: string | undefined): (catalogue: Policy['catalogue']) => Policy {
  const bytes = (name: string): Buffer => readFileSync(join(bench.contract, 'policy', `${name}.yaml`));
  const files = { lanes: bytes('lanes'), roles: bytes('roles'), actions: bytes('actions') };
  return (catalogue) =>
    loadPolicy(conditions === undefined ? files : { ...files, conditions: Buffer.from(conditions) }, catalogue);
}

describe('S4-78 an export about which conditions decide', () => {
  const started = () =>
    bench.turnpike.export({
      actor: 'anna',
      role: ROLE,
      case: 'case-local',
      reason: 'a request',
      destination: join(bench.folder, 'bag'),
    });
  const vote = async (run: string, digest: string | null, actor: string): Promise<string | undefined> =>
    (await bench.turnpike.approve({ run, digests: [digest ?? ''], decision: 'approve', actor, role: ROLE }))[0]
      ?.rule_id;

  test('waits for the people whom they ask', async () => {
    await open(EXPORTS);
    const { run_id, digest, finished } = await started();
    expect(await vote(run_id, digest, 'berta')).toBe('approval.accepted');
    expect(await vote(run_id, digest, 'carl')).toBe('approval.granted');
    expect(await finished).toMatchObject({ state: 'completed' });
  });

  test('is denied by a condition that only holds at the last vote', async () => {
    await open(EXPORTS, { clock: new ManualClock('2026-01-05T17:50:00.000Z') });
    const { run_id, digest, finished } = await started();
    expect(await vote(run_id, digest, 'berta')).toBe('approval.accepted');
    bench.clock.advance(600_000);
    await vote(run_id, digest, 'carl');
    expect(await finished).toMatchObject({ state: 'denied', reason: 'export_closed' });
  });

  test('is denied when it starts', async () => {
    await open(EXPORTS, { clock: new ManualClock('2026-01-05T18:00:00.000Z') });
    const { finished } = await started();
    expect(await finished).toMatchObject({ state: 'denied', reason: 'export_closed' });
  });
});

describe('a simulation orders denial, approvals and allow', () => {
  const simulated = async (was: string, now: string | undefined, amount: number) => {
    await open(was);
    const agent = await bench.turnpike.startAgent(AGENT);
    await agent.submit(refundCall(amount));
    const found: SimulationFinding[] = [];
    const resolve = policyWith(now);
    await reading(({ folded }) => simulate(folded, resolve, (finding) => void found.push(finding)));
    return found.map(({ kind, was: before, now: after }) => [kind, before.quorum, after?.quorum, after?.rule_id]);
  };

  test.each<[string, string, string | undefined, number, unknown]>([
    ['the same conditions', TWO_PEOPLE, TWO_PEOPLE, 500, []],
    ['no conditions', TWO_PEOPLE, undefined, 500, [['new-allow', 2, undefined, 'lane.granted']]],
    ['one person more', TWO_PEOPLE, above('x', 1, asking(3)), 500, [['stricter', 2, 3, 'approval.required']]],
    ['one person less', TWO_PEOPLE, above('x', 1, asking(1)), 500, [['less-strict', 2, 1, 'approval.required']]],
    ['a denial', TWO_PEOPLE, above('x', 1), 500, [['stricter', 2, undefined, 'x']]],
    ['people in place of a denial', LIMIT, TWO_PEOPLE, 5_001, [['less-strict', undefined, 2, 'approval.required']]],
    ['another denial', LIMIT, above('y', 1), 5_001, [['other-rule', undefined, undefined, 'y']]],
    ['people in place of an allow', LIMIT, TWO_PEOPLE, 500, [['new-deny', undefined, 2, 'approval.required']]],
    ['a limit that the amount does not reach', TWO_PEOPLE, LIMIT + TWO_PEOPLE, 500, []],
  ])('%s', async (_what, was, now, amount, expected) => {
    expect(await simulated(was, now, amount)).toEqual(expected);
  });
});

describe('an explanation', () => {
  const explained = async (conditions: string, amount: number) => {
    await open(conditions);
    const agent = await bench.turnpike.startAgent(AGENT);
    await agent.submit(refundCall(amount));
    return explain(await reading((reader) => stepIn(reader, agent.run_id)));
  };

  test('shows the condition that denied with its place, and what would flip it', async () => {
    const { checks, conditions, changes } = await explained(TWO_PEOPLE + LIMIT, 5_001);
    expect(conditions).toEqual([
      { id: 'limit', file: 'conditions.cedar', line: 4, column: 1, text: expect.stringContaining('amount > 5000') },
    ]);
    expect(checks.find(({ verdict }) => verdict === 'decided')).toEqual({
      name: 'no condition forbids it',
      verdict: 'decided',
      rule_id: 'limit',
    });
    expect(changes.map(({ text }) => text)).toEqual([]);
  });

  test('shows the conditions that ask for an approval', async () => {
    const { conditions, changes } = await explained(TWO_PEOPLE + LIMIT, 500);
    expect(conditions).toMatchObject([{ id: 'two_people', line: 1 }]);
    expect(changes.map(({ text }) => text)).toContain(
      'condition two_people (conditions.cedar:1) would have to be removed',
    );
  });
});

test('the matrix says where arguments decide', async () => {
  await open(LIMIT);
  const agent = await bench.turnpike.startAgent(AGENT);
  await agent.submit(refundCall(1));
  const resolve = policyWith(LIMIT);
  const { policy } = await reading((reader) => stepIn(reader, agent.run_id));
  const cells = buildPolicyMatrix(resolve(policy.catalogue));
  const cellOf = (act: string, lane_id = 'CASE_WORK') =>
    cells.find((cell) => cell.role_id === 'CASE_AGENT' && cell.lane_id === lane_id && cell.act === act);
  expect(cellOf('CALL_TOOL payments.refund')).toMatchObject({ decision: 'depends', rule_id: 'condition.*' });
  expect(cellOf('CALL_TOOL billing.charge')).not.toMatchObject({ decision: 'depends' });
  expect(cellOf('CALL_TOOL payments.refund', 'SANDBOX_FILES')).toMatchObject({ decision: 'deny' });
});
