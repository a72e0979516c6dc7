// Gates: who says that a phase is what it was asked for, how often that is asked, and how a session gets past it.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../src/contract/json.js';
import type { GateEvidence, GatePolicy, GateVerdict, PauseReason } from '../../src/contract/session.js';
import type { SessionAnswer } from '../../src/contract/session-answer.js';
import type { SessionSpec, SpecGate } from '../../src/contract/session-spec.js';
import { REVIEW_PHASE } from '../../src/session/checks.js';
import { auditGates, checksumParts } from '../../src/session/gate.js';
import { evidenceChecksum, isIntact } from '../../src/session/proof.js';
import type { GateRecord, SessionState } from '../../src/session/state.js';
import { make, phase, spec, verify } from '../fixtures/spec.js';
import { RUNNER, SESSION, SessionDriver, testSecrets, type SessionOptions } from '../fixtures/session.js';

const GATE: SpecGate = { reviewer: 'callback' };
const GATED = spec(phase('p1', [make('a')], GATE), phase('p2', [make('b')], GATE));
const gatedBy = (gate: SpecGate): SessionSpec => spec(phase('p1', [make('a')], gate), phase('p2', [make('b')]));

/** A session whose first gate is outstanding, or that waits for a person to judge it. */
function atGate(options: SessionOptions = {}): SessionDriver {
  const d = new SessionDriver({ spec: GATED, ...options }).start();
  d.next();
  d.work();
  return d;
}

const typeOf = ({ data }: SessionAnswer) => data?.next_step?.type ?? null;
const reasonOf = ({ data }: SessionAnswer): PauseReason | null => data?.next_step?.reason ?? null;
const codeOf = ({ error }: SessionAnswer) => error?.code ?? null;
const gateOf = (d: SessionDriver, phase_id = 'p1') => d.session.gates[phase_id];
const events = (d: SessionDriver) => d.bodies('session_event').map(({ event }) => event);

/** Has the gate reviewed with this verdict and reports it. */
function judged(d: SessionDriver, verdict: GateVerdict): SessionAnswer {
  d.verdict = verdict;
  return d.work();
}

