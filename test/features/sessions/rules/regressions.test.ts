// Eighteen ways in which step loops of this kind have failed before (F1 to F18), each as a user would meet it. The
// suite of each rule tests it in full.

import { expect, test } from '@jest/globals';
import { memoryHeadStore } from '../../../../src/stores/memory/memory-head-store.js';
import { memoryStore } from '../../../../src/stores/memory/memory-ledger-store.js';
import type { SealedEntry } from '../../../../src/core/contract/run/entry.js';
import { Fold } from '../../../../src/kernel/fold.js';
import { checkExternalHead } from '../../../../src/core/ledger/verification/check-external-head.js';
import { EMPTY_HEAD, extendHead } from '../../../../src/core/ledger/proof/merkle.js';
import { auditGates } from '../../../../src/features/sessions/rules/gate.js';
import { findNextAction } from '../../../../src/features/sessions/rules/next-action.js';
import { evidenceChecksum } from '../../../../src/features/sessions/rules/step-proof.js';
import { MINUTE_MS } from '../../../../src/features/sessions/rules/session-state.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import { RUNNER, SESSION, SessionDriver, testSecrets, type SessionOptions } from '../../../fixtures/session.js';

const GATE = { reviewer: 'callback' } as const;
const GATED = spec(phase('p1', [make('a')], GATE), phase('p2', [make('b')]));

const startWorking = (options: SessionOptions = {}): SessionDriver => {
  const d = new SessionDriver({ spec: GATED, ...options }).start();
  d.next();
  return d;
};
const atGate = (options: SessionOptions = {}): SessionDriver => {
  const d = startWorking(options);
  d.work();
  return d;
};
const verifying = (): SessionDriver => startWorking({ spec: spec(phase('p', [verify('v')])) });
const toPause = (d: SessionDriver): string | null => {
  for (let i = 0; i < 50 && d.session.status === 'running'; i += 1) d.work();
  return d.session.pause_reason;
};

test('F1: a gate under the manual policy can pass: a person acknowledges its attempt', () => {
  const d = atGate({ settings: { gate_policy: 'manual' } });
  expect(d.work().data?.pause_reason).toBe('gate_review_required');
  expect(d.acknowledge('pass').success).toBe(true);
  expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
  expect(d.work().data?.status).toBe('completed');
});

test('F2: a waived gate is not run again, even if it had failed and paused the session', () => {
  const d = atGate({ settings: { auto_retry_fidelity_gate: false } });
  d.verdict = 'fail';
  expect(toPause(d)).toBe('gate_failed');
  d.waive('p1');
  d.resume();
  expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
  expect(d.session.gate_attempts).toBe(1);
  expect(d.work().data).toMatchObject({ status: 'completed', satisfied_gates: ['p1'] });
});

test('F3: resuming removes the cause of the pause', () => {
  const failing = startWorking({ limits: { max_consecutive_errors: 1 } });
  failing.work('failure');
  const limited = startWorking({
    limits: { max_tasks_per_session: 1 },
    spec: spec(phase('p', [make('a'), make('b')])),
  });
  limited.work();
  const full = startWorking();
  full.next(full.report(), { context_usage_pct: 99 });
  const cycling = atGate({ limits: { max_fidelity_review_cycles_per_phase: 1 } });
  cycling.verdict = 'fail';
  cycling.work();
  const all = [failing, limited, full, cycling];
  const reasons = ['error_threshold', 'task_limit', 'context_limit', 'fidelity_cycle_limit'];
  expect(all.map(({ session }) => session.pause_reason)).toEqual(reasons);
  for (const d of all) {
    d.resume();
    expect(d.next().data).toMatchObject({ status: 'running', loop_signal: null });
  }
});

test('F4: after a pause there is nothing to report about it, however long it was', () => {
  const d = startWorking({ spec: spec(phase('p', [make('a'), make('b')])), limits: { max_tasks_per_session: 1 } });
  expect(d.work().data?.next_step).toMatchObject({ type: 'pause', reason: 'task_limit' });
  expect(d.session.outstanding).toBeNull();
  d.wait(10_000 * MINUTE_MS);
  d.resume();
  expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'b' });
});

test('F5: success with an exit code other than 0 is rejected', () => {
  const d = verifying();
  d.exit_code = 1;
  d.check();
  const answer = d.next(d.report('success'));
  expect(answer.error?.code).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
  expect(d.session).toMatchObject({ tasks: {}, outstanding: { type: 'execute_verification' } });
});

