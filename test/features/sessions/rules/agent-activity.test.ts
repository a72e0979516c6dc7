// Figures that an agent reports about its context, its silence, and limits of counts: each can pause a session, and
// none pauses it twice for the same cause (F3).

import { describe, expect, test } from '@jest/globals';
import {
  POSTURE_SETTINGS,
  POSTURES,
  SESSION_LIMITS,
  SessionLimits as SessionLimitsSchema,
  type PauseReason,
  type SessionLimits,
} from '../../../../src/features/sessions/contract/session.js';
import {
  updateContext,
  effectiveStatus,
  heartbeatStatus,
  isStepStale,
} from '../../../../src/features/sessions/rules/agent-activity.js';
import { FRESH_CONTEXT, MINUTE_MS, type SessionState } from '../../../../src/features/sessions/rules/session-state.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { tableOf } from '../../../docs/tables.js';
import { RUNNER, SessionDriver, type SessionOptions } from '../../../fixtures/session.js';

const many = (tasks = 30) =>
  spec(
    phase(
      'p',
      Array.from({ length: tasks }, (_, i) => make(`t${i}`)),
    ),
  );
const startWorking = (options: SessionOptions = {}): SessionDriver => {
  const d = new SessionDriver({ spec: many(), ...options }).start();
  d.next();
  return d;
};

describe("the estimated fill level of an agent's context", () => {
  /** Figures reported at the end of one step each; null: no report. */
  const after = (said: readonly (number | null)[], limits: Partial<SessionLimits> = {}): number[] => {
    let context = FRESH_CONTEXT;
    return said.map((figure) => {
      context = updateContext(context, figure, 1, { ...SESSION_LIMITS, ...limits });
      return context.pct;
    });
  };

  test.each<readonly [string, readonly (number | null)[], readonly number[]]>([
    ['a rise is believed', [12, 30.5, 31, 100], [12, 30.5, 31, 100]],
    ['a fall is not', [50, 40, 49, 10], [50, 50, 50, 50]],
    ['a fall to almost nothing is that of a fresh context', [80, 9.9, 20], [80, 9.9, 20]],
    ['a fall to 10 is ignored', [80, 10], [80, 80]],
    ['a fall to nothing is one', [80, 0, 0], [80, 0, 0]],
    ['a rise after an ignored fall starts from the accepted figure', [50, 20, 51], [50, 50, 51]],
    ['the same figure for the fifth time is not believed', [50, 50, 50, 50, 50], [50, 50, 50, 50, 55]],
    ['nor ever after', [50, 50, 50, 50, 50, 50, 50], [50, 50, 50, 50, 55, 60, 65]],
    ['a rise in between begins anew', [50, 50, 50, 50, 51, 51, 51, 51], [50, 50, 50, 50, 51, 51, 51, 51]],
    ['figures that fall are no better than one that stays', [50, 49, 48, 47, 46], [50, 50, 50, 50, 55]],
    ['a fresh figure over and over is not believed either', [5, 5, 5, 5, 5, 5, 5], [5, 5, 5, 5, 10, 15, 20]],
    ['another fresh one is', [5, 6, 5, 6, 5, 6], [5, 6, 5, 6, 5, 6]],
    ['it is never more than full', [99, 99, 99, 99, 99, 99], [99, 99, 99, 99, 100, 100]],
    ['without a figure steps are counted', [null, null, null], [3, 6, 9]],
    ['from the last figure on', [50, null, null, 52, 60], [50, 53, 56, 56, 60]],
    ['silence is no way to say the same again', [50, 50, 50, null, 50, 50], [50, 50, 50, 53, 53, 53]],
    ['until it is full', [98, null, null], [98, 100, 100]],
  ])('%s', (_what, said, believed) => {
    expect(after(said)).toEqual(believed);
  });

  test('every parameter of the estimate can be set', () => {
    expect(after([null, null], { avg_pct_per_step: 20 })).toEqual([20, 40]);
    expect(after([50, 50, 50], { context_staleness_threshold: 2, context_staleness_penalty_pct: 20 })).toEqual([
      50, 70, 90,
    ]);
    expect(after([80, 49, 60], { context_reset_threshold_pct: 50 })).toEqual([80, 49, 60]);
    expect(after([80, 0], { context_reset_threshold_pct: 0 })).toEqual([80, 80]);
  });

  test('a report between two steps does not count as a step', () => {
    let context = updateContext(FRESH_CONTEXT, 50, 1, SESSION_LIMITS);
    for (let i = 0; i < 20; i += 1) context = updateContext(context, 50, 0, SESSION_LIMITS);
    expect(context.pct).toBe(50);
    expect(updateContext(context, null, 0, SESSION_LIMITS).pct).toBe(50);
    expect(updateContext(context, 60, 0, SESSION_LIMITS).pct).toBe(60);
    expect(updateContext(context, 3, 0, SESSION_LIMITS).pct).toBe(3);
  });

  test('a session pauses when the context is full enough, whichever command reports it', () => {
    const reporting = startWorking();
    expect(reporting.next(reporting.report(), { context_usage_pct: 84.9 }).data?.status).toBe('running');
    expect(reporting.next(reporting.report(), { context_usage_pct: 85 }).data?.pause_reason).toBe('context_limit');
    const beating = startWorking();
    beating.heartbeat(90);
    expect(beating.next(beating.report(), { context_usage_pct: null }).data?.pause_reason).toBe('context_limit');
    const silent = startWorking();
    let steps = 0;
    for (; silent.session.status === 'running'; steps += 1) silent.next(silent.report(), { context_usage_pct: null });
    expect([steps, silent.session.pause_reason]).toEqual([28, 'context_limit']);
  });

  test('an agent that always reports the same figure is stopped nevertheless', () => {
    for (const figure of [0, 5, 50]) {
      const d = startWorking();
      while (d.session.status === 'running') d.next(d.report(), { context_usage_pct: figure });
      expect(d.session.pause_reason).toBe('context_limit');
    }
  });

  test('F3: a resumed session starts with a fresh context', () => {
    const d = startWorking();
    d.next(d.report(), { context_usage_pct: 99 });
    expect(d.resume({}, RUNNER).success).toBe(true);
    expect(d.session.context).toEqual(FRESH_CONTEXT);
    expect(d.next(null, { context_usage_pct: 20 }).data?.next_step?.type).toBe('implement_task');
  });
});

