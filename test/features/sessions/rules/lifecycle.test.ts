// Which role may send a session which command, and when: every command in every status from every role, as a literal.

import { createSessionVouch } from '../../../../src/features/sessions/rules/step-proof.js';
import { describe, expect, test } from '@jest/globals';
import { artifactRef } from '../../../../src/core/contract/artifact-ref.js';
import type {
  CommandOf,
  SessionCommand,
  SessionCommandName,
} from '../../../../src/features/sessions/contract/session-records.js';
import {
  OVERRIDE_REASONS,
  PAUSE_REASONS,
  SESSION_ROLES,
  SESSION_STATUSES,
  type PauseReason,
  type SessionRole,
  type SessionStatus,
} from '../../../../src/features/sessions/contract/session.js';
import type { SessionAnswer } from '../../../../src/features/sessions/contract/session-answer.js';
import { applyCommand, toSessionRole } from '../../../../src/features/sessions/rules/apply-command.js';
import { MINUTE_MS, type SessionState } from '../../../../src/features/sessions/rules/session-state.js';
import { make, phase, spec } from '../../../fixtures/spec.js';
import { tableOf } from '../../../docs/tables.js';
import {
  MAINTAINER,
  RUNNER,
  SESSION,
  SessionDriver,
  specArtifact,
  testSecrets,
  type SessionOptions,
} from '../../../fixtures/session.js';

const GATE = { reviewer: 'callback' } as const;
const TWO = spec(phase('p1', [make('a')], GATE), phase('p2', [make('b')], GATE));

const running = (): SessionDriver => {
  const d = new SessionDriver({ spec: TWO }).start();
  d.next();
  return d;
};
const stopped = (by: (d: SessionDriver) => unknown) => (): SessionDriver => {
  const d = running();
  by(d);
  return d;
};

/** A session in each status. */
const AT: Readonly<Record<SessionStatus, () => SessionDriver>> = {
  running,
  paused: stopped((d) => d.pause()),
  failed: stopped((d) => d.next(d.report(), { spec: { structure_hash: 'f'.repeat(64) } })),
  ended: stopped((d) => d.end()),
  completed: stopped((d) => {
    while (d.session.status === 'running') d.work();
  }),
};

const override = { reason_code: 'testing', reason_detail: null } as const;
const COMMANDS: { readonly [Name in SessionCommandName]: CommandOf<Name> } = {
  next: { name: 'next', report: null, proof_sha256: null, heartbeat: false, context_usage_pct: null, spec: null },
  replay: { name: 'replay' },
  heartbeat: { name: 'heartbeat', context_usage_pct: null, estimated_tokens_used: 7 },
  verify: { name: 'verify', step_id: `${SESSION}-s1` },
  review: { name: 'review', phase_id: 'p1', step_id: `${SESSION}-s1` },
  pause: { name: 'pause', reason: 'because' },
  resume: { name: 'resume', force: true, acknowledge: null, spec: null },
  rebase: { name: 'rebase', spec: artifactRef(specArtifact(TWO)), spec_file: null, force: false },
  waive: { name: 'waive', phase_id: 'p2', ...override },
  end: { name: 'end', ...override },
};

/** The answer to a command by the rules alone, without a tree that might have ended. */
function decide(session: SessionState, command: SessionCommand, role: SessionRole) {
  return applyCommand(session, command, {
    time: '2026-01-01T00:01:00.000Z',
    input_id: 'in-x',
    actor: MAINTAINER.actor,
    role,
    vouch: createSessionVouch(SESSION, session, command.name, testSecrets),
    report: null,
    new_spec: command.name === 'rebase' ? TWO : null,
    work: { touched: [], busy: false, refuses_unmediated: false },
  });
}

const REFUSED = 'INVALID_STATE_TRANSITION';
const OVER = Object.fromEntries(Object.keys(COMMANDS).map((name) => [name, REFUSED])) as Record<
  SessionCommandName,
  string
