// What a verdict means for the session, how often a gate may fail, and which answers report it.

import { describe, expect, test } from '@jest/globals';
import type { GatePolicy, GateVerdict } from '../../../../src/features/sessions/contract/session.js';
import { GATE, atGate, typeOf, reasonOf, codeOf, gateOf, judged } from '../../../fixtures/gated.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { RUNNER } from '../../../fixtures/session.js';

describe('what a verdict means', () => {
  test.each<readonly [GatePolicy, GateVerdict, string]>([
    ['strict', 'pass', 'implement_task'],
    ['strict', 'warn', 'address_fidelity_feedback'],
    ['strict', 'fail', 'address_fidelity_feedback'],
    ['lenient', 'pass', 'implement_task'],
    ['lenient', 'warn', 'implement_task'],
    ['lenient', 'fail', 'address_fidelity_feedback'],
    ['manual', 'pass', 'pause'],
    ['manual', 'warn', 'pause'],
    ['manual', 'fail', 'pause'],
  ])('under %s, %s: %s', (gate_policy, verdict, next) => {
    const d = atGate({ settings: { gate_policy } });
    const answer = judged(d, verdict);
    expect(typeOf(answer)).toBe(next);
    expect(reasonOf(answer)).toBe(next === 'pause' ? 'gate_review_required' : null);
    const status = { implement_task: 'passed', address_fidelity_feedback: 'failed', pause: undefined }[next];
    expect(gateOf(d)?.status).toBe(status);
    expect(answer.data?.satisfied_gates).toEqual(next === 'implement_task' ? ['p1'] : []);
    expect(answer.data?.missing_required_gates).toEqual(next === 'implement_task' ? ['p2'] : ['p1', 'p2']);
  });
});

describe('S3-34: feedback', () => {
  test('contains the findings in its instruction, and the gate follows it', () => {
    const d = atGate();
    const { data } = judged(d, 'fail');
    expect(data?.next_step).toMatchObject({
      type: 'address_fidelity_feedback',
      phase_id: 'p1',
      task_id: null,
      findings: [{ severity: 'error', message: 'not yet' }],
    });
    expect(data?.next_step?.instruction).toContain('- error: not yet');
    expect(typeOf(d.next(d.report('success', { files_touched: ['a.md'] })))).toBe('run_fidelity_gate');
  });

  test('that failed or was skipped must still be addressed, up to a limit of reports', () => {
    const d = atGate();
    judged(d, 'fail');
    expect(typeOf(d.work('failure'))).toBe('address_fidelity_feedback');
    expect(d.outstanding.step.findings).toHaveLength(1);
    expect(typeOf(d.work('skipped'))).toBe('address_fidelity_feedback');
    const answers = Array.from({ length: 4 }, () => d.work('failure'));
    expect(answers.map(reasonOf).at(-1)).toBe('error_threshold');
    const skipping = atGate({ limits: { max_skips: 2 } });
    judged(skipping, 'fail');
    expect([1, 2, 3].map(() => reasonOf(skipping.work('skipped')))).toEqual([null, null, 'blocked']);
  });

  test('of one phase does not mention another phase', () => {
    const optional = { ...GATE, required: false };
    const d = atGate({
      spec: spec(phase('p1', [make('a')], optional), phase('p2', [make('b')], { reviewer: 'manual' })),
    });
    judged(d, 'fail');
    d.work();
    expect(d.acknowledge('fail').success).toBe(true);
    expect(d.next().data?.next_step).toMatchObject({ type: 'address_fidelity_feedback', phase_id: 'p2', findings: [] });
  });
});

describe('S3-35 S3-36 C71 F11: how often a gate may fail', () => {
  test('three times by default: three reviews, two rounds of feedback, and then a person decides', () => {
    const d = atGate();
    d.verdict = 'fail';
    const stepTypes: (string | null)[] = [d.outstanding.type];
    while (d.session.status === 'running') stepTypes.push(typeOf(d.work()));
    expect(stepTypes).toEqual([
      'run_fidelity_gate',
      'address_fidelity_feedback',
      'run_fidelity_gate',
      'address_fidelity_feedback',
      'run_fidelity_gate',
      'pause',
    ]);
    expect(d.session).toMatchObject({ pause_reason: 'fidelity_cycle_limit', gate_attempts: 3, cycles: { count: 3 } });
    expect(d.next().data).toMatchObject({
      loop_signal: 'paused_needs_attention',
      pause_reason: 'fidelity_cycle_limit',
      recommended_actions: [{ action: 'escalate_fidelity_cycle_limit' }],
    });
  });

  test.each([1, 2, 5])('%d times if that is the limit', (max_fidelity_review_cycles_per_phase) => {
    const d = atGate({ limits: { max_fidelity_review_cycles_per_phase } });
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
    expect(d.session).toMatchObject({
      pause_reason: 'fidelity_cycle_limit',
      gate_attempts: max_fidelity_review_cycles_per_phase,
    });
  });

  test('is counted for each phase separately', () => {
    const d = atGate();
    judged(d, 'fail');
    d.work();
    judged(d, 'fail');
    d.work();
    judged(d, 'pass');
    expect(d.session.cycles).toEqual({ phase_id: 'p2', count: 0 });
    d.work();
    expect(typeOf(judged(d, 'fail'))).toBe('address_fidelity_feedback');
    expect(d.session.cycles).toEqual({ phase_id: 'p2', count: 1 });
  });

  test('restarts after a maintainer has resumed the session', () => {
    const d = atGate();
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
    expect(codeOf(d.resume({}, RUNNER))).toBe('AUTHORIZATION');
    d.resume();
    expect(typeOf(d.next())).toBe('address_fidelity_feedback');
    d.work();
    expect(typeOf(judged(d, 'fail'))).toBe('address_fidelity_feedback');
    expect(d.session.cycles.count).toBe(1);
  });
});

describe('C71: without auto_retry', () => {
  const failed = () => {
    const d = atGate({ settings: { auto_retry_fidelity_gate: false } });
    return { d, answer: judged(d, 'fail') };
  };

  test('a failed gate pauses the session as gate_failed', () => {
    const { d, answer } = failed();
    expect(reasonOf(answer)).toBe('gate_failed');
    expect(d.session.pause_reason).toBe('gate_failed');
    expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['review_gate_findings']);
  });

  test('the gate is reviewed again whenever a maintainer resumes the session', () => {
    const { d } = failed();
    for (let i = 0; i < 5; i += 1) {
      expect(codeOf(d.resume({}, RUNNER))).toBe('AUTHORIZATION');
      d.resume();
      expect(typeOf(d.next())).toBe('run_fidelity_gate');
      expect(reasonOf(judged(d, 'fail'))).toBe('gate_failed');
    }
    d.resume();
    d.next();
    expect(typeOf(judged(d, 'pass'))).toBe('implement_task');
  });

  test('F2: a gate that was waived during the pause is not reviewed again', () => {
    const { d } = failed();
    d.waive('p1');
    d.resume();
    expect(gateOf(d)?.status).toBe('waived');
    expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
  });
});

test('C71 F3: a gate that is not retried automatically is reviewed again after its cycle limit was reset', () => {
  const limits = { max_fidelity_review_cycles_per_phase: 1 };
  const d = atGate({ limits, settings: { auto_retry_fidelity_gate: false } });
  expect(reasonOf(judged(d, 'fail'))).toBe('fidelity_cycle_limit');
  d.resume();
  expect(typeOf(d.next())).toBe('run_fidelity_gate');
});