describe('S3-29: the review', () => {
  test('is made once, by a run of its own, for spec, session, phase and step', () => {
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

  test('hands the command of the spec to a reviewer that is one', () => {
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

  test('S3-30: answers with the attempt, what was found, and what that would mean', () => {
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

  test('F9: is not made where no gate is outstanding, and leaves no evidence', () => {
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
  ])('F9: is not made for %s', (_what, wrong, details) => {
    const d = atGate();
    const { step_id } = d.outstanding.step;
    const answer = d.tell({ name: 'review', phase_id: 'p1', step_id, ...wrong });
    expect(answer.error).toMatchObject({ code: 'STEP_MISMATCH', details });
    expect(d.commands).toEqual([]);
  });

  test('C70: is made once a step: whoever asks again gets the same answer, and no second opinion', () => {
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

  test('while it is under way finds the session busy', () => {
    const d = atGate();
    const review = { name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id } as const;
    d.ask(review);
    expect(codeOf(d.tell(review))).toBe('AGENT_BUSY');
    expect(d.session.gate_attempts).toBe(1);
  });

  test('that comes to nothing leaves nothing, and is made again under another id', () => {
    const d = atGate();
    d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
    expect(codeOf(d.checkFails())).toBe('CHECK_FAILED');
    expect(d.session.evidence).toBeNull();
    expect(d.check().data?.review?.gate_attempt_id).toBe(`${SESSION}-g2`);
    expect(typeOf(d.next(d.report()))).toBe('implement_task');
  });

  test('S3-34: whose verdict is none has failed, and of whose findings only findings are taken', () => {
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
  test('S3-30 C70: takes the attempt of this step alone', () => {
    for (const gate_attempt_id of [`${SESSION}-g2`, 'gate-abc123', 'g', '__proto__']) {
      const d = atGate();
      d.check();
      expect(codeOf(d.next(d.report('success', { gate_attempt_id })))).toBe('INVALID_GATE_EVIDENCE');
      expect(gateOf(d)).toBeUndefined();
      expect(typeOf(d.next(d.report()))).toBe('implement_task');
    }
  });

  test('is refused where nothing was reviewed', () => {
    const d = atGate();
    const answer = d.next(d.report('success', { gate_attempt_id: `${SESSION}-g1` }));
    expect(answer).toMatchObject({ error: { code: 'INVALID_GATE_EVIDENCE' }, data: { loop_signal: null } });
    expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['request_fresh_gate_evidence']);
  });

  test('is refused with the attempt of the time before: it is evidence no more', () => {
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

  test('for the third time without evidence blocks the runtime', () => {
    const d = atGate();
    const report = d.report('success', { gate_attempt_id: 'x' });
    const signals = [1, 2, 3].map(() => d.next(report).data?.loop_signal);
    expect(signals).toEqual([null, null, 'blocked_runtime']);
  });

  test.each(['success', 'failure', 'skipped'] as const)('says that it was reviewed, and no more: %s', (outcome) => {
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

  test('is right for what it was made of', () => {
    expect(isIntact(testSecrets, SESSION, evidence())).toBe(true);
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
    expect(isIntact(testSecrets, SESSION, evidence(over))).toBe(false);
  });

  test('is wrong for another session, and under another key', () => {
    expect(isIntact(testSecrets, 'ses_other', evidence())).toBe(false);
    const otherKey = { mac: () => Buffer.alloc(32) };
    expect(isIntact(otherKey, SESSION, evidence())).toBe(false);
  });

  test('F8: is made of a list: what is moved from one part to the next is something else', () => {
    const [a, b] = [
      { ...bound, gate_attempt_id: 'a:b', step_id: 'c' },
      { ...bound, gate_attempt_id: 'a', step_id: 'b:c' },
    ];
    expect(evidenceChecksum(testSecrets, SESSION, a)).not.toBe(evidenceChecksum(testSecrets, SESSION, b));
    expect(checksumParts(SESSION, bound)).toEqual(['v2', SESSION, 'g1', 's1', 'p1', 'pass']);
  });

  test.each(['strict', 'lenient', 'manual'] as const)('is looked at under the policy %s', (gate_policy) => {
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

  test('that is wrong is left behind by another review', () => {
    const d = atGate();
    d.check();
    d.evidence_intact = false;
    d.next(d.report());
    d.check();
    d.evidence_intact = undefined;
    expect(d.session.evidence?.gate_attempt_id).toBe(`${SESSION}-g2`);
    expect(typeOf(d.next(d.report()))).toBe('implement_task');
  });

  test('that is missing makes no evidence at all', () => {
    const d = atGate();
    for (const checksum of [null, 7, '', 'A'.repeat(64)]) {
      d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
      expect(codeOf(d.checked({ checksum }))).toBe('CHECK_FAILED');
      expect(d.session.evidence).toBeNull();
      if (d.session.status === 'paused') d.resume();
    }
  });
});

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
  test('has what was found in its instruction, and leads to the gate again', () => {
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

  test('that failed or was skipped is still to be addressed, until that has been said too often', () => {
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

  test('of one phase does not speak of another', () => {
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

describe('S3-35 S3-36 C71: how often a gate may fail', () => {
  test('three times unless said otherwise: three reviews, two times of feedback, and then people', () => {
    const d = atGate();
    d.verdict = 'fail';
    const told: (string | null)[] = [d.outstanding.type];
    while (d.session.status === 'running') told.push(typeOf(d.work()));
    expect(told).toEqual([
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

  test.each([1, 2, 5])('%d times where that is the limit', (max_fidelity_review_cycles_per_phase) => {
    const d = atGate({ limits: { max_fidelity_review_cycles_per_phase } });
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
    expect(d.session).toMatchObject({
      pause_reason: 'fidelity_cycle_limit',
      gate_attempts: max_fidelity_review_cycles_per_phase,
    });
  });

  test('is counted for each phase by itself', () => {
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

  test('begins anew when a maintainer has resumed', () => {
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

  test('is of no concern once somebody has waived the gate', () => {
    const d = atGate();
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
    d.waive('p1');
    d.resume();
    expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
  });
});

describe('C71: without auto_retry', () => {
  const failed = () => {
    const d = atGate({ settings: { auto_retry_fidelity_gate: false } });
    return { d, answer: judged(d, 'fail') };
  };

  test('a gate that fails pauses the session, gate_failed', () => {
    const { d, answer } = failed();
    expect(reasonOf(answer)).toBe('gate_failed');
    expect(d.session.pause_reason).toBe('gate_failed');
    expect(answer.data?.recommended_actions.map(({ action }) => action)).toEqual(['review_gate_findings']);
  });

  test('it is reviewed again when a maintainer has resumed, as often as that is done', () => {
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

  test('F2: it is not reviewed again where it was waived while the session was paused', () => {
    const { d } = failed();
    d.waive('p1');
    d.resume();
    expect(gateOf(d)?.status).toBe('waived');
    expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
  });
});

describe('C72 F1: a gate that a person judges', () => {
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
    test('pauses the session and names the attempt, wherever one looks', () => {
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

    test('is not left by resuming alone, nor for another attempt, nor by an agent', () => {
      const d = at(options);
      const { session } = d;
      expect(d.resume().error).toMatchObject({ code: 'MANUAL_GATE_ACK_REQUIRED', details: [`${SESSION}-g1`] });
      const acknowledge = { gate_attempt_id: `${SESSION}-g2`, decision: 'pass' } as const;
      expect(codeOf(d.resume({ acknowledge }))).toBe('INVALID_GATE_ACK');
      expect(codeOf(d.acknowledge('pass', RUNNER))).toBe('AUTHORIZATION');
      expect(codeOf(d.acknowledge('pass', { ...RUNNER, role: 'observer' }))).toBe('AUTHORIZATION');
      expect(d.session).toEqual(session);
    });

    test('goes on when it has passed', () => {
      const d = at(options);
      expect(d.acknowledge('pass')).toMatchObject({
        success: true,
        data: { status: 'running', satisfied_gates: ['p1'] },
      });
      expect(events(d)).toEqual(expect.arrayContaining(['gate_acknowledged', 'gate_passed', 'resume']));
      expect(d.session).toMatchObject({ ack: null, evidence: null });
      expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
    });

    test('has feedback, and is judged anew, when it has not', () => {
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

    test('can be waived instead, and then waits for nobody', () => {
      const d = at(options);
      d.waive('p1');
      expect(d.session.ack).toBeNull();
      expect(d.resume().success).toBe(true);
      expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
    });
  });

  test('keeps what the reviewer has said, whatever the person decides', () => {
    const d = at({ settings: { gate_policy: 'manual' } });
    d.acknowledge('pass');
    expect(gateOf(d)).toMatchObject({ status: 'passed', verdict: 'pass', gate_attempt_id: `${SESSION}-g1` });
    const other = atGate({ settings: { gate_policy: 'manual' } });
    judged(other, 'fail');
    other.acknowledge('pass');
    expect(gateOf(other)).toMatchObject({ status: 'passed', verdict: 'fail' });
    expect(auditGates(other.session, 'p1')).toEqual([]);
  });

  test('is asked for though something else has paused the session first', () => {
    const d = atGate({ settings: { gate_policy: 'manual' } });
    d.check();
    d.next(d.report(), { context_usage_pct: 99 });
    expect(d.session).toMatchObject({ pause_reason: 'context_limit', ack: { phase_id: 'p1' } });
    expect(codeOf(d.resume({}, RUNNER))).toBe('MANUAL_GATE_ACK_REQUIRED');
    expect(codeOf(d.acknowledge('pass', RUNNER))).toBe('AUTHORIZATION');
    d.acknowledge('pass');
    expect(typeOf(d.next())).toBe('implement_task');
  });

  test('is not acknowledged where none waits', () => {
    const d = atGate();
    d.pause();
    expect(codeOf(d.acknowledge('pass'))).toBe('INVALID_GATE_ACK');
    expect(d.session.status).toBe('paused');
  });
});

describe('a waiver', () => {
  test('C72: is as good as a pass, and says who and why', () => {
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
  ])('is refused %s', (_why, phase_id, options, code) => {
    const d = atGate(options);
    const { session } = d;
    expect(codeOf(d.waive(phase_id))).toBe(code);
    expect(d.session).toEqual(session);
  });

  test('is refused to whoever is no maintainer', () => {
    for (const role of ['autonomy_runner', 'observer'] as const) {
      expect(codeOf(atGate().waive('p1', { ...RUNNER, role }))).toBe('AUTHORIZATION');
    }
  });

  test('is refused of what has passed or was waived', () => {
    const d = atGate();
    judged(d, 'pass');
    expect(codeOf(d.waive('p1'))).toBe('INVALID_STATE_TRANSITION');
    d.waive('p2');
    expect(codeOf(d.waive('p2'))).toBe('INVALID_STATE_TRANSITION');
  });

  test.each(['run_fidelity_gate', 'address_fidelity_feedback'] as const)('revokes a %s that is outstanding', (type) => {
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

  test('leaves every other step as it is', () => {
    const d = new SessionDriver({ spec: GATED }).start();
    d.next();
    const { outstanding } = d;
    d.waive('p1');
    expect(d.outstanding).toEqual(outstanding);
    expect(d.work().data?.next_step).toMatchObject({ task_id: 'b' });
  });

  test('of a gate that is being reviewed: what comes of that is nobody’s', () => {
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

  test.each(cases)('%s, is reviewed once and holds nothing up', (_how, options) => {
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

  test.each(cases)('C73: %s, is reviewed though tasks were skipped', (_how, options) => {
    const d = new SessionDriver(options).start();
    d.next();
    expect(typeOf(d.work('skipped'))).toBe('run_fidelity_gate');
  });

  test('is judged by a person all the same, where that is the policy', () => {
    const d = atGate({ spec: gatedBy(OPTIONAL), settings: { gate_policy: 'manual' } });
    d.work();
    expect(d.session.pause_reason).toBe('gate_review_required');
    d.acknowledge('fail');
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
  });
});

test('C72: what a person says of a gate is not mixed up with what was found of another', () => {
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

test('C71 F3: a gate that is not retried by itself is reviewed again when the limit of its cycles was lifted', () => {
  const limits = { max_fidelity_review_cycles_per_phase: 1 };
  const d = atGate({ limits, settings: { auto_retry_fidelity_gate: false } });
  expect(reasonOf(judged(d, 'fail'))).toBe('fidelity_cycle_limit');
  d.resume();
  expect(typeOf(d.next())).toBe('run_fidelity_gate');
});

describe('C73: tasks that were skipped', () => {
  const SKIPPING = spec(phase('p1', [make('a'), make('b', ['a']), verify('v')], GATE));

  test('keep a gate from being run, and rebasing gives them another chance', () => {
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

  test('can be let pass by a waiver, or by the settings', () => {
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

  test('F10: are not issued again, and block what depends on them', () => {
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
    ['a waiver that nobody may make', WAIVED, { settings: { allow_gate_waiver: false } }, 'tampered'],
    ['a pass without an attempt', { ...PASSED, gate_attempt_id: null }, {}, 'tampered'],
    ['a pass without a verdict', { ...PASSED, verdict: null }, {}, 'tampered'],
    ['a pass with a waiver', { ...PASSED, waiver: WAIVED.waiver }, {}, 'tampered'],
    ['a pass that the verdict denies', { ...PASSED, verdict: 'fail' }, {}, 'tampered'],
    ['a pass that policy denies', { ...PASSED, verdict: 'warn' }, {}, 'tampered'],
    ['a pass that no policy gives', { ...PASSED, verdict: 'fail' }, lenient, 'tampered'],
  ])('finds of %s what it must', (_what, record, options, problem) => {
    const gates = record === null ? {} : { p1: record };
    const expected = problem === null ? [] : [{ phase_id: 'p1', problem }];
    expect(auditGates(state(gates, options), 'p1')).toEqual(expected);
  });

  test('looks at every phase up to the one that is named, and at all of them for none', () => {
    expect(auditGates(state({}), 'p1')).toHaveLength(1);
    expect(auditGates(state({}), 'p2').map(({ phase_id }) => phase_id)).toEqual(['p1', 'p2']);
    expect(auditGates(state({ p2: PASSED }), null).map(({ phase_id }) => phase_id)).toEqual(['p1']);
  });

  test('asks for no more than the spec and the settings ask for', () => {
    expect(auditGates(state({}, { settings: { enforce_gates: false } }), null)).toEqual([]);
    expect(auditGates(state({}, { spec: gatedBy({ ...GATE, required: false }) }), null)).toEqual([]);
  });

  test('is not deceived by what every object has', () => {
    const named = spec(phase('constructor', [make('a')], GATE), phase('p2', [make('b')]));
    expect(auditGates(state({}, { spec: named }), null)).toEqual([
      { phase_id: 'constructor', problem: 'missing_record' },
    ]);
  });
});

test('tasks and phases may be called like what every object has', () => {
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
