// A session that continues with another version of its spec: the new spec's checks all run, and nothing blocks it.

import { describe, expect, test } from '@jest/globals';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import type { SessionSpec, SpecGate, SpecTask } from '../../../../src/features/sessions/contract/session-spec.js';
import { MAINTAINER, SessionDriver, type SessionOptions } from '../../../fixtures/session.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';

const GATE: SpecGate = { reviewer: 'callback' };
const two = (first: readonly SpecTask[], gate: SpecGate | undefined = GATE): SessionSpec =>
  spec(phase('p1', first, gate), phase('p2', [make('b'), make('c')]));
const TWO = two([make('a'), verify('v')]);

/** A session whose first phase is complete, paused in the second. */
function startInSecondPhase(options: SessionOptions = {}): SessionDriver {
  const d = new SessionDriver({ spec: TWO, ...options }).start();
  d.next();
  for (let i = 0; i < 3; i += 1) d.work();
  expect(d.outstanding.step.phase_id).toBe('p2');
  d.pause();
  return d;
}
const nextStepOf = ({ data }: SessionAnswer) => [
  data?.next_step?.type,
  data?.next_step?.task_id ?? data?.next_step?.phase_id,
];
const warnings = ({ data }: SessionAnswer) => data?.warnings;

describe('C68: with the same structure, work with changed checks is checked again', () => {
  test.each([
    ['another command', { command: ['node', 'check.mjs'] }],
    ['another folder', { cwd: '/sandbox/app' }],
    ['another time', { timeout_seconds: 7 }],
  ])('a verification with %s, and the gate after it', (_what, other) => {
    const d = startInSecondPhase();
    expect(warnings(d.rebase(two([make('a'), verify('v', undefined, other)])))).toEqual([]);
    expect(d.session).toMatchObject({ tasks: { a: 'completed' }, gates: {} });
    expect(nextStepOf(d.next())).toEqual(['execute_verification', 'v']);
    d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
    const { timeout_seconds, ...same } = { timeout_seconds: 300, ...other };
    expect(d.checking.effect.args).toMatchObject({ ...same, timeout_ms: timeout_seconds * 1_000 });
    d.checked();
    expect(nextStepOf(d.next(d.report()))).toEqual(['run_fidelity_gate', 'p1']);
  });

  test.each<readonly [string, SpecGate, string]>([
    ['another reviewer', { reviewer: 'manual' }, 'gate_review_required'],
    ['a program', { reviewer: 'command', command: ['node', 'review.mjs'] }, 'run_fidelity_gate'],
    ['other words to the reviewer', { ...GATE, instruction: 'Be strict.' }, 'run_fidelity_gate'],
  ])('C72: a gate with %s', (_what, gate, next) => {
    const d = startInSecondPhase();
    d.rebase(two(TWO.phases[0]!.tasks, gate));
    expect(d.session.gates).toEqual({});
    expect(nextStepOf(d.next())).toEqual(['execute_verification', 'v']);
    const { next_step, pause_reason } = d.work().data!;
    expect(pause_reason ?? next_step?.type).toBe(next);
  });

  test('S3-34: a task with another instruction stays completed, and its phase is reviewed under the new instruction', () => {
    const d = startInSecondPhase();
    d.rebase(two([make('a', undefined, { acceptance: ['It rhymes.'] }), verify('v')]));
    expect(d.session).toMatchObject({ tasks: { a: 'completed' }, gates: {} });
    expect(nextStepOf(d.next())).toEqual(['execute_verification', 'v']);
    expect(nextStepOf(d.work())).toEqual(['run_fidelity_gate', 'p1']);
  });

  test('a waiver belongs to the old gate', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    d.next();
    d.pause();
    d.waive('p1');
    d.rebase(two(TWO.phases[0]!.tasks, { ...GATE, instruction: 'Be strict.' }));
    expect(d.session.gates).toEqual({});
  });

  test('titles, hints, lanes, dependencies and explicit defaults are no checks', () => {
    const d = startInSecondPhase();
    const { tasks, gates } = d.session;
    const spelt = verify('v', ['a'], {
      title: 'Other',
      cwd: '/sandbox/',
      timeout_seconds: 300,
      instruction: 'Run it.',
    });
    const answer = d.rebase(two([spelt, make('a', [], { title: 'Other', files: ['x.md'], lane: 'SANDBOX_FILES' })]));
    expect(warnings(answer)).toEqual(['NO_CHANGE']);
    expect(d.session).toMatchObject({ tasks, gates });
    expect(nextStepOf(d.next())).toEqual(['implement_task', 'b']);
  });
});

