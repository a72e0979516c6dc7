// Verifications: the platform runs the command itself and reports the result; an agent can only pass its receipt on
// (C67, C68).

import { describe, expect, test } from '@jest/globals';
import { isRecordedInput } from '../../../../src/core/contract/validators.js';
import type { Json, JsonObject } from '../../../../src/core/contract/json.js';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { RUN_VERIFICATION } from '../../../../src/features/sessions/rules/checks.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import { SESSION, SessionDriver, without, type SessionOptions } from '../../../fixtures/session.js';

const PROGRAM = ['npm', 'run', 'check', '--', 'a b; rm -rf /'];
const CHECKED = spec(
  phase('p', [
    make('a'),
    verify('v1', [], { command: PROGRAM, cwd: '/sandbox/app', timeout_seconds: 7 }),
    verify('v2', [], { command: PROGRAM }),
  ]),
);

/** A session whose first verification is outstanding. */
function verifying(limits: SessionOptions['limits'] = { max_refused_reports: 100 }): SessionDriver {
  const d = new SessionDriver({ spec: CHECKED, limits }).start();
  d.next();
  d.work();
  return d;
}

const errorOf = ({ error }: SessionAnswer) => error && { code: error.code, details: error.details };
const invalid = (...details: string[]) => ({ code: 'ERROR_VERIFICATION_RECEIPT_INVALID', details });

function expectRefused(d: SessionDriver, report: JsonObject, code: string, details: readonly string[]): void {
  const { step } = d.outstanding;
  const answer = d.next(report);
  expect(errorOf(answer)).toEqual({ code, details });
  expect(answer.data?.loop_signal).toBe('blocked_runtime');
  expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['regenerate_verification_receipt']);
  expect(d.outstanding.step).toEqual(step);
  expect(d.session.tasks).toEqual({ a: 'completed' });
}

describe('S3-23: verify', () => {
  test("runs the spec's command once, as a run of its own, and answers when that run has ended", () => {
    const d = verifying();
    const { step } = d.outstanding;
    expect(step.instruction).toContain(JSON.stringify(PROGRAM));
    expect(step.instructions.map(({ tool, action }) => `${tool} ${action}`)).toContain('verification execute');
    expect(d.ask({ name: 'verify', step_id: step.step_id })).toBeNull();
    expect(d.checking).toMatchObject({
      run_id: `${SESSION}.1.3`,
      effect: {
        action: RUN_VERIFICATION,
        args: { step_id: step.step_id, task_id: 'v1', command: PROGRAM, cwd: '/sandbox/app', timeout_ms: 7_000 },
      },
    });
    expect(d.created(`${SESSION}.1.3`)).toMatchObject({ run_kind: 'tool_gateway', lane_id: 'SESSION_CHECKS' });
    expect(d.checked().success).toBe(true);
    expect(d.tree.pending).toEqual([]);
  });

  test('runs in the sandbox, for five minutes, by default', () => {
    const d = verifying();
    d.work();
    d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
    expect(d.checking.effect.args).toMatchObject({ task_id: 'v2', cwd: '/sandbox/', timeout_ms: 300_000 });
  });

  test('has no parameter for another command: an input with one is invalid', () => {
    const d = verifying();
    const step_id = d.outstanding.step.step_id;
    d.ask({ name: 'verify', step_id });
    const { recorded } = d.inputs.at(-1)!;
    expect(isRecordedInput(recorded)).toBe(true);
    for (const more of [{ command: ['true'] }, { cwd: '/' }, { timeout_seconds: 1 }, { task_id: 'v2' }]) {
      expect(isRecordedInput({ ...recorded, command: { name: 'verify', step_id, ...more } })).toBe(false);
    }
  });

  test('of another step, or without an outstanding one, is a mismatch, and no command runs', () => {
    const d = verifying();
    for (const step_id of [`${SESSION}-s1`, `${SESSION}-s3`, 'x']) {
      expect(errorOf(d.tell({ name: 'verify', step_id }))).toEqual({ code: 'STEP_MISMATCH', details: ['step_id'] });
    }
    const other = new SessionDriver({ spec: CHECKED }).start();
    const nothing = { code: 'STEP_MISMATCH', details: ['no verification is outstanding'] };
    expect(errorOf(other.tell({ name: 'verify', step_id: `${SESSION}-s1` }))).toEqual(nothing);
    other.next();
    expect(errorOf(other.tell({ name: 'verify', step_id: `${SESSION}-s1` }))).toEqual(nothing);
    expect([...d.commands, ...other.commands]).toEqual([]);
  });

  test('while one is in flight is rejected as busy, and so is a report; neither counts as a rejected report', () => {
    const d = verifying();
    const { step_id } = d.outstanding.step;
    d.check();
    const report = d.report();
    d.ask({ name: 'verify', step_id });
    const { state_version } = d.session;
    expect(d.tell({ name: 'verify', step_id }).error?.code).toBe('AGENT_BUSY');
    expect(d.next(d.report('skipped')).error?.code).toBe('AGENT_BUSY');
    expect(d.session).toMatchObject({ state_version, outstanding: { refused: 0 } });
    d.checked();
    // The receipt of an earlier run differs from that of this one.
    expect(errorOf(d.next(report))).toEqual(invalid('issued_at'));
    expect(d.next(d.report()).success).toBe(true);
  });

  test('again makes the earlier receipt worthless, whatever its result', () => {
    const d = verifying();
    d.check();
    const report = d.report();
    d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
    d.checkFails();
    expectRefused(d, report, 'ERROR_VERIFICATION_RECEIPT_INVALID', ['no verification was run for this step']);
  });
});