describe('the documentation', () => {
  test('lists every limit with its default and its range', () => {
    const ranges = SessionLimitsSchema.properties as unknown as Readonly<
      Record<string, { minimum: number; maximum: number }>
    >;
    const expected = Object.entries(SESSION_LIMITS).map(([name, value]) => {
      const { minimum, maximum } = ranges[name] ?? { minimum: 0, maximum: 0 };
      return [name, `${value}`, name === 'heartbeat_grace_minutes' ? 'less than stale' : `${minimum} to ${maximum}`];
    });
    expect(tableOf('docs/sessions.md', 'session-limits').map((row) => row.slice(0, 3))).toEqual(expected);
  });

  test('lists every posture', () => {
    const says = (value: boolean): string => (value ? 'yes' : 'no');
    const columns = POSTURES.map((posture) => {
      const { limits, ...set } = POSTURE_SETTINGS[posture];
      const { max_tasks_per_session, max_consecutive_errors, max_fidelity_review_cycles_per_phase } = limits;
      return [
        set.gate_policy,
        says(set.enforce_gates),
        says(set.allow_gate_waiver),
        says(set.allow_skipped),
        says(set.stop_on_phase_completion),
        says(set.auto_retry_fidelity_gate),
        [max_tasks_per_session, max_consecutive_errors, max_fidelity_review_cycles_per_phase].join(', '),
      ];
    });
    const [head, ...rows] = tableOf('docs/sessions.md', 'session-postures').map(([, ...cells]) => cells);
    const documented = [head, ...rows].map((row) =>
      row?.map((cell) => cell.replace(/, (?:always|never|no other)$/, '')),
    );
    expect(documented).toEqual(columns[0]?.map((_cell, i) => columns.map((column) => column[i])));
  });
});

