// The members of `last_step_result`. A rejected report gets the code of the first check that it fails, and leaves its
// step outstanding: after every rejection here, the correct report is still accepted.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import { VerificationReceipt, type ReportedStepType } from '../../../../src/features/sessions/contract/session.js';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { isConforming } from '../../../../src/core/contract/validators.js';
import { receiveReport } from '../../../../src/features/sessions/session-inputs.js';
import { judgeReport, StepReport } from '../../../../src/features/sessions/rules/judge-report.js';
import { TIME } from '../../../fixtures/entries.js';
import { CASE } from '../../../fixtures/tree.js';
import { SESSION, SessionDriver, without } from '../../../fixtures/session.js';

/** A session with an outstanding step of this type, and everything that its report needs. */
function at(type: ReportedStepType): SessionDriver {
  const d = new SessionDriver({ limits: { max_refused_reports: 100 } }).start();
  d.next();
  d.verdict = type === 'address_fidelity_feedback' ? 'fail' : 'pass';
  while (d.outstanding.type !== type) d.work();
  if (type === 'execute_verification' || type === 'run_fidelity_gate') d.check();
  return d;
}

const TYPES = ['implement_task', 'execute_verification', 'run_fidelity_gate', 'address_fidelity_feedback'] as const;

const EVERY = {
  step_id: 'VALIDATION_ERROR',
  step_type: 'VALIDATION_ERROR',
  outcome: 'VALIDATION_ERROR',
  step_proof: 'STEP_PROOF_MISSING',
} as const;
const [OF_A_TASK, OF_A_PHASE] = [{ task_id: 'VALIDATION_ERROR' }, { phase_id: 'VALIDATION_ERROR' }] as const;
/** S3-22, S3-27, S3-33, S3-37: the required members of each type, and the code for each missing one. */
const NEEDED: Readonly<Record<ReportedStepType, Readonly<Record<string, string>>>> = {
  implement_task: { ...EVERY, ...OF_A_TASK },
  execute_verification: { ...EVERY, ...OF_A_TASK, verification_receipt: 'ERROR_VERIFICATION_RECEIPT_MISSING' },
  run_fidelity_gate: { ...EVERY, ...OF_A_PHASE, gate_attempt_id: 'VALIDATION_ERROR' },
  address_fidelity_feedback: { ...EVERY, ...OF_A_PHASE },
};

const errorOf = ({ error }: SessionAnswer) => error && { code: error.code, details: error.details };

/**
 * Expects that the report is rejected with this code, that the session is unchanged, and that the correct report is
 * still accepted.
 */
function expectRefused(d: SessionDriver, report: unknown, code: string, details?: readonly string[]): void {
  const before = d.session;
  const right = d.report();
  const answer = d.next(report);
  expect(errorOf(answer)).toEqual({ code, details: details ?? (expect.anything() as never) });
  const { outstanding, ...rest } = d.session;
  expect({ ...rest, state_version: before.state_version, outstanding: before.outstanding }).toEqual(before);
  expect(outstanding).toEqual({ ...before.outstanding, refused: (before.outstanding?.refused ?? 0) + 1 });
  expect(d.next(right).success).toBe(true);
  expect(d.session.counters.steps_executed).toBe(before.counters.steps_executed + 1);
}

