// The next action: one fixed order of rules. If two of them apply, the earlier one decides; every pair is tested here.

import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../../src/core/contract/json.js';
import type { SessionSpec } from '../../../../src/features/sessions/contract/session-spec.js';
import {
  findNextAction,
  type InitialConditions,
  type NextAction,
} from '../../../../src/features/sessions/rules/next-action.js';
import type { GateRecord, SessionState } from '../../../../src/features/sessions/rules/session-state.js';
import { make, phase, spec, verify } from '../../../fixtures/spec.js';
import { SESSION, SessionDriver, type SessionOptions } from '../../../fixtures/session.js';
import { editedPolicy } from '../../../fixtures/tree.js';

const GATE = { reviewer: 'callback' } as const;
const TWO = spec(phase('p1', [make('a')], GATE), phase('p2', [make('b')], GATE));
const PASSED: GateRecord = {
  status: 'passed',
  verdict: 'pass',
  gate_attempt_id: 'g1',
  evaluated_at: '2026-01-01T00:00:00.000Z',
  waiver: null,
};

const CALM: InitialConditions = { step_was_stale: false, step_was_active: true, heartbeat: 'alive' };
const describeAction = (next: NextAction): string => {
  switch (next.kind) {
    case 'step':
      return next.task === null ? `${next.type} ${next.phase.id}` : `${next.type} ${next.task.id}`;
    case 'pause':
      return `pause ${next.reason} ${next.phase?.id ?? 'nowhere'}`;
    case 'complete':
      return 'complete_spec';
    case 'refuse':
      return `${next.code}: ${next.details.join()}`;
  }
};

/** A session at the start of its second phase, whose completed first phase was reported. */
function inSecondPhase(options: SessionOptions = {}): SessionState {
  const d = new SessionDriver({ spec: TWO, settings: { stop_on_phase_completion: true }, ...options }).start();
  return { ...d.session, tasks: { a: 'completed' }, gates: { p1: PASSED }, phases_told: ['p1'] };
}

interface Situation {
  readonly state?: (state: SessionState) => Partial<SessionState>;
  readonly entering?: Partial<InitialConditions>;
}

/** The rules in order: the condition of each rule, and its result. */
const RULES: readonly (readonly [string, Situation])[] = [
  ['pause step_stale p2', { entering: { step_was_stale: true } }],
  ['pause heartbeat_stale p2', { entering: { heartbeat: 'stale', step_was_active: false } }],
  ['pause context_limit p2', { state: () => ({ context: { pct: 85, said: 85, repeats: 0 } }) }],
  ['pause error_threshold p2', { state: ({ counters }) => ({ counters: { ...counters, consecutive_errors: 5 } }) }],
  ['pause task_limit p2', { state: ({ counters }) => ({ counters: { ...counters, tasks_completed: 100 } }) }],
  ['pause blocked p2', { state: ({ counters }) => ({ counters: { ...counters, skips: 21 } }) }],
  ['pause fidelity_cycle_limit p2', { state: () => ({ cycles: { phase_id: 'p2', count: 3 } }) }],
  ['pause phase_complete p1', { state: () => ({ phases_told: [] }) }],
  ['GATE_AUDIT_FAILURE: p1: tampered', { state: () => ({ gates: { p1: { ...PASSED, verdict: null } } }) }],
  ['implement_task b', {}],
];

function decided(...situations: readonly Situation[]): string {
  let state = inSecondPhase();
  let entering = CALM;
  for (const situation of situations) {
    state = { ...state, ...situation.state?.(state) };
    entering = { ...entering, ...situation.entering };
  }
  return describeAction(findNextAction(state, entering));
}