describe('silence of the agent', () => {
  const at = (ms: number): string => new Date(Date.parse('2026-01-01T00:00:00.000Z') + ms).toISOString();
  const state = (issued_at: number, heartbeat_at: number): SessionState => {
    const d = startWorking();
    return {
      ...d.session,
      outstanding: { ...d.outstanding, issued_at: at(issued_at) },
      heartbeat_at: at(heartbeat_at),
    };
  };
  const HOUR = 60 * MINUTE_MS;

  test.each([
    [0, 0, HOUR, false],
    [0, 0, HOUR + 1, true],
    [0, HOUR, 2 * HOUR, false],
    [0, HOUR, 2 * HOUR + 1, true],
    [HOUR, 0, 2 * HOUR, false],
    [HOUR, 0, 2 * HOUR + 1, true],
  ])('a step issued %d ms ago, with a heartbeat at %d, is stale at %d: %s', (issued_at, heartbeat_at, now, stale) => {
    expect(isStepStale(state(issued_at, heartbeat_at), at(now))).toBe(stale);
  });

  test('without an outstanding step no step is stale', () => {
    expect(isStepStale({ ...state(0, 0), outstanding: null }, at(99 * HOUR))).toBe(false);
  });

  test.each([
    [5 * MINUTE_MS, 'alive'],
    [5 * MINUTE_MS + 1, 'late'],
    [10 * MINUTE_MS, 'late'],
    [10 * MINUTE_MS + 1, 'stale'],
  ])('%d ms after the last heartbeat the agent is %s', (ms, heartbeat) => {
    expect(heartbeatStatus(state(0, 0), at(ms))).toBe(heartbeat);
  });

  test('a running session without an active agent reports paused, and stays running', () => {
    expect(effectiveStatus(state(0, 0), at(10 * MINUTE_MS))).toBe('running');
    expect(effectiveStatus(state(0, 0), at(10 * MINUTE_MS + 1))).toBe('paused');
    const patient = { ...state(0, 0).settings, limits: { ...SESSION_LIMITS, heartbeat_stale_minutes: 10_000 } };
    expect(effectiveStatus({ ...state(0, 0), settings: patient }, at(HOUR + 1))).toBe('paused');
    for (const status of ['paused', 'failed', 'completed', 'ended'] as const) {
      expect(effectiveStatus({ ...state(0, 0), status }, at(99 * HOUR))).toBe(status);
    }
  });

  test('during a step only causes a warning', () => {
    const d = startWorking();
    const answers = [4, 9, 20].map((minutes) => d.wait(minutes * MINUTE_MS).next(d.report()).data);
    expect(answers.map((data) => [data?.status, data?.warnings])).toEqual([
      ['running', []],
      ['running', ['HEARTBEAT_STALE']],
      ['running', ['HEARTBEAT_STALE']],
    ]);
  });

  test('ends with a heartbeat, alone or with a report', () => {
    const d = startWorking();
    d.wait(20 * MINUTE_MS);
    expect(d.next(d.report(), { heartbeat: true }).data?.warnings).toEqual([]);
    d.wait(20 * MINUTE_MS).heartbeat();
    expect(d.next(d.report()).data?.warnings).toEqual([]);
  });

  test('F4: between steps pauses the session as heartbeat_stale, and any loop may resume it, however late', () => {
    const d = new SessionDriver({ spec: many() }).start();
    d.wait(10 * MINUTE_MS);
    expect(d.next().data).toMatchObject({
      status: 'paused',
      pause_reason: 'heartbeat_stale',
      loop_signal: 'paused_needs_attention',
    });
    d.wait(99 * MINUTE_MS);
    expect(d.resume({}, RUNNER).success).toBe(true);
    expect(d.next().data?.next_step?.type).toBe('implement_task');
  });

  test('between steps does not pause it if the command itself carries a heartbeat', () => {
    const driver = new SessionDriver({ spec: many() }).start();
    expect(driver.wait(20 * MINUTE_MS).next(null, { heartbeat: true }).data?.next_step?.type).toBe('implement_task');
    const beating = new SessionDriver({ spec: many() }).start();
    beating.wait(20 * MINUTE_MS).heartbeat();
    expect(beating.next().data?.next_step?.type).toBe('implement_task');
  });

  test('during a whole step: the report is accepted, then the session pauses as step_stale; nothing is lost, and any loop may resume it (F4)', () => {
    const d = startWorking();
    const report = d.wait(61 * MINUTE_MS).report();
    expect(d.next(report).data).toMatchObject({ status: 'paused', pause_reason: 'step_stale' });
    expect(d.session.tasks).toEqual({ t0: 'completed' });
    expect(d.resume({}, RUNNER).success).toBe(true);
    expect(d.next().data?.next_step?.task_id).toBe('t1');
  });

  test('during a step does not count if there were heartbeats', () => {
    const d = startWorking();
    for (let i = 0; i < 5; i += 1) d.wait(50 * MINUTE_MS).heartbeat();
    expect(d.next(d.report()).data?.status).toBe('running');
  });

  test('of an agent that never returns leaves the step to the next agent, however late that comes', () => {
    const d = startWorking();
    d.wait(1_000 * MINUTE_MS);
    expect(d.next().error?.code).toBe('STEP_RESULT_REQUIRED');
    expect(d.replay().data?.next_step).toEqual(d.outstanding.step);
    d.heartbeat();
    expect(d.next(d.report()).data?.status).toBe('running');
  });
});

