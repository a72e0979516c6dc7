// What gates require, and the audit of all gates before a session completes.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { auditGates } from '../../../../src/features/sessions/rules/task-progress.js';
import { findNextAction } from '../../../../src/features/sessions/rules/next-action.js';
import type { GateRecord, SessionState } from '../../../../src/features/sessions/rules/session-state.js';
import { GATE, GATED, gatedBy, atGate, typeOf, reasonOf } from '../../../fixtures/gated.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import { SessionDriver, type SessionOptions } from '../../../fixtures/session.js';

describe('C73: skipped tasks', () => {
  const SKIPPING = spec(phase('p1', [make('a'), make('b', ['a']), verify('v')], GATE));

  test('prevent the review of a gate, and a rebase reopens them', () => {
    const d = atGate({ spec: spec(phase('p1', [make('a'), make('b')], GATE)) });
    expect(reasonOf(d.work('skipped'))).toBe('blocked');
    d.resume();
    expect(reasonOf(d.next())).toBe('blocked');
    expect(d.rebase(d.session.spec)).toMatchObject({ success: true, data: { warnings: ['NO_CHANGE'] } });
    expect(d.session.tasks).toEqual({ a: 'completed' });
    expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
    d.work();
    expect(d.work().data?.status).toBe('completed');
  });

  test('can be accepted by a waiver, or by the settings', () => {
    const waived = new SessionDriver({ spec: GATED }).start();
    waived.next();
    waived.work('skipped');
    waived.waive('p1');
    waived.resume();
    expect(waived.next().data?.next_step).toMatchObject({ task_id: 'b' });
    const allowed = new SessionDriver({ spec: GATED, settings: { allow_skipped: true } }).start();
    allowed.next();
    expect(typeOf(allowed.work('skipped'))).toBe('run_fidelity_gate');
  });

  test('F10: are not issued again, and block their dependents', () => {
    const d = new SessionDriver({ spec: SKIPPING }).start();
    d.next();
    const answer = d.work('skipped');
    expect(reasonOf(answer)).toBe('blocked');
    expect(d.session.tasks).toEqual({ a: 'skipped' });
    d.resume();
    expect(reasonOf(d.next())).toBe('blocked');
    d.rebase(SKIPPING);
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'a' });
  });
});