describe('S3-01: the order of the rules', () => {
  test.each(RULES)('%s, if no other rule applies', (says, situation) => {
    expect(decided(situation)).toBe(says);
  });

  const pairs = RULES.flatMap(([first, a], i) =>
    RULES.slice(i + 1).map(([second, b]) => [first, second, a, b] as const),
  );
  // A phase whose gates are not as required is not reported as complete either.
  const exception = 'pause phase_complete p1';
  test.each(pairs)('%s precedes %s', (first, second, a, b) => {
    const expected = first === exception && second.startsWith('GATE_AUDIT') ? second : first;
    expect(decided(a, b)).toBe(expected);
    expect(decided(b, a)).toBe(expected);
  });

  test('limits apply exactly at their value', () => {
    const at = (state: (state: SessionState) => Partial<SessionState>): string => decided({ state });
    expect(at(() => ({ context: { pct: 84.9, said: 84, repeats: 0 } }))).toBe('implement_task b');
    expect(at(({ counters }) => ({ counters: { ...counters, consecutive_errors: 4 } }))).toBe('implement_task b');
    expect(at(({ counters }) => ({ counters: { ...counters, tasks_completed: 99 } }))).toBe('implement_task b');
    expect(at(({ counters }) => ({ counters: { ...counters, skips: 20 } }))).toBe('implement_task b');
    expect(at(() => ({ cycles: { phase_id: 'p2', count: 2 } }))).toBe('implement_task b');
    expect(at(() => ({ cycles: { phase_id: 'p1', count: 3 } }))).toBe('implement_task b');
    expect(decided({ entering: { heartbeat: 'late', step_was_active: false } })).toBe('implement_task b');
    expect(decided({ entering: { heartbeat: 'stale', step_was_active: true } })).toBe('implement_task b');
  });

  test('the limit of tasks does not stop a session that has no tasks left', () => {
    const all = { a: 'completed', b: 'completed' } as const;
    const state = ({ counters }: SessionState) => ({ tasks: all, counters: { ...counters, tasks_completed: 100 } });
    expect(decided({ state })).toBe('run_fidelity_gate p2');
  });
});

describe('S3-01: within a phase', () => {
  const ONE = spec(phase('p', [make('a'), make('b', ['a']), verify('v', ['b'])], GATE), phase('q', [make('c')]));
  const STATUSES = ['completed', 'skipped', 'pending'] as const;
  const GATES: readonly (GateRecord | null)[] = [
    null,
    PASSED,
    { ...PASSED, status: 'failed', verdict: 'fail' },
    { ...PASSED, status: 'waived', waiver: { reason_code: 'testing', reason_detail: null, at: '', by: 'anna' } },
  ];

  interface Case {
    readonly tasks: Readonly<Record<string, (typeof STATUSES)[number]>>;
    readonly gate: GateRecord | null;
    readonly auto_retry_fidelity_gate: boolean;
    readonly allow_skipped: boolean;
  }
  const cases: readonly Case[] = STATUSES.flatMap((a) =>
    STATUSES.flatMap((b) =>
      STATUSES.flatMap((v) =>
        GATES.flatMap((gate) =>
          [true, false].flatMap((auto_retry_fidelity_gate) =>
            [true, false].map((allow_skipped) => ({
              tasks: { a, b, v },
              gate,
              auto_retry_fidelity_gate,
              allow_skipped,
            })),
          ),
        ),
      ),
    ),
  );

  /** The contract's order, written independently: tasks, verifications, gate, next phase. */
  function expected({ tasks, gate, auto_retry_fidelity_gate, allow_skipped }: Case): string {
    if (tasks['a'] === 'pending') return 'implement_task a';
    if (tasks['b'] === 'pending') return tasks['a'] === 'completed' ? 'implement_task b' : 'pause blocked p';
    if (tasks['v'] === 'pending') return tasks['b'] === 'completed' ? 'execute_verification v' : 'pause blocked p';
    if (gate?.status === 'passed' || gate?.status === 'waived') return 'implement_task c';
    if (!allow_skipped && Object.values(tasks).includes('skipped')) return 'pause blocked p';
    if (gate === null) return 'run_fidelity_gate p';
    return auto_retry_fidelity_gate ? 'address_fidelity_feedback p' : 'pause gate_failed p';
  }

  test('every state of its tasks and its gate leads to the step that the contract defines', () => {
    expect(cases).toHaveLength(432);
    for (const one of cases) {
      const { auto_retry_fidelity_gate, allow_skipped } = one;
      const d = new SessionDriver({ spec: ONE, settings: { auto_retry_fidelity_gate, allow_skipped } }).start();
      const settled = Object.entries(one.tasks).filter(([, status]) => status !== 'pending');
      const state: SessionState = {
        ...d.session,
        tasks: Object.fromEntries(settled) as SessionState['tasks'],
        gates: one.gate === null ? {} : { p: one.gate },
      };
      expect(describeAction(findNextAction(state, CALM))).toBe(expected(one));
    }
  });

  test('tasks come in spec order, once their dependencies are completed', () => {
    const tangled = spec(phase('p', [make('c', ['b']), make('b', ['a']), verify('v'), make('a'), make('d')]));
    const d = new SessionDriver({ spec: tangled }).start();
    const order: unknown[] = [];
    for (let answer = d.next(); answer.data?.next_step?.type !== 'complete_spec'; answer = d.work()) {
      order.push(answer.data?.next_step?.task_id);
    }
    expect(order).toEqual(['a', 'b', 'c', 'd', 'v']);
  });

  test('S3-40: a spec is complete once all its work is done and its gates have passed, and never before', () => {
    const state = inSecondPhase();
    const all: Partial<SessionState> = { tasks: { a: 'completed', b: 'completed' }, phases_told: ['p1', 'p2'] };
    expect(describeAction(findNextAction({ ...state, ...all }, CALM))).toBe('run_fidelity_gate p2');
    const gates = { p1: PASSED, p2: PASSED };
    expect(describeAction(findNextAction({ ...state, ...all, gates }, CALM))).toBe('complete_spec');
    const tampered = { p1: PASSED, p2: { ...PASSED, gate_attempt_id: null } };
    expect(describeAction(findNextAction({ ...state, ...all, gates: tampered }, CALM))).toBe(
      'GATE_AUDIT_FAILURE: p2: tampered',
    );
  });
});

