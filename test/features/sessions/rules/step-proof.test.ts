// Step proofs: an agent that reports a step proves that it received the step. One proof, one accepted report.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { stepProof } from '../../../../src/features/sessions/rules/step-proof.js';
import {
  ANSWERS_CHARS_MAX,
  CONSUMED_MAX,
  CONSUMED_MS,
  REPEAT_MS,
} from '../../../../src/features/sessions/rules/session-state.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { proofOf, RUNNER, SESSION, SessionDriver, testSecrets, without } from '../../../fixtures/session.js';

const BLOCKED = { success: false, data: { loop_signal: 'blocked_runtime' } };
const refusedBy = (code: string) => ({ ...BLOCKED, error: { code } });
const codeOf = ({ error }: SessionAnswer): string | null => error?.code ?? null;

/** A session of many tasks, at its first step. */
const startWorking = (tasks = 4, limits = {}): SessionDriver => {
  const ids = Array.from({ length: tasks }, (_, i) => make(`t${i}`));
  const d = new SessionDriver({
    spec: spec(phase('p', ids)),
    limits: { max_tasks_per_session: 1_000, step_stale_minutes: 10_080, heartbeat_stale_minutes: 10_080, ...limits },
  }).start();
  d.next();
  return d;
};

/** The answer to the last input, as sent. */
const lastReply = (d: SessionDriver): string => d.decisions.at(-1)?.replies[0]?.response ?? '';

/** Every driven input takes one second. */
const after = (d: SessionDriver, ms: number): SessionDriver => d.wait(ms - 1_000);

describe('a proof', () => {
  test('S3-07 S3-09: is made with the key of this home for one issue of one step of one session', () => {
    const d = startWorking();
    const { step } = d.outstanding;
    expect(step).toMatchObject({ step_id: `${SESSION}-s1`, type: 'implement_task', issue: 1 });
    const proofs = [
      proofOf(step),
      stepProof(testSecrets, SESSION, step.step_id, 2),
      stepProof(testSecrets, SESSION, `${SESSION}-s2`, 1),
      stepProof(testSecrets, 'ses_other', step.step_id, 1),
    ];
    expect(new Set(proofs).size).toBe(4);
    for (const step_proof of proofs.slice(1)) {
      const other = startWorking();
      expect(other.next(other.report('success', { step_proof }))).toMatchObject(refusedBy('STEP_PROOF_MISMATCH'));
    }
    expect(d.next(d.report()).success).toBe(true);
  });

  test('D10: is not in the ledger or the memory of the tree; only its hash is', () => {
    const d = startWorking();
    const proofs = [proofOf(d.outstanding.step)];
    const hash = d.outstanding.proof_sha256;
    d.work();
    proofs.push(proofOf(d.outstanding.step));
    const texts = [...d.entries.map(({ text }) => text), JSON.stringify(d.tree.snapshot())];
    for (const proof of proofs) expect(texts.filter((text) => text.includes(proof))).toEqual([]);
    expect(texts.some((text) => text.includes(hash))).toBe(true);
  });
});

describe('a report whose proof is', () => {
  test('S3-16 S3-18: missing is rejected, blocks the runtime, and its step stays outstanding', () => {
    const d = startWorking();
    expect(d.next(without(d.report(), 'step_proof'))).toMatchObject(refusedBy('STEP_PROOF_MISSING'));
    expect(d.session).toMatchObject({ status: 'running', outstanding: { refused: 1 }, tasks: {} });
  });

  const altered: readonly (readonly [string, (proof: string) => string])[] = [
    ['one character at the start', (proof) => (proof.startsWith('A') ? 'B' : 'A') + proof.slice(1)],
    ['one character at the end', (proof) => proof.slice(0, -1) + (proof.endsWith('A') ? 'B' : 'A')],
    ['a space more', (proof) => `${proof} `],
    ['a character less', (proof) => proof.slice(1)],
    ['its padding', (proof) => `${proof}=`],
    ['other case', (proof) => proof.toUpperCase()],
    ['its hash', () => startWorking().outstanding.proof_sha256],
    ['itself twice', (proof) => proof + proof],
    ['nothing of it left', () => 'proof-xyz789'],
    ['half a surrogate pair', () => '\ud800'],
  ];
  test.each(altered)('S3-17 S3-18: altered by %s is rejected, and blocks the runtime', (_how, alter) => {
    const d = startWorking();
    const report = d.report();
    expect(d.next({ ...report, step_proof: alter(proofOf(d.outstanding.step)) })).toMatchObject(
      refusedBy('STEP_PROOF_MISMATCH'),
    );
    expect(d.session).toMatchObject({ status: 'running', outstanding: { refused: 1 }, tasks: {} });
    expect(d.next(report).success).toBe(true);
  });

  test('S3-18: wrong gets the advice to request the step again, and replay returns it with the same proof', () => {
    const d = startWorking();
    const answer = d.next(d.report('success', { step_proof: 'x' }));
    expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['request_fresh_step_proof']);
    expect(d.replay().data?.next_step).toEqual(d.outstanding.step);
    expect(d.next(d.report()).success).toBe(true);
  });
});