describe('the audit of gates', () => {
  const PASSED: GateRecord = {
    status: 'passed',
    verdict: 'pass',
    gate_attempt_id: 'g1',
    evaluated_at: '2026-01-01T00:00:00.000Z',
    waiver: null,
  };
  const WAIVED: GateRecord = {
    ...PASSED,
    status: 'waived',
    waiver: { reason_code: 'testing', reason_detail: null, at: '2026-01-01T00:00:00.000Z', by: 'anna' },
  };
  const state = (gates: SessionState['gates'], options: SessionOptions = {}): SessionState => ({
    ...new SessionDriver({ spec: GATED, ...options }).start().session,
    gates,
    tasks: { a: 'completed' },
  });
  const lenient = { settings: { gate_policy: 'lenient' } } as const;
  const manual = { settings: { gate_policy: 'manual' } } as const;

  test.each<readonly [string, GateRecord | null, SessionOptions, string | null]>([
    ['a pass', PASSED, {}, null],
    ['a waiver', WAIVED, {}, null],
    ['a waiver of a gate that had failed', { ...WAIVED, verdict: 'fail' }, {}, null],
    ['a warning that passes', { ...PASSED, verdict: 'warn' }, lenient, null],
    ['a pass by a person', { ...PASSED, verdict: 'fail' }, manual, null],
    ['nothing', null, {}, 'missing_record'],
    ['a failure', { ...PASSED, status: 'failed', verdict: 'fail' }, {}, 'invalid_status'],
    ['something pending', { ...PASSED, status: 'pending' }, {}, 'invalid_status'],
    ['no status', { ...PASSED, status: 'ok' as never }, {}, 'invalid_status'],
    ['a waiver without a reason', { ...WAIVED, waiver: null }, {}, 'tampered'],
    ['a waiver for no reason', { ...WAIVED, waiver: { ...WAIVED.waiver!, reason_code: 'x' as never } }, {}, 'tampered'],
    ['a waiver that no role may make', WAIVED, { settings: { allow_gate_waiver: false } }, 'tampered'],
    ['a pass without an attempt', { ...PASSED, gate_attempt_id: null }, {}, 'tampered'],
    ['a pass without a verdict', { ...PASSED, verdict: null }, {}, 'tampered'],
    ['a pass with a waiver', { ...PASSED, waiver: WAIVED.waiver }, {}, 'tampered'],
    ['a pass that the verdict denies', { ...PASSED, verdict: 'fail' }, {}, 'tampered'],
    ['a pass that policy denies', { ...PASSED, verdict: 'warn' }, {}, 'tampered'],
    ['a pass that no policy permits', { ...PASSED, verdict: 'fail' }, lenient, 'tampered'],
  ])('finds in %s the expected problems', (_what, record, options, problem) => {
    const gates = record === null ? {} : { p1: record };
    const expected = problem === null ? [] : [{ phase_id: 'p1', problem }];
    expect(auditGates(state(gates, options), 'p1')).toEqual(expected);
  });

  test('checks every phase up to the named one, and all phases for null', () => {
    expect(auditGates(state({}), 'p1')).toHaveLength(1);
    expect(auditGates(state({}), 'p2').map(({ phase_id }) => phase_id)).toEqual(['p1', 'p2']);
    expect(auditGates(state({ p2: PASSED }), null).map(({ phase_id }) => phase_id)).toEqual(['p1']);
  });

  test('requires only what the spec and the settings require', () => {
    expect(auditGates(state({}, { settings: { enforce_gates: false } }), null)).toEqual([]);
    expect(auditGates(state({}, { spec: gatedBy({ ...GATE, required: false }) }), null)).toEqual([]);
  });

  test('F18: is made after a fresh pass too, before the next phase starts and before the spec is complete', () => {
    const d = atGate({ spec: spec(phase('p1', [make('a')], GATE), phase('p2', [verify('v')])) });
    expect(typeOf(d.work())).toBe('execute_verification');
    const { gates } = d.session;
    expect(auditGates(d.session, null)).toEqual([]);
    const tampered = { ...d.session, gates: { p1: { ...gates['p1']!, gate_attempt_id: null } } };
    const calm = { step_was_stale: false, step_was_active: true, heartbeat: 'alive' } as const;
    const refused = { kind: 'refuse', code: 'GATE_AUDIT_FAILURE', details: ['p1: tampered'] };
    expect(findNextAction(tampered, calm)).toEqual(refused);
    const finished = { ...tampered, tasks: { a: 'completed', v: 'completed' } } as const;
    expect(findNextAction(finished, calm)).toEqual(refused);
  });

  test('is not misled by properties that every object inherits', () => {
    const named = spec(phase('constructor', [make('a')], GATE), phase('p2', [make('b')]));
    expect(auditGates(state({}, { spec: named }), null)).toEqual([
      { phase_id: 'constructor', problem: 'missing_record' },
    ]);
  });
});

test('allows ids of tasks and phases that equal inherited property names', () => {
  const names = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf'];
  const d = new SessionDriver({
    spec: spec(
      phase(
        'constructor',
        names.map((name) => make(name)),
        GATE,
      ),
    ),
  }).start();
  let answer = d.next();
  for (let i = 0; i < 6; i += 1) answer = d.work();
  expect(answer.data).toMatchObject({ status: 'completed', satisfied_gates: ['constructor'] });
  const { args } = d.commands.find((command) => command.kind === 'perform')!.effect as { args: JsonObject };
  expect(args['tasks']).toMatchObject(names.map((id) => ({ id, title: `Make ${id}`, status: 'completed' })));
});