describe('S3-24 S3-28: the receipt', () => {
  test('is issued by the platform for what it ran, and bound to the step', () => {
    const d = verifying();
    const answer = d.check();
    const receipt = {
      command_hash: 'c'.repeat(64),
      exit_code: 0,
      output_digest: 'd'.repeat(64),
      issued_at: d.inputs.at(-1)?.recorded.time,
      step_id: d.outstanding.step.step_id,
    };
    expect(receipt.issued_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(answer.data).toMatchObject({ verification_receipt: receipt, output: 'v20\n' });
    expect(d.bodies('session_event').at(-1)).toMatchObject({
      event: 'verification',
      task_id: 'v1',
      run_id: `${SESSION}.1.3`,
      detail: receipt,
    });
  });

  test.each<readonly [string, JsonObject]>([
    ['no exit code', { exit_code: null }],
    ['an exit code that is not a number', { exit_code: '0' }],
    ['an exit code that no program has', { exit_code: 256 }],
    ['a negative exit code', { exit_code: -1 }],
    ['half an exit code', { exit_code: 0.5 }],
    ['an invalid hash', { command_hash: 'C'.repeat(64) }],
    ['no digest', { output_digest: '' }],
  ])('is not issued for a result with %s', (_what, wrong) => {
    const d = verifying();
    d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
    expect(d.checked(wrong).error?.code).toBe('CHECK_FAILED');
    expect(d.outstanding.receipt).toBeNull();
  });

  test('comes with the output as text, if there is any', () => {
    for (const [output, told] of [
      ['\ud800x', '\ufffdx'],
      [7, null],
      ['', ''],
    ] as const) {
      const d = verifying();
      d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
      expect(d.checked({ output }).data?.output).toBe(told);
    }
  });

  test('survives a pause', () => {
    const d = verifying();
    d.check();
    const report = d.report();
    d.pause();
    d.resume();
    expect(d.next(report).success).toBe(true);
  });
});

describe('a verification without a result', () => {
  test('is reported, and can be requested again', () => {
    const d = verifying();
    const { step_id } = d.outstanding.step;
    d.ask({ name: 'verify', step_id });
    expect(d.checkFails()).toMatchObject({
      success: false,
      error: { code: 'CHECK_FAILED' },
      data: { loop_signal: null },
    });
    expect(d.bodies('session_event').at(-1)).toMatchObject({
      event: 'check_failed',
      step_id,
      detail: { kind: 'verify' },
    });
    expect(d.work().success).toBe(true);
  });

  test('pauses the session at the third time, so that no loop requests it forever', () => {
    const d = verifying({});
    const { step_id } = d.outstanding.step;
    const answers = [1, 2, 3].map(() => {
      d.ask({ name: 'verify', step_id });
      return d.checkFails();
    });
    expect(answers.map(({ data }) => data?.status)).toEqual(['running', 'running', 'paused']);
    expect(answers[2]).toMatchObject({ error: { code: 'CHECK_FAILED' }, data: { pause_reason: 'blocked' } });
    d.resume();
    expect(d.work()).toMatchObject({ success: true, data: { next_step: { task_id: 'v2' } } });
  });
});

describe('S3-25: a report without a receipt', () => {
  test.each(['success', 'failure'] as const)('of %s is rejected, run or not', (outcome) => {
    for (const run of [false, true]) {
      const d = verifying();
      if (run) d.check();
      const report = without(d.report(outcome), 'verification_receipt');
      expectRefused(d, report, 'ERROR_VERIFICATION_RECEIPT_MISSING', []);
      expectRefused(d, { ...report, verification_receipt: null }, 'ERROR_VERIFICATION_RECEIPT_MISSING', []);
    }
  });

  test('C67: is valid for a skipped step; with a receipt it is rejected', () => {
    const d = verifying();
    d.check();
    const receipt = { ...d.outstanding.receipt };
    const report = d.report('skipped', { verification_receipt: receipt });
    expectRefused(d, report, 'ERROR_VERIFICATION_RECEIPT_INVALID', ['outcome skipped takes no receipt']);
    expect(d.next(d.report('skipped')).success).toBe(true);
    expect(d.session.tasks).toEqual({ a: 'completed', v1: 'skipped' });
  });
});

describe('S3-26 F14: a malformed receipt is rejected, and the right one is still accepted:', () => {
  const members = ['command_hash', 'exit_code', 'output_digest', 'issued_at', 'step_id'] as const;
  const wrong: readonly (readonly [string, (receipt: JsonObject) => Json])[] = [
    ...members.map((name) => [`without ${name}`, (receipt: JsonObject) => without(receipt, name)] as const),
    ...members.map((name) => [`${name} is null`, (receipt: JsonObject) => ({ ...receipt, [name]: null })] as const),
    ['with a member more', (receipt) => ({ ...receipt, signature: 'x' })],
    ['with a prototype', (receipt) => JSON.parse(`{"__proto__":{},${JSON.stringify(receipt).slice(1)}`) as JsonObject],
    ['a text', () => 'passed'],
    ['a list of receipts', (receipt) => [receipt]],
  ];

  test.each(wrong)('%s', (_what, change) => {
    const d = verifying();
    d.check();
    const verification_receipt = change({ ...d.outstanding.receipt });
    expectRefused(d, d.report('success', { verification_receipt }), 'ERROR_VERIFICATION_RECEIPT_INVALID', [
      'malformed',
    ]);
    expect(d.next(d.report()).success).toBe(true);
  });
});

describe('C68: a forged receipt is rejected', () => {
  const HEX = 'e'.repeat(64);

  test.each<readonly [string, JsonObject, readonly string[]]>([
    ['in its exit code', { exit_code: 0 }, ['exit_code']],
    ['in its digest', { output_digest: HEX }, ['output_digest']],
    ['in its command', { command_hash: HEX }, ['command_hash']],
    ['in its time, by a later one', { issued_at: '2026-01-01T00:10:00.000Z' }, ['issued_at']],
    ['in its time, by the same in other words', { issued_at: '2026-01-01T00:00:05.000+00:00' }, ['issued_at']],
    ['in its time, without a zone', { issued_at: '2026-01-01T00:00:05' }, ['issued_at']],
    ['in its step', { step_id: `${SESSION}-s1` }, ['step_id']],
    [
      'in all of it',
      { exit_code: 0, output_digest: HEX, command_hash: HEX },
      ['command_hash', 'exit_code', 'output_digest'],
    ],
  ])('%s', (_how, forged, details) => {
    const d = verifying();
    d.exit_code = 1;
    d.check();
    const verification_receipt = { ...d.outstanding.receipt, ...forged };
    expectRefused(d, d.report('success', { verification_receipt }), 'ERROR_VERIFICATION_RECEIPT_INVALID', details);
    expect(d.next(d.report('failure')).success).toBe(true);
    expect(d.session.tasks).toEqual({ a: 'completed' });
  });

  test('F6: if no command ran and the agent has made it up', () => {
    const d = verifying();
    const step_id = d.outstanding.step.step_id;
    const issued_at = '2026-01-01T00:00:04.000Z';
    const verification_receipt = { command_hash: HEX, exit_code: 0, output_digest: HEX, issued_at, step_id };
    const why = ['no verification was run for this step'];
    expectRefused(d, d.report('success', { verification_receipt }), 'ERROR_VERIFICATION_RECEIPT_INVALID', why);
  });

  test('if it belongs to another step with the same command', () => {
    const d = verifying();
    d.check();
    const verification_receipt = { ...d.outstanding.receipt };
    d.next(d.report());
    d.exit_code = 1;
    d.check();
    expect(d.outstanding.step.task_id).toBe('v2');
    const stolen = d.report('success', { verification_receipt });
    expect(errorOf(d.next(stolen))).toEqual(invalid('exit_code', 'issued_at', 'step_id'));
    const renamed = { ...verification_receipt, step_id: d.outstanding.step.step_id };
    expect(errorOf(d.next({ ...stolen, verification_receipt: renamed }))).toEqual(invalid('exit_code', 'issued_at'));
    expect(d.session.tasks).toEqual({ a: 'completed', v1: 'completed' });
  });
});

describe('C67 F5: outcome and exit code must agree', () => {
  test.each([
    ['success', 0, true],
    ['success', 1, false],
    ['success', 124, false],
    ['success', 255, false],
    ['failure', 0, false],
    ['failure', 1, true],
    ['failure', 124, true],
    ['failure', 255, true],
  ] as const)('%s with %d: %s', (outcome, exit_code, taken) => {
    const d = verifying();
    d.exit_code = exit_code;
    d.check();
    if (!taken) {
      expectRefused(d, d.report(outcome), 'ERROR_VERIFICATION_RECEIPT_INVALID', ['outcome contradicts exit_code']);
      return;
    }
    expect(d.next(d.report(outcome)).success).toBe(true);
    expect(d.session.tasks).toEqual(outcome === 'success' ? { a: 'completed', v1: 'completed' } : { a: 'completed' });
    expect(d.session.counters.consecutive_errors).toBe(outcome === 'success' ? 0 : 1);
  });
});