describe.each(TYPES)('S3-02 S3-04 S3-06: a report of %s', (type) => {
  test('with exactly the required members is accepted, and its step ends', () => {
    const d = at(type);
    const report = d.report();
    expect(Object.keys(report).sort()).toEqual(Object.keys(NEEDED[type]).sort());
    const answer = d.next(report);
    expect(answer).toMatchObject({ success: true, error: null });
    expect(d.session.last_step_id).not.toBe(report['step_id']);
  });

  test.each(Object.entries(NEEDED[type]))('S3-22 S3-27 S3-33 S3-37: is rejected without %s: %s', (name, code) => {
    const d = at(type);
    expectRefused(d, without(d.report(), name), code);
  });

  test.each(Object.entries(NEEDED[type]))('is rejected if %s is null, as if it were absent', (name, code) => {
    const d = at(type);
    expectRefused(d, { ...d.report(), [name]: null }, code);
  });

  test('S3-08: is rejected with the id of another step', () => {
    const d = at(type);
    expectRefused(d, d.report('success', { step_id: `${SESSION}-s99` }), 'STEP_MISMATCH', ['step_id']);
  });

  test('S3-08: is rejected as a report of any other type', () => {
    for (const step_type of TYPES.filter((other) => other !== type)) {
      const d = at(type);
      const report = { ...d.report(), step_type, task_id: 'task-1-1', phase_id: 'phase-1', gate_attempt_id: 'g' };
      expect(errorOf(d.next(report))).toMatchObject({
        code: 'STEP_MISMATCH',
        details: expect.arrayContaining(['step_type']),
      });
    }
  });

  test('S3-10 S3-11: is rejected if it names another task or phase, required or not', () => {
    for (const wrong of [{ task_id: 'task-2-1' }, { phase_id: 'phase-2' }]) {
      const d = at(type);
      expectRefused(d, d.report('success', wrong), 'STEP_MISMATCH', Object.keys(wrong));
    }
  });

  test('may name its own phase', () => {
    const d = at(type);
    expect(d.next(d.report('success', { phase_id: 'phase-1' })).success).toBe(true);
  });

  test('S3-13: may have a note and files, up to their limits', () => {
    const files_touched = Array.from({ length: 1_000 }, (_, i) => `f${i}.md`);
    const longest = { note: 'é'.repeat(8_000), files_touched: ['x'.repeat(1_024)] };
    for (const more of [{ note: '', files_touched: [] }, { files_touched }, longest]) {
      const d = at(type);
      expect(d.next(d.report('success', more)).success).toBe(true);
    }
  });

  test.each<readonly [string, JsonObject, string]>([
    ['a note that is too long', { note: 'x'.repeat(8_001) }, 'note'],
    ['a note that is not a text', { note: ['x'] }, 'note'],
    ['files that are a text', { files_touched: 'a.md' }, 'files_touched'],
    ['a file without a name', { files_touched: [''] }, 'files_touched'],
    ['a file that is not a text', { files_touched: [{}] }, 'files_touched'],
    ['a name that is too long', { files_touched: ['x'.repeat(1_025)] }, 'files_touched'],
    ['too many files', { files_touched: Array.from({ length: 1_001 }, () => 'a') }, 'files_touched'],
    ['a list for a task', { task_id: ['task-1-1'] }, 'task_id'],
    ['a list for a phase', { phase_id: ['phase-1'] }, 'phase_id'],
    ['a list for a step', { step_id: [`${SESSION}-s1`] }, 'step_id'],
    ['an id that is too long', { step_id: 's'.repeat(161) }, 'step_id'],
    ['an empty id', { gate_attempt_id: '' }, 'gate_attempt_id'],
  ])('S3-13: is rejected with %s', (_what, wrong, name) => {
    const d = at(type);
    const details = [`${name} is missing or malformed`];
    expectRefused(d, d.report('success', wrong), 'VALIDATION_ERROR', details);
  });

  test.each(['pass', 'Success', 'SUCCESS', ' success', 'done', '', 'toString', 0, true, ['success'], {}])(
    'S3-15 F16: is rejected with the outcome %j',
    (outcome) => {
      const d = at(type);
      expectRefused(d, { ...d.report(), outcome }, 'VALIDATION_ERROR', ['outcome is missing or malformed']);
    },
  );

  test.each(['pause', 'complete_spec', 'constructor', '__proto__', ['implement_task'], 7])(
    'S3-03: is rejected with the step type %j, which has no report',
    (step_type) => {
      const d = at(type);
      const { error } = d.next({ ...d.report(), step_type });
      expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: ['step_type is missing or malformed'] });
    },
  );
});

describe('S3-05: the simple report', () => {
  test.each(TYPES)('for %s is rejected because its proof is missing, and does not consume the proof', (type) => {
    const d = at(type);
    const { step_id, step_type, outcome } = d.report();
    expectRefused(d, { step_id, step_type, outcome, note: 'done' }, 'STEP_PROOF_MISSING', []);
  });
});

describe('members of only one step type', () => {
  test.each(TYPES.filter((type) => type !== 'run_fidelity_gate'))('S3-12: %s must not have a gate attempt', (type) => {
    const d = at(type);
    expectRefused(d, d.report('success', { gate_attempt_id: `${SESSION}-g1` }), 'STEP_MISMATCH', ['gate_attempt_id']);
  });

  test.each(TYPES.filter((type) => type !== 'execute_verification'))('S3-14: %s must not have a receipt', (type) => {
    const receipt = at('execute_verification').outstanding.receipt;
    const d = at(type);
    const report = d.report('success', { verification_receipt: { ...receipt } });
    expectRefused(d, report, 'ERROR_VERIFICATION_RECEIPT_INVALID', [`${type} takes no receipt`]);
  });
});

test('a null member counts as absent, also if it was recorded as null', () => {
  const d = at('implement_task');
  const facts = { proof_sha256: d.outstanding.proof_sha256, evidence_intact: null, time: TIME };
  const report = without(d.report(), 'step_proof');
  const judged = [report, { ...report, note: null, phase_id: null, surprise: null }].map((value) =>
    judgeReport(d.session, value, facts),
  );
  expect(judged[0]?.kind).toBe('taken');
  expect(judged[1]).toEqual(judged[0]);
});

test('all mistakes of form are reported at once, by the names of the contract', () => {
  const d = at('run_fidelity_gate');
  const wrong = {
    step_type: 'run_fidelity_gate',
    outcome: 'pass',
    note: 7,
    files_touched: {},
    evil: 1,
    step_proof: 'x',
  };
  expectRefused(d, wrong, 'VALIDATION_ERROR', [
    'step_id is missing or malformed',
    'outcome is missing or malformed',
    'note is missing or malformed',
    'files_touched is missing or malformed',
    'unknown members',
    'phase_id is required',
    'gate_attempt_id is required',
  ]);
});