describe('stop_on_phase_completion', () => {
  const stopping = (settings: SessionOptions['settings'] = {}) =>
    new SessionDriver({ spec: TWO, settings: { stop_on_phase_completion: true, ...settings } }).start();
  const work = (d: SessionDriver): void => {
    if (d.session.outstanding === null) d.next();
    while (d.session.status === 'running') d.work();
  };

  test('pauses once after each phase, including the last, and any loop may resume', () => {
    const d = stopping();
    const pauses: unknown[] = [];
    for (let i = 0; i < 5 && d.session.status !== 'completed'; i += 1) {
      work(d);
      const { pause_reason } = d.session;
      if (pause_reason === null) break;
      pauses.push([pause_reason, ...d.session.phases_told]);
      expect(d.replay().data).toMatchObject({
        loop_signal: 'phase_complete',
        next_step: { type: 'pause', reason: 'phase_complete', phase_id: d.session.phases_told.at(-1) },
      });
      d.resume({}, d.by);
    }
    expect(pauses).toEqual([
      ['phase_complete', 'p1'],
      ['phase_complete', 'p1', 'p2'],
    ]);
    expect(d.session.status).toBe('completed');
  });

  test('is off by default, and then has no effect', () => {
    const d = stopping({ stop_on_phase_completion: false });
    work(d);
    expect(d.session).toMatchObject({ status: 'completed', phases_told: [] });
  });
});

describe('checks before the search for a next step', () => {
  const changed = { spec: { structure_hash: 'f'.repeat(64) } } as const;
  const gone = { spec: { problem: 'not_found' } } as const;
  const startWorking = (options: SessionOptions = {}): SessionDriver => {
    const d = new SessionDriver({ spec: TWO, ...options }).start();
    d.next();
    return d;
  };

  test('a repeated report precedes the status of the session', () => {
    const d = startWorking();
    const report = d.report();
    d.next(report);
    d.pause();
    expect(d.next(report).data).toMatchObject({ status: 'running', next_step: { type: 'run_fidelity_gate' } });
  });

  test('a paused session precedes a report, which is then not judged', () => {
    const d = startWorking();
    d.pause();
    expect(d.next({ step_proof: 7 }).error?.code).toBe('INVALID_STATE_TRANSITION');
    expect(d.next().data?.next_step).toMatchObject({ type: 'pause', reason: 'user' });
    expect(d.outstanding.refused).toBe(0);
  });

  test('an outstanding step precedes a changed spec', () => {
    const d = startWorking();
    expect(d.next(null, changed).error?.code).toBe('STEP_RESULT_REQUIRED');
    expect(d.session.status).toBe('running');
  });

  test('a rejected report precedes a changed spec', () => {
    const d = startWorking();
    expect(d.next(d.report('success', { step_proof: 'x' }), changed).error?.code).toBe('STEP_PROOF_MISMATCH');
    expect(d.session.status).toBe('running');
  });

  test('the outcome is recorded before a changed spec fails the session', () => {
    const d = startWorking();
    expect(d.next(d.report(), changed).error?.code).toBe('SPEC_REBASE_REQUIRED');
    expect(d.session).toMatchObject({
      status: 'failed',
      failure_reason: 'spec_structure_changed',
      tasks: { a: 'completed' },
    });
  });

  test('a changed or missing spec precedes every limit', () => {
    for (const fact of [changed, gone]) {
      const d = startWorking();
      d.next(d.report(), { ...fact, context_usage_pct: 99 });
      expect(d.session.status).toBe('failed');
    }
  });

  test('an unchanged spec changes nothing', () => {
    const d = startWorking();
    const { structure_hash } = d.session;
    expect(d.next(d.report(), { spec: { structure_hash } }).data?.next_step?.type).toBe('run_fidelity_gate');
  });

  describe('a report with two mistakes is rejected for the first one:', () => {
    const verifying = (): SessionDriver => {
      const d = startWorking({ spec: spec(phase('p', [verify('v')])) });
      d.check();
      return d;
    };
    test.each<readonly [string, JsonObject, string]>([
      ['a missing proof before its form', { step_proof: null, outcome: 'pass' }, 'STEP_PROOF_MISSING'],
      ['its form before a wrong proof', { step_proof: 'x', outcome: 'pass' }, 'VALIDATION_ERROR'],
      ['a wrong proof before another step', { step_proof: 'x', step_id: 'y' }, 'STEP_PROOF_MISMATCH'],
      ['another step before a missing receipt', { task_id: 'y', verification_receipt: null }, 'STEP_MISMATCH'],
      [
        'a missing receipt before the outcome',
        { verification_receipt: null, outcome: 'failure' },
        'ERROR_VERIFICATION_RECEIPT_MISSING',
      ],
    ])('%s', (_what, wrong, code) => {
      const d = verifying();
      expect(d.next({ ...d.report(), ...wrong }).error?.code).toBe(code);
    });

    test('a wrong receipt precedes a check in flight', () => {
      const d = verifying();
      d.ask({ name: 'verify', step_id: d.outstanding.step.step_id });
      expect(d.next(d.report('success')).error?.code).toBe('ERROR_VERIFICATION_RECEIPT_MISSING');
    });
  });
});

