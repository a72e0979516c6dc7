// Gates that a person reviews, that are waived, or that are not required.

import { describe, expect, test } from '@jest/globals';
import { auditGates } from '../../../../src/features/sessions/rules/task-progress.js';
import { GATE, GATED, gatedBy, atGate, typeOf, codeOf, gateOf, events, judged } from '../../../fixtures/gated.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { RUNNER, SESSION, SessionDriver, type SessionOptions } from '../../../fixtures/session.js';

describe('C72 F1: a gate that a person reviews', () => {
  const waiting: readonly (readonly [string, SessionOptions])[] = [
    ['after a review, by policy', { settings: { gate_policy: 'manual' } }],
    ['by the spec', { spec: spec(phase('p1', [make('a')], { reviewer: 'manual' }), phase('p2', [make('b')], GATE)) }],
  ];
  const at = (options: SessionOptions): SessionDriver => {
    const d = atGate(options);
    if (d.session.status === 'running') d.work();
    return d;
  };

  describe.each(waiting)('%s', (_how, options) => {
    test('pauses the session, and every answer names the attempt', () => {
      const d = at(options);
      const { ack } = d.session;
      expect(ack).toEqual({ gate_attempt_id: `${SESSION}-g1`, phase_id: 'p1' });
      expect(d.next().data).toMatchObject({
        pause_reason: 'gate_review_required',
        loop_signal: 'paused_needs_attention',
        next_step: { type: 'pause', reason: 'gate_review_required', instruction: expect.stringContaining('-g1') },
        recommended_actions: [{ action: 'acknowledge_manual_gate_review' }],
      });
      expect(d.bodies('session_event').at(-1)).toMatchObject({ event: 'pause', detail: { ...ack } });
    });

    test('stays pending after a plain resume, an acknowledgement of another attempt, or one by an agent', () => {
      const d = at(options);
      const { session } = d;
      expect(d.resume().error).toMatchObject({ code: 'MANUAL_GATE_ACK_REQUIRED', details: [`${SESSION}-g1`] });
      const acknowledge = { gate_attempt_id: `${SESSION}-g2`, decision: 'pass' } as const;
      expect(codeOf(d.resume({ acknowledge }))).toBe('INVALID_GATE_ACK');
      expect(codeOf(d.acknowledge('pass', RUNNER))).toBe('AUTHORIZATION');
      expect(codeOf(d.acknowledge('pass', { ...RUNNER, role: 'observer' }))).toBe('AUTHORIZATION');
      expect(d.session).toEqual(session);
    });

    test('lets the session continue after a pass', () => {
      const d = at(options);
      expect(d.acknowledge('pass')).toMatchObject({
        success: true,
        data: { status: 'running', satisfied_gates: ['p1'] },
      });
      expect(events(d)).toEqual(expect.arrayContaining(['gate_acknowledged', 'gate_passed', 'resume']));
      expect(d.session).toMatchObject({ ack: null, evidence: null });
      expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
    });

    test('requests feedback after a fail, and is reviewed again', () => {
      const d = at(options);
      d.acknowledge('fail');
      expect(gateOf(d)?.status).toBe('failed');
      expect(typeOf(d.next())).toBe('address_fidelity_feedback');
      d.work();
      if (d.session.status === 'running') d.work();
      expect(d.session).toMatchObject({
        pause_reason: 'gate_review_required',
        ack: { gate_attempt_id: `${SESSION}-g2` },
      });
    });

    test('can be waived instead, and then needs no review', () => {
      const d = at(options);
      d.waive('p1');
      expect(d.session.ack).toBeNull();
      expect(d.resume().success).toBe(true);
      expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
    });
  });

  test("keeps the reviewer's findings, whatever the person decides", () => {
    const d = at({ settings: { gate_policy: 'manual' } });
    d.acknowledge('pass');
    expect(gateOf(d)).toMatchObject({ status: 'passed', verdict: 'pass', gate_attempt_id: `${SESSION}-g1` });
    const other = atGate({ settings: { gate_policy: 'manual' } });
    judged(other, 'fail');
    other.acknowledge('pass');
    expect(gateOf(other)).toMatchObject({ status: 'passed', verdict: 'fail' });
    expect(auditGates(other.session, 'p1')).toEqual([]);
  });

  test('is requested even if another cause has paused the session first', () => {
    const d = atGate({ settings: { gate_policy: 'manual' } });
    d.check();
    d.next(d.report(), { context_usage_pct: 99 });
    expect(d.session).toMatchObject({ pause_reason: 'context_limit', ack: { phase_id: 'p1' } });
    expect(codeOf(d.resume({}, RUNNER))).toBe('MANUAL_GATE_ACK_REQUIRED');
    expect(codeOf(d.acknowledge('pass', RUNNER))).toBe('AUTHORIZATION');
    d.acknowledge('pass');
    expect(typeOf(d.next())).toBe('implement_task');
  });

  test('rejects an acknowledgement if no gate is pending', () => {
    const d = atGate();
    d.pause();
    expect(codeOf(d.acknowledge('pass'))).toBe('INVALID_GATE_ACK');
    expect(d.session.status).toBe('paused');
  });
});