>;
/** From a maintainer. `-> x`: the command is accepted, and the session becomes x. */
const TABLE: Readonly<Record<SessionStatus, Readonly<Record<SessionCommandName, string>>>> = {
  running: {
    next: 'STEP_RESULT_REQUIRED',
    replay: '-> running',
    heartbeat: '-> running',
    verify: 'STEP_MISMATCH',
    review: 'GATE_BLOCKED',
    pause: '-> paused',
    resume: REFUSED,
    rebase: REFUSED,
    waive: '-> running',
    end: '-> ended',
  },
  paused: {
    ...OVER,
    next: '-> paused',
    replay: '-> paused',
    resume: '-> running',
    rebase: '-> running',
    waive: '-> paused',
    end: '-> ended',
  },
  failed: {
    ...OVER,
    next: 'SPEC_REBASE_REQUIRED',
    replay: 'SPEC_REBASE_REQUIRED',
    resume: '-> running',
    rebase: '-> running',
    end: '-> ended',
  },
  completed: { ...OVER, next: '-> completed', replay: '-> completed' },
  ended: { ...OVER, next: '-> ended', replay: '-> ended' },
};
/** Commands that an agent's loop may not send in any status; `resume` depends on why the session has stopped. */
const PEOPLE_ONLY: readonly SessionCommandName[] = ['pause', 'resume', 'rebase', 'waive', 'end'];

function expected(status: SessionStatus, command: SessionCommandName, role: SessionRole): string {
  if (role === 'observer') return 'AUTHORIZATION';
  const expectedAnswer = TABLE[status][command];
  if (role === 'maintainer' || !PEOPLE_ONLY.includes(command)) return expectedAnswer;
  return command === 'resume' && expectedAnswer === REFUSED ? REFUSED : 'AUTHORIZATION';
}

const outcome = (answer: SessionAnswer | null, state: SessionState): string =>
  answer?.error?.code ?? `-> ${state.status}`;

describe.each(SESSION_STATUSES)('a session that is %s', (status) => {
  const d = AT[status]();

  test('has that status', () => {
    expect(d.session.status).toBe(status);
  });

  const rows = SESSION_ROLES.flatMap((role) =>
    (Object.keys(COMMANDS) as SessionCommandName[]).map((name) => [role, name, expected(status, name, role)] as const),
  );
  test.each(rows)('to %s, %s: %s', (role, name, says) => {
    const turn = decide(d.session, COMMANDS[name], role);
    expect(outcome(turn.answer, turn.state)).toBe(says);
    const changesState = says.startsWith('->') && !['next', 'replay'].includes(name);
    // A rejected or read-only command changes nothing and records no event.
    if (changesState) expect(turn.state.state_version).toBe(d.session.state_version + 1);
    else expect(turn).toMatchObject({ state: d.session, events: [], orders: [] });
  });
});

describe('the roles that may resume', () => {
  const ANYBODY: readonly PauseReason[] = [
    'phase_complete',
    'context_limit',
    'task_limit',
    'heartbeat_stale',
    'step_stale',
  ];
  const paused = AT.paused();

  test.each(PAUSE_REASONS)('%s', (pause_reason) => {
    const at = (role: SessionRole): string => {
      const { state, answer } = decide({ ...paused.session, pause_reason }, COMMANDS.resume, role);
      return outcome(answer, state);
    };
    expect(at('maintainer')).toBe('-> running');
    expect(at('autonomy_runner')).toBe(ANYBODY.includes(pause_reason) ? '-> running' : 'AUTHORIZATION');
    expect(at('observer')).toBe('AUTHORIZATION');
  });

  test('matches the documentation', () => {
    const documented = tableOf('docs/sessions.md', 'session-pauses').map(([reason, , , who]) => [reason, who]);
    expect(documented).toEqual(
      PAUSE_REASONS.map((reason) => [reason, ANYBODY.includes(reason) ? 'runner' : 'maintainer']),
    );
    expect(tableOf('docs/sessions.md', 'session-roles').map(([role]) => role)).toEqual(SESSION_ROLES);
  });
});