describe('C73: a reopened skipped task', () => {
  const SKIPPED = two([make('a'), make('s'), verify('v')]);

  test('is done before its phase is verified and reviewed again', () => {
    const d = new SessionDriver({ spec: SKIPPED, settings: { allow_skipped: true } }).start();
    d.next();
    d.work();
    d.work('skipped');
    d.work();
    d.work();
    expect(d.session.gates).toMatchObject({ p1: { status: 'passed' } });
    d.pause();
    expect(warnings(d.rebase(SKIPPED))).toEqual(['NO_CHANGE']);
    expect(d.session).toMatchObject({ tasks: { a: 'completed' }, gates: {} });
    expect(nextStepOf(d.next())).toEqual(['implement_task', 's']);
    expect(nextStepOf(d.work())).toEqual(['execute_verification', 'v']);
    expect(nextStepOf(d.work())).toEqual(['run_fidelity_gate', 'p1']);
  });

  test('makes the completion of its phase a new report', () => {
    const settings = { allow_skipped: true, stop_on_phase_completion: true };
    const d = new SessionDriver({ spec: two([make('a'), make('s')]), settings }).start();
    d.next();
    d.work();
    d.work('skipped');
    d.work();
    expect(d.session).toMatchObject({ pause_reason: 'phase_complete', phases_told: ['p1'] });
    d.rebase(d.session.spec);
    expect(d.session.phases_told).toEqual([]);
    d.next();
    d.work();
    expect(d.work().data?.pause_reason).toBe('phase_complete');
  });
});

describe('a failed gate', () => {
  test('C71: is reviewed again after a rebase: its findings are gone, and no step asks to address them', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    d.next();
    d.work();
    d.work();
    d.verdict = 'fail';
    expect(nextStepOf(d.work())).toEqual(['address_fidelity_feedback', 'p1']);
    d.pause();
    expect(warnings(d.rebase(TWO))).toEqual(['NO_CHANGE']);
    expect(nextStepOf(d.next())).toEqual(['run_fidelity_gate', 'p1']);
  });

  test.each<readonly [string, SessionOptions]>([
    ['by the spec', { spec: two([make('a'), verify('v')], { ...GATE, required: false }) }],
    ['by the settings', { settings: { enforce_gates: false } }],
  ])('that need not pass, %s, is not reviewed again if another phase has changed', (_how, options) => {
    const d = new SessionDriver({ spec: TWO, ...options }).start();
    d.verdict = 'fail';
    d.next();
    for (let i = 0; i < 3; i += 1) d.work();
    d.pause();
    const { spec: before, gates } = d.session;
    const [first] = before.phases;
    d.rebase(spec(first!, phase('p2', [make('b'), make('c'), make('d')])));
    expect(d.session).toMatchObject({ gates, tasks: { a: 'completed', v: 'completed' } });
    expect(nextStepOf(d.next())).toEqual(['implement_task', 'b']);
  });
});

test('a session reads the file that it was rebased to, and no file after a rebase to a document', () => {
  const d = startInSecondPhase();
  d.rebase(TWO, false, '/specs/moved.json');
  expect(d.session.spec_file).toBe('/specs/moved.json');
  d.tell({ name: 'pause', reason: null }, MAINTAINER);
  d.rebase(TWO);
  expect(d.session.spec_file).toBeNull();
});
