// What the table of `lane-decision.test.ts` does not cover: run-level authorization, the source of scope values, what
// the platform forbids in every lane, and what a run inherits in a lane.

import { describe, expect, test } from '@jest/globals';
import { Check } from 'typebox/value';
import { AuditEvent } from '../../../src/core/contract/run/audit-event.js';
import { childContext, type RunContext, RUN_KINDS } from '../../../src/core/contract/run/run-context.js';
import {
  authorizeAgent,
  authorizeOrchestrator,
  authorizePrivileged,
  laneContext,
} from '../../../src/core/policy/authorize-run.js';
import { decide, pins, PROMOTION, REQUEST, RUN, scope, SHARED_WRITE } from '../../fixtures/privileged.js';
import { shippedPolicy } from '../../fixtures/shipped-policy.js';

const SHIPPED = shippedPolicy();

describe('S4-29 S4-37 run-level authorization', () => {
  const orchestrator: RunContext = { ...RUN, run_kind: 'orchestrator', role_id: 'SYSTEM', lane_id: null };
  const agent: RunContext = { ...RUN, run_kind: 'agent' };

  test('an orchestrator with every pin is allowed', () => {
    expect(authorizeOrchestrator(orchestrator)).toEqual({
      decision: 'allow',
      rule_id: 'orchestrator.pinned',
      cause: null,
    });
  });

  test('an agent is allowed if its role and its lane list each other', () => {
    expect(authorizeAgent(agent, SHIPPED)).toEqual({ decision: 'allow', rule_id: 'agent.lane_granted', cause: null });
  });

  test.each(['lanes', 'roles', 'actions'])('C44 without the pin of %s, orchestrator and agent are denied', (name) => {
    const denied = { decision: 'deny', rule_id: `pin.missing.${name}`, cause: 'LANE' };
    expect(authorizeOrchestrator({ ...orchestrator, ...pins(name, 'UNPINNED') })).toEqual(denied);
    expect(authorizeAgent({ ...agent, ...pins(name, 'UNPINNED') }, SHIPPED)).toEqual(denied);
  });

  test('S4-26 another contract version is denied', () => {
    const v2 = { contract_version: 'v2' as 'v1' };
    expect(authorizeOrchestrator({ ...orchestrator, ...v2 }).rule_id).toBe('contract.unsupported');
    expect(authorizeAgent({ ...agent, ...v2 }, SHIPPED).rule_id).toBe('contract.unsupported');
  });

  test.each([
    ['role.unknown', { role_id: 'ROOT' }],
    ['lane.missing', { lane_id: null }],
    ['lane.unknown', { lane_id: 'SYSTEM_OVERRIDE' }],
    ['role.lane_not_granted', { lane_id: 'EXPORT_CASE_DATA' }],
  ])('%s denies an agent run', (rule_id, changed) => {
    expect(authorizeAgent({ ...agent, ...changed }, SHIPPED)).toEqual({ decision: 'deny', rule_id, cause: 'LANE' });
  });

  test('a lane that does not list the role denies an agent run', () => {
    const lane = { ...SHIPPED.lanes.get('SANDBOX_FILES')!, allowed_callers: { roles: ['INTAKE_AGENT'] } };
    const policy = { ...SHIPPED, lanes: new Map([['SANDBOX_FILES', lane]]) };
    expect(authorizeAgent(agent, policy).rule_id).toBe('lane.role_not_allowed');
  });
});

describe('S4-34 required scope', () => {
  test('case_id and run_id come from the run itself and need not be supplied', () => {
    expect(decide({ lane: { scope: scope(['case_id', 'run_id']) } }).decision).toBe('allow');
  });

  test('supplying equal values again is allowed', () => {
    expect(decide({ run: { scope: { case_id: 'case_1', run_id: 'run_mediated' } } }).decision).toBe('allow');
  });

  test('a run without a case cannot get one from its scope', () => {
    const changed = { run: { case_id: null, scope: { case_id: 'case_1' } }, request: { target_case_id: null } };
    expect(decide(changed).rule_id).toBe('scope.missing.case_id');
  });

  test('a lane that requires a field accepts any value', () => {
    const changed = { lane: { scope: scope(['coa_version']) }, run: { scope: { coa_version: '3' } } };
    expect(decide(changed).decision).toBe('allow');
  });

  test('the rule id of the longest field fits into an audit event', () => {
    const { rule_id, decision } = decide({ lane: { scope: scope(['f'.repeat(120)]) } });
    expect(rule_id).toMatch(/^scope\.missing\.f+$/u);
    expect(Check(AuditEvent.properties.authz, { rule_id, decision })).toBe(true);
  });
});