test('F6: a receipt that the agent has made itself is rejected, however convincing', () => {
  const d = verifying();
  const made = {
    command_hash: 'c'.repeat(64),
    exit_code: 0,
    output_digest: 'd'.repeat(64),
    issued_at: d.outstanding.issued_at,
    step_id: d.outstanding.step.step_id,
  };
  const answer = d.next(d.report('success', { verification_receipt: made }));
  expect(answer.error?.code).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
  expect(d.work().data?.status).toBe('completed');
});

test('F7: evidence without a checksum is invalid', () => {
  const d = atGate();
  d.ask({ name: 'review', phase_id: 'p1', step_id: d.outstanding.step.step_id });
  expect(d.checked({ checksum: null }).error?.code).toBe('CHECK_FAILED');
  const report = d.report('success', { gate_attempt_id: `${SESSION}-g1` });
  expect(d.next(report).error?.code).toBe('INVALID_GATE_EVIDENCE');
  d.check();
  d.evidence_intact = null;
  expect(d.next(d.report()).error?.code).toBe('ERROR_GATE_INTEGRITY_CHECKSUM');
});

test('F8: no two pieces of evidence share a checksum', () => {
  const bound = { gate_attempt_id: 'g', step_id: 's', phase_id: 'p', verdict: 'pass' } as const;
  const shifted = [
    bound,
    { ...bound, gate_attempt_id: 'g:s', step_id: '' },
    { ...bound, gate_attempt_id: 'g","s', step_id: '' },
    { ...bound, step_id: 's:p', phase_id: '' },
    { ...bound, phase_id: 'p:pass' },
    { ...bound, gate_attempt_id: '', step_id: 'g' },
  ];
  expect(new Set(shifted.map((one) => evidenceChecksum(testSecrets, SESSION, one))).size).toBe(shifted.length);
});

test('F9: no review runs without an outstanding gate, or for another step or phase', () => {
  const d = startWorking();
  const step_id = d.outstanding.step.step_id;
  expect(d.tell({ name: 'review', phase_id: 'p1', step_id }).error?.code).toBe('GATE_BLOCKED');
  d.work();
  expect(d.tell({ name: 'review', phase_id: 'p1', step_id }).error?.code).toBe('STEP_MISMATCH');
  expect(d.session).toMatchObject({ evidence: null, gate_attempts: 0, check: null });
});

test('F10: a skipped task is settled: it is counted, and not issued again', () => {
  const d = startWorking({ spec: spec(phase('p', [make('a'), make('b')])) });
  expect(d.work('skipped').data?.next_step?.task_id).toBe('b');
  expect(d.session).toMatchObject({ tasks: { a: 'skipped' }, counters: { skips: 1 } });
  expect(d.work().data).toMatchObject({ status: 'completed' });
});

test('F11: the third failure of a gate pauses the session at once, as fidelity_cycle_limit', () => {
  const d = atGate();
  d.verdict = 'fail';
  expect(toPause(d)).toBe('fidelity_cycle_limit');
  expect(d.session.gate_attempts).toBe(3);
});

test.each([{ problem: 'not_found' }, { problem: 'unreadable' }] as const)(
  'F12: a spec that is %j fails the session, and completes nothing',
  (fact) => {
    const d = startWorking({ spec: spec(phase('p', [make('a')])) });
    const answer = d.next(d.report(), { spec: fact });
    expect(answer).toMatchObject({ success: false, error: { code: 'SESSION_UNRECOVERABLE' } });
    expect(d.session).toMatchObject({ status: 'failed', failure_reason: 'spec_not_found' });
  },
);

test('F13: a concurrent review and report do not undo each other', () => {
  const d = atGate();
  const { step_id } = d.outstanding.step;
  d.ask({ name: 'review', phase_id: 'p1', step_id });
  const guessed = d.report('success', { gate_attempt_id: `${SESSION}-g1` });
  expect(d.next(guessed).error?.code).toBe('INVALID_GATE_EVIDENCE');
  d.checked();
  expect(d.session).toMatchObject({ evidence: { gate_attempt_id: `${SESSION}-g1` }, outstanding: { refused: 1 } });
  expect(d.next(guessed).data?.next_step?.task_id).toBe('b');
  const versions = d.bodies('session_event').map(({ state_version }) => state_version);
  expect(versions).toEqual([...versions].sort((a, b) => a - b));
});