describe('S3-21: comparison of reported and actual changes', () => {
  const strict = editedPolicy({
    lanes: [['  - lane_id: SANDBOX_FILES\n', '  - lane_id: SANDBOX_FILES\n    refuses_unmediated: true\n']],
  });
  const startWorking = (policies?: ReturnType<typeof editedPolicy>): SessionDriver => {
    const d = new SessionDriver({ spec: TWO, ...(policies === undefined ? {} : { policies }) }).start();
    d.next();
    return d;
  };
  const write = (d: SessionDriver, path: string): void => {
    const run_id = d.outstanding.step.run_id ?? '';
    d.act('WRITE_FILE', { path, content: 'x' }, { paths: [], usage: { bytes: 0, files: 0 } }, run_id);
    const perform = d.tree.pending.find(({ kind }) => kind === 'perform');
    d.done(perform?.run_id ?? '', { bytes_written: 1 });
  };
  const consumed = (d: SessionDriver) =>
    d.bodies('session_event').find(({ event }) => event === 'step_consumed')?.detail;

  test.each([undefined, strict])('is `mediated` if the platform has seen all of them', (policies) => {
    const d = startWorking(policies);
    write(d, '/sandbox/a.md');
    write(d, '/sandbox/d/b.md');
    const files_touched = ['a.md', './d/b.md', '/sandbox/a.md'];
    expect(d.next(d.report('success', { files_touched })).success).toBe(true);
    expect(consumed(d)).toMatchObject({ mediation: 'mediated', files_claimed: 2, files_changed: 2, files_unseen: 0 });
  });

  test.each([undefined, strict])('is empty if nothing was changed and nothing reported', (policies) => {
    const d = startWorking(policies);
    expect(d.next(d.report()).success).toBe(true);
    expect(consumed(d)).toMatchObject({ mediation: 'none', files_claimed: 0, files_changed: 0 });
  });

  test('is recorded if the platform has not seen some of them', () => {
    const d = startWorking();
    write(d, '/sandbox/a.md');
    expect(d.next(d.report('success', { files_touched: ['a.md', 'b.md'] })).success).toBe(true);
    expect(consumed(d)).toMatchObject({ mediation: 'unmediated', files_claimed: 2, files_changed: 1, files_unseen: 1 });
  });

  test('rejects the report in a lane that forbids unmediated work, and the step stays outstanding', () => {
    const d = startWorking(strict);
    const answer = d.next(d.report('success', { files_touched: ['b.md'] }));
    expect(answer.error).toMatchObject({ code: 'AUTHORIZATION', details: ['files_touched'] });
    expect(d.outstanding.refused).toBe(1);
    expect(d.session.tasks).toEqual({});
    write(d, '/sandbox/b.md');
    expect(d.next(d.report('success', { files_touched: ['b.md'] })).success).toBe(true);
  });

  test('includes changes from before a pause, when another agent had the step', () => {
    const d = startWorking(strict);
    write(d, '/sandbox/a.md');
    d.pause();
    d.resume();
    expect(d.outstanding.run_ids).toEqual([`${SESSION}.1.1`, `${SESSION}.2.1`]);
    expect(d.next(d.report('success', { files_touched: ['a.md'] })).success).toBe(true);
  });

  test('rejects a report while a run of the step is still working', () => {
    const d = startWorking();
    const run_id = d.outstanding.step.run_id ?? '';
    d.act('WRITE_FILE', { path: '/sandbox/a.md', content: 'x' }, { paths: [], usage: { bytes: 0, files: 0 } }, run_id);
    const { session } = d;
    expect(d.next(d.report()).error?.code).toBe('AGENT_BUSY');
    expect(d.session).toEqual(session);
    d.done(d.tree.pending.find(({ kind }) => kind === 'perform')?.run_id ?? '', { bytes_written: 1 });
    expect(d.next(d.report()).success).toBe(true);
  });
});