describe('S3-36 S3-39: every pause', () => {
  const failing = (d: SessionDriver): void => {
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
  };
  const skipping = spec(phase('p1', [make('a'), make('b', ['a'])]));
  /** What causes each pause, and how the documentation says that it ends. */
  const WAYS: Readonly<
    Record<PauseReason, readonly [SessionOptions, (d: SessionDriver) => unknown, (d: SessionDriver) => SessionAnswer]>
  > = {
    user: [{}, (d) => d.pause(), (d) => d.resume()],
    context_limit: [{}, (d) => d.next(d.report(), { context_usage_pct: 99 }), (d) => d.resume({}, RUNNER)],
    error_threshold: [{ limits: { max_consecutive_errors: 1 } }, (d) => d.work('failure'), (d) => d.resume()],
    blocked: [{ spec: skipping }, (d) => d.work('skipped'), (d) => d.rebase(skipping)],
    gate_failed: [{ settings: { auto_retry_fidelity_gate: false } }, failing, (d) => d.resume()],
    gate_review_required: [{ settings: { gate_policy: 'manual' } }, failing, (d) => d.acknowledge('pass')],
    task_limit: [
      { limits: { max_tasks_per_session: 1 }, spec: skipping },
      (d) => d.work(),
      (d) => d.resume({}, RUNNER),
    ],
    heartbeat_stale: [
      {},
      (d) => {
        d.pause();
        d.rebase(TWO);
        d.wait(11 * MINUTE_MS).next();
      },
      (d) => d.resume({}, RUNNER),
    ],
    step_stale: [{}, (d) => d.wait(61 * MINUTE_MS).work(), (d) => d.resume({}, RUNNER)],
    phase_complete: [
      { settings: { stop_on_phase_completion: true } },
      (d) => {
        d.work();
        d.work();
      },
      (d) => d.resume({}, RUNNER),
    ],
    fidelity_cycle_limit: [{}, failing, (d) => d.resume()],
  };

  test.each(PAUSE_REASONS)('occurs and ends as documented, and does not recur at once: %s', (reason) => {
    const [options, come, leave] = WAYS[reason];
    const d = new SessionDriver({ spec: TWO, ...options }).start();
    d.next();
    come(d);
    expect(d.session).toMatchObject({ status: 'paused', pause_reason: reason });
    // S3-39: no command of a loop alone ends this pause.
    expect(d.next().data?.next_step).toMatchObject({ type: 'pause', reason });
    expect(leave(d)).toMatchObject({ success: true, data: { status: 'running' } });
    if (d.session.outstanding === null) expect(d.next().data?.next_step?.type).not.toBe('pause');
    expect(d.session).toMatchObject({ status: 'running', pause_reason: null });
  });
});

describe('a role', () => {
  test.each(SESSION_ROLES)('%s is accepted as it is', (role) => {
    expect(toSessionRole(role)).toBe(role);
  });

  test.each(['', 'Maintainer', 'admin', ' maintainer', 'constructor', '__proto__'])('%j counts as observer', (role) => {
    expect(toSessionRole(role)).toBe('observer');
  });
});