test('F14: a report that is rejected for its receipt does not consume its proof', () => {
  const d = verifying();
  d.check();
  const right = d.report();
  expect(d.next({ ...right, verification_receipt: null }).error?.code).toBe('ERROR_VERIFICATION_RECEIPT_MISSING');
  expect(d.next({ ...right, verification_receipt: {} }).error?.code).toBe('ERROR_VERIFICATION_RECEIPT_INVALID');
  expect(d.next(right)).toMatchObject({ success: true, data: { status: 'completed' } });
});

test('F15: a pause by a person has a loop signal', () => {
  const d = startWorking();
  expect(d.pause().data?.loop_signal).toBe('paused_needs_attention');
  expect(d.next().data).toMatchObject({ pause_reason: 'user', loop_signal: 'paused_needs_attention' });
});

test('F16: pass is not an outcome', () => {
  const d = startWorking();
  const answer = d.next({ ...d.report(), outcome: 'pass' });
  expect(answer.error).toMatchObject({ code: 'VALIDATION_ERROR', details: ['outcome is missing or malformed'] });
});

test('F17: the external head reveals a ledger whose end was truncated', async () => {
  const d = startWorking();
  d.work();
  const entries = d.entries;
  const headOf = (some: readonly SealedEntry[]) =>
    extendHead(
      EMPTY_HEAD,
      some.map(({ leaf_hash }) => leaf_hash),
    );
  const whole = headOf(entries);
  // Cut between two inputs, so that the rest is a chain that the machines could have produced.
  const cut = d.decisions.slice(0, -1).flatMap((decision) => decision.entries);
  const fold = new Fold(SESSION);
  for (const decision of d.decisions.slice(0, -1)) {
    for (const [i, { entry, text }] of decision.entries.entries()) {
      expect(fold.apply({ seq: entry.seq, text }, i === 0 ? decision.artifacts : [])).not.toHaveProperty('difference');
    }
  }
  expect(fold.finish()).toBeNull();
  const store = memoryStore();
  const epoch = await store.acquire();
  const nothing = { artifacts: [], proposals: [], inputs: [], opened: { case_id: null }, ended: false };
  await store.commit({
    epoch,
    trees: [{ tree_id: SESSION, from: 0, entries: cut, ...nothing, recoveryHint: null, snapshot: null }],
  });
  await expect(checkExternalHead(store, memoryHeadStore(headOf(cut)))).resolves.toBeUndefined();
  await expect(checkExternalHead(store, memoryHeadStore(whole))).rejects.toMatchObject({ code: 'LEDGER_BELOW_HEAD' });
});

test('F18: the gates are audited after a fresh pass too, before the next phase starts, whatever its first step is', () => {
  const next = spec(phase('p1', [make('a')], GATE), phase('p2', [verify('v')]));
  const d = atGate({ spec: next });
  expect(d.work().data?.next_step?.type).toBe('execute_verification');
  const { gates } = d.session;
  expect(auditGates(d.session, null)).toEqual([]);
  const tampered = { ...d.session, gates: { p1: { ...gates['p1']!, gate_attempt_id: null } } };
  const calm = { step_was_stale: false, step_was_active: true, heartbeat: 'alive' } as const;
  expect(findNextAction(tampered, calm)).toEqual({
    kind: 'refuse',
    code: 'GATE_AUDIT_FAILURE',
    details: ['p1: tampered'],
  });
  const finished = { ...tampered, tasks: { a: 'completed', v: 'completed' } } as const;
  expect(findNextAction(finished, calm)).toMatchObject({ kind: 'refuse', code: 'GATE_AUDIT_FAILURE' });
});

test('F3 F4: a runner alone can resume every pause that needs no person', () => {
  const many = spec(phase('p1', [make('a'), make('b')]), phase('p2', [make('c'), make('d')]));
  const settings = { stop_on_phase_completion: true };
  const d = new SessionDriver({ spec: many, settings, limits: { max_tasks_per_session: 1 } }).start();
  const pauses: unknown[] = [];
  for (let i = 0; i < 30 && d.session.status !== 'completed'; i += 1) {
    if (d.session.status === 'paused') {
      pauses.push(d.session.pause_reason);
      expect(d.resume({}, RUNNER).success).toBe(true);
    } else if (d.session.outstanding === null) d.next();
    else d.work();
  }
  expect(d.session.status).toBe('completed');
  expect(pauses).toEqual(['task_limit', 'task_limit', 'phase_complete', 'task_limit', 'phase_complete']);
});
