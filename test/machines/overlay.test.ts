// Goal: the emergency overlay denies at once, in running trees, and never allows anything (D1). Method: real trees
// under changing epochs; and random trees, each of whose inputs is decided with and without the overlay.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../src/core/contract/json.js';
import type { OverlayFact, OverlayRule } from '../../src/core/contract/policy/overlay.js';
import type { Decision } from '../../src/kernel/decision.js';
import { restoreTree, type TreeSnapshot } from '../../src/kernel/tree.js';
import { GovernedTree, governedPolicy, MOVES } from '../fixtures/governed.js';
import { AGENT, CASE, TREE, TreeDriver } from '../fixtures/tree.js';

const denying = (epoch: number, matchers: Partial<OverlayRule>): OverlayFact => ({
  epoch,
  rules: [{ rule_id: `deny-${epoch}`, reason: 'Stop.', ...matchers }],
});
const WRITE = { path: '/sandbox/a.txt', content: 'x' };

test('D1: a denying epoch applies to the next proposal of a running tree, and lifting it allows the next one', () => {
  const d = new GovernedTree().working();
  const pins = d.created(AGENT).policy_versions;
  d.overlay = { epoch: 1, rules: [] };
  d.call('slow.tool');
  d.done(`${AGENT}.1`);
  d.overlay = denying(2, { tool: 'slow.tool' });
  d.call('slow.tool');
  d.overlay = { epoch: 3, rules: [] };
  d.call('slow.tool');
  d.done(`${AGENT}.3`);
  expect(d.traces).toMatchObject([
    { outcome: 'SUCCESS' },
    { outcome: 'DENIED', error_code: 'POLICY_VIOLATION', cause: 'OVERLAY', rule_id: 'overlay.deny-2' },
    { outcome: 'SUCCESS' },
  ]);
  expect(d.endings).toMatchObject({ [`${AGENT}.2`]: 'denied:overlay.deny-2' });
  const refs = [1, 2, 3].map((ordinal) => d.audit(`${AGENT}.${ordinal}`)[0]!.authz!.policy_ref);
  expect(refs.map((ref) => ref?.split(' ').at(-1))).toEqual(['overlay@1', 'overlay@2', 'overlay@3']);
  for (const { policy_versions } of [...d.bodies('run_created'), ...d.audit()]) expect(policy_versions).toEqual(pins);
});

test('D1: an effect that was allowed before the epoch is executed: nothing stops halfway', () => {
  const d = new GovernedTree().working();
  d.call('slow.tool');
  d.overlay = denying(1, { tool: 'slow.tool' });
  d.done(`${AGENT}.1`);
  expect(d.traces).toMatchObject([{ outcome: 'SUCCESS' }]);
});

describe('D1: an overlay denies by', () => {
  test.each<[string, Partial<OverlayRule>]>([
    ['role', { role_id: 'CASE_AGENT' }],
    ['lane', { lane_id: 'CASE_WORK' }],
    ['action', { action: 'CALL_TOOL' }],
    ['tool', { tool: 'slow.tool' }],
    ['case', { case_id: CASE }],
    ['tree', { run_id: TREE }],
    ['agent run', { run_id: AGENT }],
    ['run', { run_id: `${AGENT}.1` }],
    ['actor', { actor_id: 'tester' }],
    ['two of them', { tool: 'slow.tool', actor_id: 'tester' }],
  ])('%s', (_what, matchers) => {
    const d = new GovernedTree().working();
    d.overlay = denying(1, matchers);
    d.call('slow.tool');
    expect(d.traces).toMatchObject([{ cause: 'OVERLAY', rule_id: 'overlay.deny-1' }]);
    expect(d.commands).toEqual([]);
  });

  test('the table of a written or read record', () => {
    const d = new GovernedTree().working();
    d.overlay = denying(1, { table: 'facts' });
    d.act('WRITE_RECORD', { target: 'facts', mode: 'append', record: { id: 'f-1' } });
    d.act('READ_RECORDS', { target: 'facts' });
    d.act('READ_RECORDS', { target: 'entities' });
    expect(d.traces.map(({ rule_id }) => rule_id)).toEqual(['overlay.deny-1', 'overlay.deny-1']);
    expect(d.commands).toMatchObject([{ effect: { args: { target: 'entities' } } }]);
  });

  test('no rule that matches only in part', () => {
    const d = new GovernedTree().working();
    d.overlay = denying(1, { tool: 'slow.tool', actor_id: 'somebody' });
    expect(d.call('slow.tool').commands).toHaveLength(1);
  });
});

test('D1 C52: the overlay also judges a db_write run below its gateway', () => {
  const d = new TreeDriver().ready();
  d.overlay = denying(4, { run_id: `${AGENT}.1.1` });
  expect(d.act('WRITE_FILE', WRITE).commands).toEqual([]);
  expect(d.story(d.decisions.slice(-1))).toEqual([
    'input:facts',
    `created:tool_gateway@${AGENT}.1`,
    `authz_decision:allow(lane.granted)@${AGENT}.1`,
    `system:success(running)@${AGENT}.1`,
    `created:db_write@${AGENT}.1.1`,
    `authz_decision:deny(overlay.deny-4)@${AGENT}.1.1`,
    `system:deny(denied:overlay.deny-4)@${AGENT}.1.1`,
    `system:deny(denied:overlay.deny-4)@${AGENT}.1`,
    'trace:DENIED',
  ]);
  for (const run_id of [`${AGENT}.1`, `${AGENT}.1.1`])
    expect(d.audit(run_id)[0]?.authz?.policy_ref).toMatch(/ overlay@4$/);
});