describe('a failed session', () => {
  const hash = (d: SessionDriver) => ({ structure_hash: d.session.structure_hash });

  test('resumes only with force', () => {
    const d = AT.failed();
    const spec_as_it_was = { spec: hash(d) };
    expect(d.resume(spec_as_it_was).error).toMatchObject({
      code: 'SESSION_UNRECOVERABLE',
      details: ['force is required'],
    });
    expect(d.resume({ force: true, ...spec_as_it_was }).success).toBe(true);
    expect(d.session).toMatchObject({ status: 'running', failure_reason: null, tasks: { a: 'completed' } });
    expect(d.next().data?.next_step?.type).toBe('run_fidelity_gate');
  });

  test.each([{ structure_hash: 'e'.repeat(64) }, { problem: 'not_found' }, { problem: 'unreadable' }] as const)(
    'does not resume, even with force, while the spec is %j',
    (fact) => {
      const d = AT.failed();
      expect(d.resume({ force: true, spec: fact }).error?.code).toBe('SPEC_REBASE_REQUIRED');
      expect(d.session.status).toBe('failed');
    },
  );

  test('continues after a rebase to the current spec', () => {
    const d = AT.failed();
    const more = spec(...TWO.phases, phase('p3', [make('c')]));
    expect(d.rebase(more)).toMatchObject({ success: true, data: { status: 'running', failure_reason: null } });
    expect(d.session.tasks).toEqual({ a: 'completed' });
    expect(d.next(null, { spec: hash(d) }).data?.next_step?.type).toBe('run_fidelity_gate');
  });

  test.each(['not_found', 'unreadable'] as const)('F12: is one whose spec file is %s', (problem) => {
    const d = running();
    expect(d.next(d.report(), { spec: { problem } })).toMatchObject({
      success: false,
      error: { code: 'SESSION_UNRECOVERABLE' },
      data: { status: 'failed', failure_reason: 'spec_not_found', loop_signal: 'failed' },
    });
  });
});

describe('S3-06 F15: a report to a session that was paused meanwhile', () => {
  test.each(['success', 'failure', 'skipped'] as const)('%s: is refused, and counts after a resume', (outcome) => {
    const d = new SessionDriver({ spec: TWO }).start();
    d.next();
    const late = d.report(outcome);
    d.pause();
    const before = d.session;
    const answer = d.next(late);
    expect(answer.error).toMatchObject({ code: 'INVALID_STATE_TRANSITION', details: ['last_step_result'] });
    expect(answer).toMatchObject({ success: false, data: { status: 'paused', loop_signal: 'paused_needs_attention' } });
    expect(d.session).toEqual(before);
    expect(d.next()).toMatchObject({ success: true, data: { status: 'paused', next_step: { type: 'pause' } } });
    d.resume();
    expect(d.next(d.report('success'))).toMatchObject({ success: true, error: null });
  });
});