describe('C65: a repeated report', () => {
  const reported = () => {
    const d = startWorking();
    const report = d.report();
    d.next(report);
    return { d, report, answer: lastReply(d), state: d.session };
  };

  test.each([1_000, 15_000, REPEAT_MS - 1])(
    'gets the same answer, byte for byte, after %d ms, and changes nothing',
    (ms) => {
      const { d, report, answer, state } = reported();
      after(d, ms).next(report);
      expect(lastReply(d)).toBe(answer);
      expect(d.session).toEqual(state);
      expect(d.decisions.at(-1)?.entries.map(({ entry }) => entry.type)).toEqual(['input']);
    },
  );

  test('counts as the same with its members in another order, and with null members', () => {
    const { d, report, answer } = reported();
    d.next(Object.fromEntries(Object.entries({ ...report, note: null, phase_id: null }).reverse()));
    expect(lastReply(d)).toBe(answer);
  });

  test.each([REPEAT_MS, REPEAT_MS + 1, CONSUMED_MS])('is expired after %d ms', (ms) => {
    const { d, report } = reported();
    expect(after(d, ms).next(report)).toMatchObject(refusedBy('STEP_PROOF_EXPIRED'));
  });

  test('is expired after 30 s even if other steps have followed', () => {
    const { d, report } = reported();
    d.work();
    expect(after(d, REPEAT_MS).next(report)).toMatchObject(refusedBy('STEP_PROOF_EXPIRED'));
    d.work();
    expect(d.session.consumed.map(({ answer }) => answer === null)).toEqual([true, true, false]);
    expect(d.next(report)).toMatchObject(refusedBy('STEP_PROOF_EXPIRED'));
  });

  test.each<readonly [string, JsonObject]>([
    ['another outcome', { outcome: 'failure' }],
    ['another task', { task_id: 't1' }],
    ['another step', { step_id: `${SESSION}-s2` }],
    ['a note more', { note: 'x' }],
    ['other files', { files_touched: [] }],
  ])('but with %s is a conflict, early or late', (_what, other) => {
    for (const ms of [1_000, REPEAT_MS, CONSUMED_MS]) {
      const { d, report, state } = reported();
      expect(after(d, ms).next({ ...report, ...other })).toMatchObject(refusedBy('STEP_PROOF_CONFLICT'));
      expect(d.session.tasks).toEqual(state.tasks);
    }
  });

  test('gets its answer in any later state of the session', () => {
    const { d, report, answer } = reported();
    d.pause();
    d.next(report);
    expect(lastReply(d)).toBe(answer);
    expect(d.session.status).toBe('paused');
  });

  test('gets the answer to a failed outcome again as well', () => {
    const d = startWorking();
    const report = d.report();
    const spec_gone = { spec: { problem: 'not_found' } } as const;
    expect(codeOf(d.next(report, spec_gone))).toBe('SESSION_UNRECOVERABLE');
    const answer = lastReply(d);
    d.next(report, spec_gone);
    expect(lastReply(d)).toBe(answer);
  });
});

describe('the memory of used proofs', () => {
  test(`has the last ${CONSUMED_MAX}: a forgotten proof is unknown`, () => {
    const d = startWorking(CONSUMED_MAX + 2);
    const first = d.report();
    d.work();
    const second = d.report();
    for (let i = 1; i <= CONSUMED_MAX; i += 1) d.work();
    expect(d.session.consumed).toHaveLength(CONSUMED_MAX);
    expect(codeOf(d.next(first))).toBe('STEP_PROOF_MISMATCH');
    expect(codeOf(d.next(second))).toBe('STEP_PROOF_EXPIRED');
    expect(Object.keys(d.session.tasks)).toHaveLength(CONSUMED_MAX + 1);
  }, 60_000);

  test('drops a proof one hour after its report can no longer be repeated, and not before', () => {
    const remembering = startWorking();
    remembering.work();
    after(remembering, REPEAT_MS + CONSUMED_MS - 1).work();
    expect(remembering.session.consumed).toHaveLength(2);
    const forgetting = startWorking();
    forgetting.work();
    after(forgetting, REPEAT_MS + CONSUMED_MS).work();
    expect(forgetting.session.consumed).toHaveLength(1);
  });
});

