// The elements that decided, against random trees: without an element that decided, the decision differs, and without
// a grant or a lane that did not decide, an allow remains.

import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Policy } from '../../../src/core/policy/policy.js';
import { decideUnderPolicy } from '../../../src/features/simulation/decide-under-policy.js';
import { decidingElements } from '../../../src/features/simulation/deciding-elements.js';
import { elementKey, elementsOf, type PolicyElement } from '../../../src/features/simulation/policy-elements.js';
import type { RecordedDecision } from '../../../src/features/simulation/recorded-decision.js';
import { sized } from '../../fixtures/campaign.js';
import { play } from '../../trees/play.js';
import { PLOT } from '../../trees/turns.js';
import { decisionsOf } from './agreement.js';
import { policyPool } from './random-policies.js';
import '../../fixtures/conditions.js';
import '../../fixtures/call-rules.js';

/** The policy without one element. */
function without(policy: Policy, { kind, lane_id, name }: PolicyElement): Policy {
  if (lane_id === null) {
    const approvals = policy.approvals.filter((rule) => kind !== 'approval' || rule.for !== name);
    const actions = new Map(policy.actions);
    if (kind === 'grant') actions.delete(name.slice('action '.length));
    if (kind === 'rule')
      actions.set(name.slice('extensions of '.length), { action: name.slice('extensions of '.length) });
    return { ...policy, approvals, actions };
  }
  const lanes = new Map(policy.lanes);
  const lane = lanes.get(lane_id);
  if (lane === undefined) throw new Error(`no lane ${lane_id}`);
  if (kind === 'lane') lanes.delete(lane_id);
  else {
    const { tools = [], writes = [], reads = [] } = lane.allowed_actions;
    lanes.set(lane_id, {
      ...lane,
      allowed_callers: { roles: lane.allowed_callers.roles.filter((role) => name !== `role ${role}`) },
      allowed_actions: {
        tools: tools.filter((tool) => name !== `tool ${tool}`),
        writes: writes.filter(({ table, mode }) => name !== `${mode} ${table}`),
        reads: reads.filter((table) => name !== `read ${table}`),
      },
      scope: {
        requires: lane.scope.requires.filter((field) => name !== `requires ${field}`),
        prohibits: lane.scope.prohibits.filter((one) => kind !== 'prohibition' || one !== name),
      },
      refuses_labels: (lane.refuses_labels ?? []).filter((label) => name !== `refuses ${label}`),
    });
  }
  return { ...policy, lanes };
}

const answerWithout = (decision: RecordedDecision, element: PolicyElement): string =>
  JSON.stringify(decideUnderPolicy(decision, without(decision.policy, element)));
const named = ({ said, action, facts }: RecordedDecision, element: PolicyElement): string =>
  `${facts.kind} ${action}: ${said.decision} ${said.rule_id}: ${elementKey(element)}`;

describe('the elements that decided', () => {
  const pool = policyPool(7, 24);
  const decisions = fc
    .sample(PLOT, { seed: 7, numRuns: sized(60, 400) })
    .flatMap((plot, i) => decisionsOf(play(plot, pool[i % pool.length] ?? pool[0]!)).flat());
  const found = new Map<RecordedDecision, readonly PolicyElement[]>(
    decisions.map((decision) => [decision, decidingElements(decision)]),
  );

  test('are elements of the policy, of every kind that the trees have', () => {
    const kinds = new Set<string>();
    const unknown = [...found].flatMap(([decision, elements]) => {
      const keys = new Set(elementsOf(decision.policy).map(elementKey));
      for (const { kind, name } of elements) kinds.add(`${decision.said.decision} ${kind} ${name.split(' ')[0]}`);
      // A denial may name a lane or a role that the policy lacks, but never an element of it that is not listed.
      return elements.filter((element) => !keys.has(elementKey(element))).map((element) => named(decision, element));
    });
    expect(unknown).toEqual([]);
    expect([...kinds]).toEqual(
      expect.arrayContaining([
        'allow lane SANDBOX_FILES',
        'allow grant action',
        'allow grant role',
        'allow grant tool',
        'allow grant append',
        'allow grant upsert',
        'allow grant read',
        'allow approval WRITE_RECORD',
        'deny approval WRITE_RECORD',
        'deny lane SANDBOX_FILES',
        'deny prohibition external_export',
        'deny rule requires',
      ]),
    );
  });

  test('are needed: without one of them, the decision differs', () => {
    const same = [...found].flatMap(([decision, elements]) =>
      elements
        .filter(({ kind }) => kind !== 'approval' || decision.said.decision === 'deny')
        .filter((element) => answerWithout(decision, element) === JSON.stringify(decision.said))
        .map((element) => named(decision, element)),
    );
    expect([...new Set(same)]).toEqual([]);
  });

  test('are all: without another grant or lane, an allow remains', () => {
    const changed = [...found].flatMap(([decision, elements]) => {
      if (decision.said.decision === 'deny' || decision.facts.kind === 'ballot') return [];
      const keys = new Set(elements.map(elementKey));
      return elementsOf(decision.policy)
        .filter((element) => ['grant', 'lane'].includes(element.kind) && !keys.has(elementKey(element)))
        .filter((element) => answerWithout(decision, element) !== JSON.stringify(decision.said))
        .map((element) => named(decision, element));
    });
    expect([...new Set(changed)]).toEqual([]);
  });

  test('include call rules, with the approval that a call rule asks for', () => {
    const call = decisions.find(
      ({ facts, said, action }) =>
        facts.kind === 'step' && facts.act !== null && said.decision === 'allow' && action === 'CALL_TOOL',
    );
    if (call?.facts.kind !== 'step' || call.facts.act === null) throw new Error('no tree has called a tool');
    const lane = call.policy.lanes.get(call.policy.actions.get('CALL_TOOL')?.lane ?? call.lane_id ?? '');
    if (lane === undefined) throw new Error('the call has no lane');
    const { lane_id } = lane;
    const tools = [call.facts.act.args['tool'] as string];
    const under = (said: RecordedDecision['said'], decision: 'allow' | 'approval' | 'deny'): readonly string[] => {
      const lanes = new Map(call.policy.lanes).set(lane_id, { ...lane, calls: [{ id: 'one', tools, decision }] });
      const rule = { for: 'call.one', approver_roles: ['ATTORNEY_ADMIN'], quorum: 1, expires_minutes: 1 };
      const found = decidingElements({ ...call, said, policy: { ...call.policy, lanes, approvals: [rule] } });
      return found.filter(({ kind }) => kind !== 'grant').map(({ kind, name }) => `${kind} ${name}`);
    };
    expect(under({ decision: 'allow', rule_id: 'lane.granted' }, 'allow')).toEqual([
      `lane ${lane_id}`,
      'rule call one',
    ]);
    expect(under({ decision: 'deny', rule_id: 'call.denied.one' }, 'deny')).toEqual([
      `lane ${lane_id}`,
      'rule call one',
    ]);
    expect(under({ decision: 'deny', rule_id: 'approval.required' }, 'approval')).toEqual([
      'approval call.one',
      'rule call one',
    ]);
    expect(under({ decision: 'deny', rule_id: 'label.any_case' }, 'allow')).toEqual([
      `lane ${lane_id}`,
      'rule refuses any_case',
    ]);
    expect(under({ decision: 'deny', rule_id: 'quota.bytes' }, 'allow')).toEqual([]);
  });
});