describe('S3-07 S3-19 S3-20: an issued step', () => {
  const WORDS: SessionSpec = spec(
    phase(
      'p',
      [
        make('a', [], { acceptance: ['It is short.'], lane: 'SANDBOX_FILES' }),
        verify('v', [], { instruction: 'Look.' }),
      ],
      GATE,
    ),
  );

  test('is complete: its type, its task, and its instruction', () => {
    const d = new SessionDriver({ spec: WORDS }).start();
    const steps = [d.next().data?.next_step];
    d.verdict = 'fail';
    for (let i = 0; i < 3; i += 1) steps.push(d.work().data?.next_step);
    expect(steps.map((step) => [step?.type, step?.task_id, step?.task_title, step?.phase_id])).toEqual([
      ['implement_task', 'a', 'Make a', 'p'],
      ['execute_verification', 'v', 'Verify v', 'p'],
      ['run_fidelity_gate', null, null, 'p'],
      ['address_fidelity_feedback', null, null, 'p'],
    ]);
    expect(steps.map((step) => step?.step_id)).toEqual([1, 2, 3, 4].map((n) => `${SESSION}-s${n}`));
    for (const step of steps) {
      expect(step?.instruction).not.toBe('');
      expect(step?.instructions.at(-1)).toMatchObject({ tool: 'task', action: 'session-step' });
      expect(step).toMatchObject({ reason: null, lane_id: 'SANDBOX_FILES', issue: 1 });
    }
    expect(steps[0]?.instruction).toBe('Write /sandbox/a.md.\n\nIt is accepted when:\n- It is short.');
    expect(steps[0]?.instructions.map(({ tool, action }) => `${tool} ${action}`)).toContain('task prepare');
    expect(steps[1]?.instruction).toMatch(/^Look\.\n\nVerify: Verify v\. /);
  });

  test('has an agent run of its own, in its lane, which ends with the report', () => {
    const d = new SessionDriver({ spec: WORDS }).start();
    d.next();
    const run_id = d.outstanding.step.run_id ?? '';
    expect(d.created(run_id)).toMatchObject({ run_kind: 'agent', lane_id: 'SANDBOX_FILES', role_id: 'SANDBOX_AGENT' });
    expect(d.tree.isLive(run_id)).toBe(true);
    d.work();
    expect(d.endings[run_id]).toBe('completed:end_of_input');
  });

  test('S3-38 S3-39: pause needs no report: it has a reason, and the loop must stop', () => {
    const d = new SessionDriver({ spec: WORDS }).start();
    d.next();
    const answer = d.next(d.report(), { context_usage_pct: 90 });
    expect(answer.data?.next_step).toMatchObject({
      type: 'pause',
      reason: 'context_limit',
      phase_id: 'p',
      run_id: null,
    });
    expect(answer.data?.next_step?.instruction).toContain('Stop, and hand on the exit packet');
    expect(answer.data?.next_step).not.toHaveProperty('issue');
    expect(answer.data?.exit_packet).toMatchObject({
      pause_reason: 'context_limit',
      loop_signal: 'paused_needs_attention',
    });
    // The session stays paused and reports it, whatever the loop sends.
    const { session } = d;
    for (let i = 0; i < 3; i += 1) expect(d.next().data?.next_step).toEqual(answer.data?.next_step);
    expect(d.next({ step_id: 'x' }).error?.code).toBe('INVALID_STATE_TRANSITION');
    expect(d.session).toEqual(session);
  });
});
