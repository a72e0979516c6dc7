// The review of a phase: who makes it, what it reports, and that its findings cannot be changed.

import { describe, expect, test } from '@jest/globals';
import type { GateEvidence } from '../../../../src/features/sessions/contract/session.js';
import { REVIEW_PHASE } from '../../../../src/features/sessions/rules/checks.js';
import { evidenceChecksum, isEvidenceIntact } from '../../../../src/features/sessions/rules/step-proof.js';
import { GATE, GATED, gatedBy, atGate, typeOf, codeOf, gateOf, judged } from '../../../fixtures/gated.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { SESSION, SessionDriver, testSecrets } from '../../../fixtures/session.js';

describe('S3-29: the review', () => {
  test('runs once, as a run of its own, for this spec, session, phase and step', () => {
    const reviewed = phase('p1', [make('a'), make('b')], { ...GATE, instruction: 'Be strict.' });
    const d = atGate({ spec: spec(reviewed), settings: { allow_skipped: true } });
    d.work('skipped');
    const { step } = d.outstanding;
    expect(step.instruction).toContain(
      `review(action="fidelity-gate", spec_id="spec-1", session_id="${SESSION}", phase_id="p1", step_id="${step.step_id}")`,
    );
    expect(d.ask({ name: 'review', phase_id: 'p1', step_id: step.step_id })).toBeNull();
    expect(d.checking.effect).toMatchObject({
      action: REVIEW_PHASE,
      args: {
        spec_id: 'spec-1',
        session_id: SESSION,
        phase_id: 'p1',
        step_id: step.step_id,
        gate_attempt_id: `${SESSION}-g1`,
        reviewer: 'callback',
        command: null,
        instruction: 'Be strict.',
        tasks: [
          { id: 'a', title: 'Make a', status: 'completed' },
          { id: 'b', title: 'Make b', status: 'skipped' },
        ],
      },
    });
    expect(d.created(d.checking.run_id)).toMatchObject({
      run_kind: 'tool_gateway',
      lane_id: 'SESSION_CHECKS',
    });
  });

  test("passes the spec's command to a command reviewer", () => {
    const command = ['node', 'review.mjs'];
    const d = atGate({ spec: gatedBy({ reviewer: 'command', command, cwd: '/sandbox/x', timeout_seconds: 3 }) });
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    expect(d.checking.effect.args).toMatchObject({
      reviewer: 'command',
      command,
      cwd: '/sandbox/x',
      timeout_ms: 3_000,
    });
  });

  test('S3-30: the answer has the attempt, the findings, and their meaning under the policy', () => {
    const d = atGate();
    d.verdict = 'warn';
    expect(d.check().data?.review).toEqual({
      gate_attempt_id: `${SESSION}-g1`,
      verdict: 'warn',
      findings: [{ severity: 'error', message: 'not yet' }],
      gate_policy: 'strict',
      gate_passed_preview: false,
    });
  });

  test('F9: is rejected without an outstanding gate, and leaves no evidence', () => {
    const d = new SessionDriver({ spec: GATED }).start();
    const review = { name: 'review', phase_id: 'p1', step_id: `${SESSION}-s1` } as const;
    expect(codeOf(d.tell(review))).toBe('GATE_BLOCKED');
    d.next();
    expect(codeOf(d.tell(review))).toBe('GATE_BLOCKED');
    expect(d.session.evidence).toBeNull();
    expect(d.commands).toEqual([]);
  });

  test.each([
    ['another step', { step_id: `${SESSION}-s1` }, ['step_id']],
    ['another phase', { phase_id: 'p2' }, ['phase_id']],
    ['no phase at all', { phase_id: 'nowhere' }, ['phase_id']],
    ['neither', { phase_id: 'p2', step_id: 'x' }, ['step_id', 'phase_id']],
  ])('F9: is rejected for %s', (_what, wrong, details) => {
    const d = atGate();
    const { step_id } = d.outstanding.step;
    const answer = d.tell({ name: 'review', phase_id: 'p1', step_id, ...wrong });
    expect(answer.error).toMatchObject({ code: 'STEP_MISMATCH', details });
    expect(d.commands).toEqual([]);
  });

  test('C70: happens once per step: a second request gets the same answer, and no second review', () => {
    const d = atGate();
    d.verdict = 'fail';
    const { data } = d.check();
    d.verdict = 'pass';
    const { state_version } = d.session;
    const again = d.tell({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    expect(again.data?.review).toEqual(data?.review);
    expect(d.session).toMatchObject({ state_version, gate_attempts: 1 });
    expect(typeOf(d.next(d.report()))).toBe('address_fidelity_feedback');
    expect(d.session.cycles.count).toBe(1);
  });

  test('makes the session busy while it is in flight', () => {
    const d = atGate();
    const review = { name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id } as const;
    d.ask(review);
    expect(codeOf(d.tell(review))).toBe('AGENT_BUSY');
    expect(d.session.gate_attempts).toBe(1);
  });

  test('F13: and a concurrent report do not undo each other', () => {
    const d = atGate();
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    const guessed = d.report('success', { gate_attempt_id: `${SESSION}-g1` });
    expect(codeOf(d.next(guessed))).toBe('INVALID_GATE_EVIDENCE');
    d.checked();
    expect(d.session).toMatchObject({ evidence: { gate_attempt_id: `${SESSION}-g1` }, outstanding: { refused: 1 } });
    expect(d.next(guessed).data?.next_step?.task_id).toBe('b');
  });

  test('without a result leaves no evidence, and can be requested again under another id', () => {
    const d = atGate();
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    expect(codeOf(d.checkFails())).toBe('CHECK_FAILED');
    expect(d.session.evidence).toBeNull();
    expect(d.check().data?.review?.gate_attempt_id).toBe(`${SESSION}-g2`);
    expect(typeOf(d.next(d.report()))).toBe('implement_task');
  });

  test('S3-34: an invalid verdict counts as fail, and only well-formed findings are kept', () => {
    const d = atGate();
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    const bound = { gate_attempt_id: `${SESSION}-g1`, step_id: d.outstanding.step.step_id, phase_id: 'p1' } as const;
    const checksum = evidenceChecksum(testSecrets, SESSION, { ...bound, verdict: 'fail' });
    const right = { severity: 'warning', message: 'm', file: 'a.md', line: 3 };
    const wrong = [{ severity: 'fatal', message: 'm' }, { severity: 'error' }, 'x', { ...right, message: '\udc00' }];
    const { data } = d.checked({
      verdict: 'PASS',
      findings: [...wrong, right, ...Array.from({ length: 200 }, () => right)],
      checksum,
    });
    expect(data?.review).toMatchObject({ verdict: 'fail', findings: Array.from({ length: 100 }, () => right) });
    expect(d.next(d.report()).data?.next_step?.instruction).toContain('- warning a.md:3: m');
  });
});

describe('the report of a gate', () => {
  test('S3-30 C70: is accepted only with the attempt of this step', () => {
    for (const gate_attempt_id of [`${SESSION}-g2`, 'gate-abc123', 'g', '__proto__']) {
      const d = atGate();
      d.check();
      expect(codeOf(d.next(d.report('success', { gate_attempt_id })))).toBe('INVALID_GATE_EVIDENCE');
      expect(gateOf(d)).toBeUndefined();
      expect(typeOf(d.next(d.report()))).toBe('implement_task');
    }
  });

  test('is rejected before any review', () => {
    const d = atGate();
    const answer = d.next(d.report('success', { gate_attempt_id: `${SESSION}-g1` }));
    expect(answer).toMatchObject({ error: { code: 'INVALID_GATE_EVIDENCE' }, data: { loop_signal: null } });
    expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['request_fresh_gate_evidence']);
  });

  test('is rejected with the attempt of an earlier review, which is no longer evidence', () => {
    const d = atGate();
    judged(d, 'fail');
    d.work();
    expect(codeOf(d.next(d.report('success', { gate_attempt_id: `${SESSION}-g1` })))).toBe('INVALID_GATE_EVIDENCE');
    const other = atGate();
    judged(other, 'pass');
    other.work();
    expect(other.outstanding.step.phase_id).toBe('p2');
    expect(codeOf(other.next(other.report('success', { gate_attempt_id: `${SESSION}-g1` })))).toBe(
      'INVALID_GATE_EVIDENCE',
    );
  });

  test('blocks the runtime at the third report without evidence', () => {
    const d = atGate();
    const report = d.report('success', { gate_attempt_id: 'x' });
    const signals = [1, 2, 3].map(() => d.next(report).data?.loop_signal);
    expect(signals).toEqual([null, null, 'blocked_runtime']);
  });

  test.each(['success', 'failure', 'skipped'] as const)('states only that the review was made: %s', (outcome) => {
    for (const verdict of ['pass', 'fail'] as const) {
      const d = atGate();
      d.verdict = verdict;
      d.check();
      d.next(d.report(outcome));
      expect(gateOf(d)?.status).toBe(verdict === 'pass' ? 'passed' : 'failed');
      expect(d.session.counters).toMatchObject({ consecutive_errors: 0, skips: 0, steps_executed: 2 });
    }
  });
});

describe('S3-31 S3-32: the checksum of evidence', () => {
  const bound = { gate_attempt_id: 'g1', step_id: 's1', phase_id: 'p1', verdict: 'pass' } as const;
  const evidence = (over: Partial<GateEvidence> = {}): GateEvidence => {
    const checksum = evidenceChecksum(testSecrets, SESSION, bound);
    return { ...bound, findings: [], issued_at: '2026-01-01T00:00:00.000Z', checksum, ...over };
  };

  test('is correct for the parts it was computed from', () => {
    expect(isEvidenceIntact(testSecrets, SESSION, evidence())).toBe(true);
    expect(evidence().checksum).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each<readonly [string, Partial<GateEvidence>]>([
    ['another verdict', { verdict: 'warn' }],
    ['another attempt', { gate_attempt_id: 'g2' }],
    ['another step', { step_id: 's2' }],
    ['another phase', { phase_id: 'p2' }],
    ['no checksum (F7)', { checksum: null }],
    ['an empty one', { checksum: '' }],
    ['a cut one', { checksum: evidence().checksum?.slice(0, 63) ?? '' }],
    ['a longer one', { checksum: `${evidence().checksum ?? ''}0` }],
    ['one in capitals', { checksum: evidence().checksum?.toUpperCase() ?? '' }],
  ])('is wrong with %s', (_what, over) => {
    expect(isEvidenceIntact(testSecrets, SESSION, evidence(over))).toBe(false);
  });

  test('is wrong for another session, and under another key', () => {
    expect(isEvidenceIntact(testSecrets, 'ses_other', evidence())).toBe(false);
    const otherKey = { computeMac: () => Buffer.alloc(32) };
    expect(isEvidenceIntact(otherKey, SESSION, evidence())).toBe(false);
  });

  test('F8: is computed from a list: text moved from one part to the next changes it', () => {
    const shifted = [
      bound,
      { ...bound, gate_attempt_id: 'g1:s1', step_id: '' },
      { ...bound, gate_attempt_id: 'g1","s1', step_id: '' },
      { ...bound, step_id: 's1:p1', phase_id: '' },
      { ...bound, phase_id: 'p1:pass' },
      { ...bound, gate_attempt_id: '', step_id: 'g1' },
    ];
    expect(new Set(shifted.map((one) => evidenceChecksum(testSecrets, SESSION, one))).size).toBe(shifted.length);
  });

  test.each(['strict', 'lenient', 'manual'] as const)('is checked under the policy %s', (gate_policy) => {
    for (const evidence_intact of [false, null]) {
      const d = atGate({ settings: { gate_policy } });
      d.check();
      d.evidence_intact = evidence_intact;
      const answer = d.next(d.report());
      expect(answer).toMatchObject({
        error: { code: 'ERROR_GATE_INTEGRITY_CHECKSUM' },
        data: { loop_signal: 'blocked_runtime', status: 'running' },
      });
      expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['rerun_gate_with_fresh_evidence']);
      expect(gateOf(d)).toBeUndefined();
    }
  });

  test('that is wrong is replaced by a new review', () => {
    const d = atGate();
    d.check();
    d.evidence_intact = false;
    d.next(d.report());
    d.check();
    d.evidence_intact = undefined;
    expect(d.session.evidence?.gate_attempt_id).toBe(`${SESSION}-g2`);
    expect(typeOf(d.next(d.report()))).toBe('implement_task');
  });

  test('that is missing makes the evidence invalid', () => {
    const d = atGate();
    for (const checksum of [null, 7, '', 'A'.repeat(64)]) {
      d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
      expect(codeOf(d.checked({ checksum }))).toBe('CHECK_FAILED');
      expect(d.session.evidence).toBeNull();
      if (d.session.status === 'paused') d.resume();
    }
  });
});