describe('D1: an untrusted overlay', () => {
  test.each(['invalid', 'missing', 'rolled_back'] as const)(
    'as %s denies everything that has a privilege',
    (problem) => {
      const d = new GovernedTree().working();
      d.overlay = { epoch: null, problem };
      d.call('slow.tool');
      d.act('READ_FILE', { path: '/sandbox/a.txt' });
      d.act('THINK', {});
      expect(d.traces.map(({ outcome }) => outcome)).toEqual(['DENIED', 'DENIED', 'SUCCESS']);
      expect(d.traces[0]).toMatchObject({ cause: 'OVERLAY', rule_id: 'overlay.unusable' });
      expect(d.audit(`${AGENT}.1`)[0]?.authz?.policy_ref).toContain(` overlay@${problem}`);
      d.promote();
      expect(d.endings[`${TREE}.2`]).toBe('denied:overlay.unusable');
      expect(d.commands).toEqual([]);
    },
  );

  test('starts no agent', () => {
    const d = new GovernedTree();
    d.overlay = { epoch: null, problem: 'invalid' };
    d.working();
    expect(d.endings).toMatchObject({ [AGENT]: 'denied:overlay.unusable' });
  });
});

test('D1: a denial by policy keeps its own rule', () => {
  const d = new GovernedTree().working();
  d.overlay = { epoch: null, problem: 'invalid' };
  d.call('shell.run');
  expect(d.traces).toMatchObject([{ cause: 'LANE', rule_id: 'tool.not_registered' }]);
});

describe('D1: no overlay turns a denial into an allowance', () => {
  const POLICY = governedPolicy(
    'retries: { max: 1, backoff_ms: 0 }\nbudgets: { tool_calls: 9 }\napprovals:\n' +
      '  - { for: WRITE_RECORD, approver_roles: [ATTORNEY_ADMIN], quorum: 1, expires_minutes: 60 }\n',
  );
  const one = <T extends string>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
  const matchers = fc
    .record({
      role_id: one('CASE_AGENT', 'GOVERNANCE_AGENT', 'NOBODY'),
      action: one('CALL_TOOL', 'WRITE_RECORD', 'READ_RECORDS'),
      tool: one('slow.tool', 'mail.send'),
      table: one('facts', 'shared_playbooks'),
      run_id: one(TREE, AGENT, `${AGENT}.2`, `${TREE}.2.1`),
    })
    .map((rule) => Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== undefined)))
    .filter((rule) => Object.keys(rule).length > 0);
  const rule = matchers.map((found): OverlayRule => ({ rule_id: 'deny-1', reason: 'Stop.', ...found }));
  const overlay: fc.Arbitrary<OverlayFact | null> = fc.oneof(
    fc.constant(null),
    fc.constant<OverlayFact>({ epoch: null, problem: 'invalid' }),
    fc.record({ epoch: fc.integer({ min: 1, max: 9 }), rules: fc.array(rule, { maxLength: 3 }) }),
  );

  const performs = ({ commands }: Decision): string[] =>
    commands.filter(({ kind }) => kind === 'perform').map((command) => canonicalJson(command));

  /** A tree that decides everything a second time, from the same state and without the overlay. */
  class Compared extends GovernedTree {
    performed = 0;
    prevented = 0;

    override take(...[input]: Parameters<GovernedTree['take']>): Decision {
      const { recorded, materials } = input;
      if (recorded.kind === 'open') return super.take(input);
      const snapshot = JSON.parse(JSON.stringify(this.tree.snapshot())) as TreeSnapshot;
      const free = restoreTree(snapshot, this.inputs[0]!.materials);
      const lifted = 'overlay' in recorded ? { ...recorded, overlay: null } : recorded;
      const without = performs(free.decide({ recorded: lifted, materials }));
      const decision = super.take(input);
      const under = performs(decision);
      expect(without).toEqual(expect.arrayContaining(under));
      this.performed += under.length;
      this.prevented += without.length - under.length;
      return decision;
    }
  }

  test('in any state of a tree, for any overlay', () => {
    let [performed, prevented] = [0, 0];
    const history = fc.array(fc.tuple(fc.constantFrom(...Object.keys(MOVES)), overlay), {
      minLength: 4,
      maxLength: 14,
    });
    fc.assert(
      fc.property(history, (moves) => {
        const d = new Compared(POLICY).working();
        for (const [move, fact] of moves) {
          d.overlay = fact;
          MOVES[move]!(d);
        }
        performed += d.performed;
        prevented += d.prevented;
      }),
      { seed: 1, numRuns: 150 },
    );
    expect(performed).toBeGreaterThan(50);
    expect(prevented).toBeGreaterThan(50);
  }, 120_000);
});