describe('a waiver', () => {
  test('C72: counts as a pass, and records who waived the gate and why', () => {
    const d = atGate();
    d.tell(
      { name: 'waive', phase_id: 'p1', reason_code: 'incident_response', reason_detail: 'see #7' },
      {
        actor: { actor_type: 'human', actor_id: 'anna' },
        role: 'maintainer',
      },
    );
    expect(gateOf(d)).toEqual({
      status: 'waived',
      verdict: null,
      gate_attempt_id: null,
      evaluated_at: null,
      waiver: {
        reason_code: 'incident_response',
        reason_detail: 'see #7',
        at: d.inputs.at(-1)?.recorded.time,
        by: 'anna',
      },
    });
    expect(d.next().data).toMatchObject({ satisfied_gates: ['p1'], next_step: { task_id: 'b' } });
  });

  test.each<readonly [string, string, SessionOptions, string]>([
    ['where the settings forbid it', 'p1', { settings: { allow_gate_waiver: false } }, 'AUTHORIZATION'],
    ['of no phase', 'nowhere', {}, 'NOT_FOUND'],
    ['of a phase without a gate', 'p2', { spec: gatedBy(GATE) }, 'NOT_FOUND'],
    ['of what every object has', 'constructor', {}, 'NOT_FOUND'],
  ])('is rejected %s', (_why, phase_id, options, code) => {
    const d = atGate(options);
    const { session } = d;
    expect(codeOf(d.waive(phase_id))).toBe(code);
    expect(d.session).toEqual(session);
  });

  test('is rejected from any role but maintainer', () => {
    for (const role of ['autonomy_runner', 'observer'] as const) {
      expect(codeOf(atGate().waive('p1', { ...RUNNER, role }))).toBe('AUTHORIZATION');
    }
  });

  test('is rejected for a gate that has passed or was waived', () => {
    const d = atGate();
    judged(d, 'pass');
    expect(codeOf(d.waive('p1'))).toBe('INVALID_STATE_TRANSITION');
    d.waive('p2');
    expect(codeOf(d.waive('p2'))).toBe('INVALID_STATE_TRANSITION');
  });

  test.each(['run_fidelity_gate', 'address_fidelity_feedback'] as const)('revokes an outstanding %s step', (type) => {
    const d = atGate();
    if (type === 'address_fidelity_feedback') judged(d, 'fail');
    expect(d.outstanding.type).toBe(type);
    const report = d.report('success', type === 'run_fidelity_gate' ? { gate_attempt_id: 'g' } : {});
    d.waive('p1');
    expect(d.session).toMatchObject({ outstanding: null, evidence: null });
    expect(
      d
        .bodies('session_event')
        .map(({ event }) => event)
        .slice(-2),
    ).toEqual(['step_revoked', 'gate_waived']);
    expect(codeOf(d.next(report))).toBe('STEP_PROOF_MISMATCH');
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
  });

  test('leaves every other step unchanged', () => {
    const d = new SessionDriver({ spec: GATED }).start();
    d.next();
    const { outstanding } = d;
    d.waive('p1');
    expect(d.outstanding).toEqual(outstanding);
    expect(d.work().data?.next_step).toMatchObject({ task_id: 'b' });
  });

  test('of a gate under review discards the result of that review', () => {
    const d = atGate();
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    d.waive('p1');
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
    expect(codeOf(d.checked())).toBe('CHECK_FAILED');
    expect(d.session).toMatchObject({ evidence: null, check: null, outstanding: { refused: 0 } });
    d.work();
    expect(d.outstanding.type).toBe('run_fidelity_gate');
  });
});

describe('a gate that is not required', () => {
  const OPTIONAL = { ...GATE, required: false };
  const cases: readonly (readonly [string, SessionOptions])[] = [
    ['by the spec', { spec: gatedBy(OPTIONAL) }],
    ['by the settings', { spec: gatedBy(GATE), settings: { enforce_gates: false } }],
  ];

  test.each(cases)('%s, is reviewed once and blocks nothing', (_how, options) => {
    for (const verdict of ['pass', 'warn', 'fail'] as const) {
      const d = atGate(options);
      expect(d.outstanding.type).toBe('run_fidelity_gate');
      const answer = judged(d, verdict);
      expect(answer.data).toMatchObject({
        required_phase_gates: [],
        next_step: { type: 'implement_task', task_id: 'b' },
      });
      expect(gateOf(d)?.status).toBe(verdict === 'pass' ? 'passed' : 'failed');
      expect(d.work().data).toMatchObject({ status: 'completed' });
    }
  });

  test.each(cases)('C73: %s, is reviewed although tasks were skipped', (_how, options) => {
    const d = new SessionDriver(options).start();
    d.next();
    expect(typeOf(d.work('skipped'))).toBe('run_fidelity_gate');
  });

  test('is reviewed by a person nevertheless if the policy requires it', () => {
    const d = atGate({ spec: gatedBy(OPTIONAL), settings: { gate_policy: 'manual' } });
    d.work();
    expect(d.session.pause_reason).toBe('gate_review_required');
    d.acknowledge('fail');
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
  });
});

test('C72: a decision on one gate does not mix with the findings of another', () => {
  const first = phase('p1', [make('a')], { ...GATE, required: false });
  const d = atGate({ spec: spec(first, phase('p2', [make('b')], { reviewer: 'manual' })) });
  judged(d, 'fail');
  d.work();
  expect(d.session).toMatchObject({ ack: { phase_id: 'p2' }, evidence: { phase_id: 'p1', verdict: 'fail' } });
  d.acknowledge('pass');
  expect(gateOf(d, 'p2')).toMatchObject({ status: 'passed', verdict: 'pass' });
  expect(d.bodies('session_event').find(({ event }) => event === 'gate_passed')?.detail).toMatchObject({
    verdict: 'pass',
  });
});