describe('F3: the cause of a pause does not pause the session again at once', () => {
  const forged = (d: SessionDriver) => d.next(d.report('success', { step_proof: 'x' }));
  const cases: readonly (readonly [PauseReason, string, number, SessionOptions, (d: SessionDriver) => unknown])[] = [
    ['error_threshold', 'failures', 2, { limits: { max_consecutive_errors: 2 } }, (d) => d.work('failure')],
    ['task_limit', 'tasks', 2, { limits: { max_tasks_per_session: 2 } }, (d) => d.work()],
    ['blocked', 'skips', 2, { limits: { max_skips: 1 } }, (d) => d.work('skipped')],
    ['blocked', 'refused reports', 3, {}, forged],
    ['context_limit', 'full context', 1, {}, (d) => d.next(d.report(), { context_usage_pct: 90 })],
  ];

  test.each(cases)('%s after a number of %s: %d, each time', (reason, _what, count, options, work) => {
    const d = startWorking(options);
    for (let round = 0; round < 3; round += 1) {
      let done = 0;
      for (; d.session.status === 'running'; done += 1) work(d);
      expect([d.session.pause_reason, done]).toEqual([reason, count]);
      d.resume();
      if (d.session.outstanding === null) expect(d.next().data?.next_step?.type).toBe('implement_task');
    }
  });

  test('counts consecutive errors: a success resets the count, a skip does not', () => {
    const d = startWorking({ limits: { max_consecutive_errors: 3 } });
    for (const outcome of ['failure', 'failure', 'success', 'failure', 'skipped', 'failure'] as const) d.work(outcome);
    expect(d.session).toMatchObject({ status: 'running', counters: { consecutive_errors: 2, skips: 1 } });
    expect(d.work('failure').data?.pause_reason).toBe('error_threshold');
  });

  test('a resume resets the errors only if they caused the pause', () => {
    const d = startWorking({ limits: { max_consecutive_errors: 2 } });
    d.work('failure');
    d.pause();
    d.resume();
    expect(d.work('failure').data?.pause_reason).toBe('error_threshold');
  });

  test('C74: counts tasks and skips per activation, and steps in the whole session', () => {
    const d = startWorking();
    d.work();
    d.work('skipped');
    expect(d.session.counters).toEqual({ tasks_completed: 1, skips: 1, consecutive_errors: 0, steps_executed: 2 });
    d.pause();
    d.resume();
    expect(d.session.counters).toEqual({ tasks_completed: 0, skips: 0, consecutive_errors: 0, steps_executed: 2 });
  });

  test('C73: a loop that pauses for its context and resumes itself cannot exceed the limit of skips', () => {
    const d = startWorking({ limits: { max_skips: 1 } });
    d.next(d.report('skipped'), { context_usage_pct: 99 });
    expect(d.session.pause_reason).toBe('context_limit');
    d.resume({}, RUNNER);
    d.next();
    expect(d.work('skipped').data?.pause_reason).toBe('blocked');
    expect(d.resume({}, RUNNER).error?.code).toBe('AUTHORIZATION');
    d.resume();
    expect(d.session.counters.skips).toBe(0);
  });
});