describe('a hostile report', () => {
  const PLANTED = 'planted-by-the-agent';

  test.each<readonly [string, string]>([
    ['an unknown member', `"${PLANTED}":1`],
    ['a prototype', `"__proto__":{"outcome":"success"}`],
    ['a constructor', `"constructor":{"prototype":{"outcome":"success"}}`],
    ['a method', '"hasOwnProperty":null,"toString":"x"'],
    ['a getter by name', '"get step_id":"x"'],
    ['the proof under another name', '"stepProof":"x"'],
  ])('with %s is rejected, and no answer repeats its name', (_what, member) => {
    const d = at('implement_task');
    const text = JSON.stringify(d.report());
    const report = JSON.parse(`${text.slice(0, -1)},${member}}`) as JsonObject;
    const { error } = d.next(report);
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: ['unknown members'] });
    expect(JSON.stringify(d.decisions.at(-1)?.entries)).not.toContain(PLANTED);
    expect(({} as { outcome?: string }).outcome).toBeUndefined();
    expect(d.next(d.report()).success).toBe(true);
  });

  test.each<readonly [string, unknown]>([
    ['a list', []],
    ['a text', 'success'],
    ['a number', 7],
    ['too deep', { verification_receipt: nested(9) }],
    ['too large', { note: 'x'.repeat(131_072) }],
    ['half a surrogate pair', { note: '\ud800' }],
    ['half a surrogate pair for a name', { ['\udc00']: 1 }],
    ['not JSON', { note: Number.NaN }],
    ['a bigint', { note: 1n }],
    ['a function', { note: () => 'x' }],
    ['a cycle', circle()],
    ['a hole in a list', { files_touched: new Array(3) }],
  ])('that is %s does not count as a report: none of it is recorded', (_what, report) => {
    expect(receiveReport(report, CASE)).toBeNull();
    const d = at('implement_task');
    const inputs = d.inputs.length;
    expect(errorOf(d.next(report))).toEqual({ code: 'VALIDATION_ERROR', details: ['last_step_result'] });
    expect(d.inputs).toHaveLength(inputs);
  });

  test.each(['', ['a'], 7, {}, true, null])('with the proof %j counts as having no proof', (step_proof) => {
    const d = at('implement_task');
    expectRefused(d, { ...d.report(), step_proof }, 'STEP_PROOF_MISSING', []);
  });

  test('with arbitrary file names: the names are counted, and no answer repeats them', () => {
    const d = at('implement_task');
    const files_touched = ['/etc/passwd', '../../x', `${PLANTED}.md`, '__proto__', '\u0000'];
    expect(d.next(d.report('success', { files_touched })).success).toBe(true);
    const consumed = d.bodies('session_event').find(({ event }) => event === 'step_consumed');
    expect(consumed?.detail).toMatchObject({ mediation: 'unmediated', files_claimed: 5, files_unseen: 5 });
    expect(JSON.stringify(d.entries)).not.toContain(PLANTED);
  });
});

function nested(depth: number): unknown {
  return depth === 0 ? 1 : { a: nested(depth - 1) };
}

function circle(): unknown {
  const round: Record<string, unknown> = {};
  return Object.assign(round, { round });
}

const TASK = { step_id: 'step-abc123', outcome: 'success', task_id: 'task-1-1', step_proof: 'proof-xyz789' };
const PHASE = { step_id: 'step-abc123', outcome: 'success', phase_id: 'phase-1', step_proof: 'proof-xyz789' };
const RECEIPT = { exit_code: 0, issued_at: '2026-01-15T10:30:00+00:00', step_id: 'step-abc123' };
const SHORT = { command_hash: 'a1b2c3...', output_digest: 'd4e5f6...' };
const EXAMPLES: Readonly<Record<ReportedStepType, JsonObject>> = {
  implement_task: { ...TASK, note: 'Created hello.py with main function', files_touched: ['hello.py'] },
  execute_verification: { ...TASK, verification_receipt: { ...RECEIPT, ...SHORT } },
  run_fidelity_gate: { ...PHASE, gate_attempt_id: 'gate-abc123' },
  address_fidelity_feedback: { ...PHASE, files_touched: ['src/utils.py', 'tests/test_utils.py'] },
};

test.each(TYPES)('S3-41: the example of %s has a valid form, and only its placeholders are refused', (step_type) => {
  const example = { ...EXAMPLES[step_type], step_type };
  expect(isConforming(StepReport, without(example, 'step_proof'))).toBe(true);
  expect(Object.keys(example)).toEqual(expect.arrayContaining(Object.keys(NEEDED[step_type])));
  expectRefused(at(step_type), example, 'STEP_PROOF_MISMATCH', []);
  const d = at(step_type);
  expect(d.next({ ...example, ...without(d.report(), 'outcome') }).success).toBe(true);
});

test('S3-28 S3-41: the example of a receipt is valid, apart from its shortened hashes', () => {
  expect(isConforming(VerificationReceipt, { ...RECEIPT, ...SHORT })).toBe(false);
  const hash = 'a'.repeat(64);
  expect(isConforming(VerificationReceipt, { ...RECEIPT, command_hash: hash, output_digest: hash })).toBe(true);
});