describe('S4-84 S4-85 what no lane of contract v1 can allow', () => {
  test.each([...SHIPPED.lanes.keys()])('S4-84 %s: a target in another case is denied', (lane_id) => {
    const lane = SHIPPED.lanes.get(lane_id)!;
    const [write = null] = lane.allowed_actions.writes ?? [];
    const [tool = null] = lane.allowed_actions.tools ?? [];
    const fields = Object.fromEntries(
      lane.scope.requires.filter((field) => !['case_id', 'run_id'].includes(field)).map((field) => [field, 'x']),
    );
    const run = { ...RUN, lane_id, role_id: lane.allowed_callers.roles[0]!, scope: fields };
    const request = { ...REQUEST, tool, write };
    expect(authorizePrivileged(run, request, SHIPPED).decision).toBe('allow');
    expect(authorizePrivileged(run, { ...request, target_case_id: 'case_2' }, SHIPPED).rule_id).toMatch(
      /^(?:prohibition\.cross_case_lookup|platform\.cross_case)$/u,
    );
  });

  test('S4-84 a run without a case may not access any case', () => {
    const changed = { run: { case_id: null }, lane: { scope: scope([]) } };
    expect(decide(changed).rule_id).toBe('platform.cross_case');
    expect(decide({ ...changed, request: { target_case_id: null } }).decision).toBe('allow');
  });

  test.each(RUN_KINDS)('S4-85 only a promotion run writes shared knowledge: %s', (run_kind) => {
    const { decision, rule_id } = decide({ base: [PROMOTION, SHARED_WRITE], run: { run_kind } });
    expect([decision, rule_id]).toEqual(
      run_kind === 'promotion' ? ['allow', 'lane.granted'] : ['deny', 'platform.shared_write'],
    );
  });

  test('S4-71 S4-73 a promotion run in a lane without ticket or prohibitions writes nothing', () => {
    const { prohibits } = SHIPPED.lanes.get('PROMOTE_SHARED_KNOWLEDGE')!.scope;
    const weakened = [
      scope(['run_id'], prohibits),
      ...prohibits.map((name) =>
        scope(
          ['promotion_ticket_id'],
          prohibits.filter((other) => other !== name),
        ),
      ),
      scope(['promotion_ticket_id'], [...prohibits, 'shared_knowledge_write']),
    ];
    for (const weak of weakened) {
      const { rule_id } = decide({ base: [PROMOTION, SHARED_WRITE], lane: { scope: weak } });
      expect(rule_id).toBe('platform.shared_write');
    }
  });

  test('S4-72 a promotion run of another role, in a lane of its own, writes nothing shared', () => {
    const run = { ...RUN, run_kind: 'promotion', role_id: 'INTAKE_AGENT', lane_id: 'WRITE_INTAKE_ARTIFACTS' } as const;
    const request = { ...SHARED_WRITE, write: { table: 'transcripts', mode: 'append' } as const };
    expect(authorizePrivileged(run, request, SHIPPED).rule_id).toBe('platform.shared_write');
  });

  test('S4-71 a promotion without a ticket is denied', () => {
    expect(decide({ base: [PROMOTION, SHARED_WRITE], run: { scope: {} } }).rule_id).toBe(
      'scope.missing.promotion_ticket_id',
    );
  });
});

describe('C46 the context of a run in a lane', () => {
  const agent: RunContext = { ...RUN, run_kind: 'agent', lane_id: null };
  const lane = SHIPPED.lanes.get('SANDBOX_FILES')!;

  test('S4-56 inherits everything and works in the lane', () => {
    const child = childContext(agent, 'run_agent.1', 'tool_gateway');
    expect(laneContext(child, lane)).toEqual({ ...child, lane_id: 'SANDBOX_FILES' });
    expect(laneContext(child, { ...lane, inherits_case_id: true }).case_id).toBe('case_1');
  });

  test('in a lane that does not inherit the case has no case, and the same pins', () => {
    const run = laneContext(RUN, { ...lane, inherits_case_id: false });
    expect(run.case_id).toBeNull();
    expect(run.policy_versions).toEqual(RUN.policy_versions);
  });

  test('without a case, a lane that requires one denies, and so does a target in any case', () => {
    const run = laneContext(RUN, { ...lane, inherits_case_id: false });
    expect(authorizePrivileged(run, REQUEST, SHIPPED).rule_id).toBe('scope.missing.case_id');
    expect(decide({ run: { case_id: run.case_id }, lane: { scope: scope([]) } }).rule_id).toBe('platform.cross_case');
  });
});