describe('C64: a rejected report', () => {
  test('consumes nothing: the correct report is accepted with the same proof', () => {
    const d = startWorking();
    const report = d.report();
    d.next({ ...report, task_id: 't3' });
    d.next({ ...report, note: 7 });
    expect(d.session.consumed).toEqual([]);
    expect(d.outstanding.refused).toBe(2);
    expect(d.next(report).success).toBe(true);
    expect(d.session.counters.steps_executed).toBe(1);
  });

  test.each<readonly [string, JsonObject, string]>([
    ['STEP_PROOF_MISSING', { step_proof: null }, 'blocked_runtime'],
    ['STEP_PROOF_MISMATCH', { step_proof: 'x' }, 'blocked_runtime'],
    ['VALIDATION_ERROR', { outcome: 'pass' }, 'paused_needs_attention'],
    ['STEP_MISMATCH', { task_id: 't3' }, 'paused_needs_attention'],
  ])('for the third time pauses the session, and %s is still the answer', (code, wrong, signal) => {
    const d = startWorking();
    const report = { ...d.report(), ...wrong };
    expect([d.next(report), d.next(report)].map(codeOf)).toEqual([code, code]);
    expect(d.session.status).toBe('running');
    expect(d.next(report)).toMatchObject({
      success: false,
      data: {
        status: 'paused',
        pause_reason: 'blocked',
        loop_signal: signal,
        exit_packet: { pause_reason: 'blocked' },
      },
      error: { code },
    });
    expect(d.session.outstanding).toMatchObject({ refused: 3 });
    expect(codeOf(d.next(report))).toBe('INVALID_STATE_TRANSITION');
    expect(d.next()).toMatchObject({ success: true, data: { next_step: { type: 'pause', reason: 'blocked' } } });
  });

  test('pauses exactly at the limit', () => {
    const d = startWorking(4, { max_refused_reports: 1 });
    expect(d.next(d.report('success', { step_proof: 'x' }))).toMatchObject({ data: { status: 'paused' } });
  });

  test('over the limit gets its step again when the session is resumed, with a new proof', () => {
    const d = startWorking();
    const { step } = d.outstanding;
    for (let i = 0; i < 3; i += 1) d.next(d.report('success', { step_proof: 'x' }));
    const { data } = d.resume();
    expect(data).toMatchObject({
      status: 'running',
      next_step: { step_id: step.step_id, issue: 2, type: 'implement_task' },
    });
    expect(codeOf(d.next(d.report('success', { step_proof: proofOf(step) })))).toBe('STEP_PROOF_MISMATCH');
    expect(d.next(d.report()).success).toBe(true);
    expect(Object.keys(d.session.tasks)).toEqual(['t0']);
  });

  test('with an old proof counts against the outstanding step', () => {
    const d = startWorking();
    const report = d.report();
    d.next(report);
    for (let i = 0; i < 3; i += 1) d.next({ ...report, note: `${i}` });
    expect(d.session).toMatchObject({ status: 'paused', pause_reason: 'blocked' });
  });
});

describe('a stray report', () => {
  test('with the proof of the previous step does not affect the next step', () => {
    const d = startWorking();
    const old = d.report();
    d.next(old);
    const { step } = d.outstanding;
    const forged = { ...d.report(), step_proof: old['step_proof'] };
    expect(codeOf(d.next(forged))).toBe('STEP_PROOF_CONFLICT');
    expect(d.outstanding.step).toEqual(step);
    expect(d.next(d.report()).success).toBe(true);
  });

  test('without an outstanding step is rejected, and does not pause the session', () => {
    const d = new SessionDriver().start();
    const stray = { step_id: `${SESSION}-s1`, step_type: 'implement_task', outcome: 'success', task_id: 'task-1-1' };
    const codes = [
      { ...stray, step_proof: stepProof(testSecrets, SESSION, `${SESSION}-s1`, 1) },
      stray,
      { step_proof: 'x' },
    ];
    expect(codes.map((report) => codeOf(d.next(report)))).toEqual([
      'STEP_PROOF_MISMATCH',
      'STEP_PROOF_MISSING',
      'VALIDATION_ERROR',
    ]);
    expect(d.session).toMatchObject({ status: 'running', tasks: {}, outstanding: null });
    expect(d.next().data?.next_step?.type).toBe('implement_task');
  });
});

test('a caller without the role to report cannot use a proof', () => {
  const d = startWorking();
  d.by = { ...RUNNER, role: 'observer' };
  expect(d.next(d.report())).toMatchObject(refusedBy('AUTHORIZATION'));
  expect(d.outstanding.refused).toBe(0);
});

test('C65: of long answers only the latest are stored, however many arrive in half a minute', () => {
  const words = { instruction: 'i'.repeat(32_768), acceptance: Array.from({ length: 64 }, () => 'x'.repeat(2_000)) };
  const tasks = Array.from({ length: 40 }, (_, i) => make(`t${i}`, [], words));
  const d = new SessionDriver({ spec: spec(phase('p', tasks)) }).start();
  d.next();
  const reports = Array.from({ length: 29 }, () => {
    const report = d.report();
    d.next(report);
    return report;
  });
  const { consumed } = d.session;
  const kept = consumed.map(({ answer }) => answer?.length ?? 0);
  expect(kept.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(ANSWERS_CHARS_MAX);
  expect([kept[0], consumed.length]).toEqual([0, 29]);
  expect(codeOf(d.next(reports[0]))).toBe('STEP_PROOF_EXPIRED');
  expect(d.next(reports.at(-1))).toMatchObject({ success: true, data: { next_step: { task_id: 't29' } } });
});