describe('a rebase', () => {
  test('to the spec of another id is rejected', () => {
    const d = AT.paused();
    expect(d.rebase({ ...TWO, id: 'spec-2' }).error).toMatchObject({ code: 'VALIDATION_ERROR', details: ['spec id'] });
    expect(d.session.status).toBe('paused');
  });

  test('that would lose completed tasks is rejected unless forced', () => {
    const d = AT.failed();
    const less = spec(phase('p2', [make('b')], GATE));
    expect(d.rebase(less).error).toMatchObject({ code: 'REBASE_COMPLETED_TASKS_REMOVED', details: ['a'] });
    expect(d.session.status).toBe('failed');
    expect(d.rebase(less, true).success).toBe(true);
    expect(d.session).toMatchObject({ tasks: {}, gates: {} });
    expect(d.next().data?.next_step).toMatchObject({ task_id: 'b' });
  });

  test('revokes the outstanding step: its report is rejected', () => {
    const d = AT.paused();
    const report = d.report();
    const same = { ...TWO, phases: TWO.phases.map((one) => ({ ...one, title: `${one.title}!` })) };
    expect(d.rebase(same).data?.warnings).toEqual(['NO_CHANGE']);
    expect(d.session.outstanding).toBeNull();
    expect(d.bodies('session_event').map(({ event }) => event)).toContain('step_revoked');
    expect(d.next(report).error?.code).toBe('STEP_PROOF_MISMATCH');
    expect(d.next().data?.next_step?.step_id).toBe(`${SESSION}-s2`);
  });

  test('F3: removes the cause of the pause', () => {
    const d = new SessionDriver({ spec: TWO, limits: { max_consecutive_errors: 1 } }).start();
    d.next();
    d.work('failure');
    expect(d.session.pause_reason).toBe('error_threshold');
    d.rebase(TWO);
    expect(d.next().data?.next_step?.type).toBe('implement_task');
  });

  test.each(['fidelity_cycle_limit', 'gate_failed'] as const)('F3: removes %s', (reason) => {
    const auto_retry_fidelity_gate = reason !== 'gate_failed';
    const d = new SessionDriver({ spec: TWO, settings: { auto_retry_fidelity_gate } }).start();
    d.next();
    d.verdict = 'fail';
    while (d.session.status === 'running') d.work();
    expect(d.session.pause_reason).toBe(reason);
    d.rebase(TWO);
    expect(d.next().data?.next_step?.type).toMatch(/fidelity/);
  });

  test('discards a review that a person could still acknowledge', () => {
    const d = new SessionDriver({ spec: TWO, settings: { gate_policy: 'manual' } }).start();
    d.next();
    d.work();
    d.work();
    const { ack } = d.session;
    expect(ack).not.toBeNull();
    d.rebase(spec(phase('p1', [make('a'), make('c')], GATE), ...TWO.phases.slice(1)));
    expect(d.session).toMatchObject({ status: 'running', ack: null, evidence: null });
    expect(d.next().data?.next_step).toMatchObject({ type: 'implement_task', task_id: 'c' });
    d.work();
    d.work();
    expect(d.session.ack?.gate_attempt_id).toBe(`${SESSION}-g2`);
    expect(
      d.resume({ acknowledge: { gate_attempt_id: ack?.gate_attempt_id ?? '', decision: 'pass' } }).error?.code,
    ).toBe('INVALID_GATE_ACK');
  });

  test('remembers the phases whose completion was reported, as far as they are still complete', () => {
    const three = spec(phase('p1', [make('a')]), phase('p2', [make('b')]), phase('p3', [make('c')]));
    const d = new SessionDriver({ spec: three, settings: { stop_on_phase_completion: true } }).start();
    d.next();
    d.work();
    d.resume();
    d.next();
    d.work();
    expect(d.session.phases_told).toEqual(['p1', 'p2']);
    d.rebase(spec(phase('p1', [make('a')]), phase('p2', [make('b'), make('d')]), phase('p3', [make('c')])));
    expect(d.session.phases_told).toEqual(['p1']);
    expect(d.next().data?.next_step?.task_id).toBe('d');
  });
});

describe('an end', () => {
  test.each(OVERRIDE_REASONS)('records its reason: %s', (reason_code) => {
    const d = running();
    const answer = d.tell({ name: 'end', reason_code, reason_detail: 'x' }, MAINTAINER);
    expect(answer.data).toMatchObject({ status: 'ended', loop_signal: 'paused_needs_attention', next_step: null });
    expect(d.bodies('session_event').slice(-2)).toMatchObject([
      { event: 'step_revoked', step_id: `${SESSION}-s1` },
      { event: 'end', detail: { reason_code, reason_detail: 'x' } },
    ]);
    expect(d.session).toMatchObject({ outstanding: null, pause_reason: null, failure_reason: null });
  });
});

describe('state_version', () => {
  test('increases with every command that changes anything, and only then', () => {
    const d = new SessionDriver({ spec: TWO }).start();
    const versions = [d.session.state_version];
    const steps: (() => unknown)[] = [
      () => d.replay(),
      () => d.next(),
      () => d.next(),
      () => d.replay(),
      () => d.heartbeat(),
      () => d.next(d.report('success', { step_proof: 'x' })),
      () => d.pause(),
      () => d.next(),
      () => d.resume(),
      () => d.work(),
    ];
    for (const step of steps) {
      step();
      versions.push(d.session.state_version);
    }
    expect(versions).toEqual([1, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7]);
    expect(d.bodies('session_event').map(({ state_version }) => state_version)).toEqual([1, 2, 3, 4, 5, 6, 6, 7, 7]);
  });
});
