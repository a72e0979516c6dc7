// The loop signal of every answer: each error code in each status and for each reason to pause, as a literal.

import { describe, expect, test } from '@jest/globals';
import {
  LOOP_SIGNALS,
  PAUSE_REASONS,
  SESSION_STATUSES,
  type LoopSignal,
  type PauseReason,
} from '../../../../src/features/sessions/contract/session.js';
import { SESSION_ERRORS, type SessionErrorCode } from '../../../../src/features/sessions/contract/session-answer.js';
import {
  sessionAnswer,
  rejectionAnswer,
  rejectionWithoutSession,
} from '../../../../src/features/sessions/rules/command-answer.js';
import { loopSignal, recommendedActions } from '../../../../src/features/sessions/rules/loop-signal.js';
import type { SessionState } from '../../../../src/features/sessions/rules/session-state.js';
import { tableOf } from '../../../docs/tables.js';
import { SESSION, SessionDriver } from '../../../fixtures/session.js';

const B = 'blocked_runtime';
const P = 'paused_needs_attention';
const F = 'failed';
const C = 'phase_complete';
const S = 'spec_complete';
const GO_ON = null;

type Row = readonly (LoopSignal | null)[];
/** running, paused (but for phase_complete), paused for phase_complete, completed, failed, ended */
const GOES_ON: Row = [GO_ON, P, C, S, F, P];
const BLOCKS: Row = [B, B, C, S, B, B];
const FAILS: Row = [F, F, C, S, F, F];

const TABLE: Readonly<Record<SessionErrorCode | 'none', Row>> = {
  none: GOES_ON,
  VALIDATION_ERROR: GOES_ON,
  STEP_RESULT_REQUIRED: GOES_ON,
  STEP_MISMATCH: GOES_ON,
  STEP_PROOF_MISSING: BLOCKS,
  STEP_PROOF_MISMATCH: BLOCKS,
  STEP_PROOF_CONFLICT: BLOCKS,
  STEP_PROOF_EXPIRED: BLOCKS,
  ERROR_VERIFICATION_RECEIPT_MISSING: BLOCKS,
  ERROR_VERIFICATION_RECEIPT_INVALID: BLOCKS,
  INVALID_GATE_EVIDENCE: GOES_ON,
  ERROR_GATE_INTEGRITY_CHECKSUM: BLOCKS,
  REQUIRED_GATE_UNSATISFIED: BLOCKS,
  GATE_AUDIT_FAILURE: BLOCKS,
  GATE_BLOCKED: GOES_ON,
  MANUAL_GATE_ACK_REQUIRED: GOES_ON,
  INVALID_GATE_ACK: GOES_ON,
  SPEC_REBASE_REQUIRED: GOES_ON,
  REBASE_COMPLETED_TASKS_REMOVED: GOES_ON,
  SESSION_UNRECOVERABLE: FAILS,
  SPEC_SESSION_EXISTS: GOES_ON,
  INVALID_STATE_TRANSITION: GOES_ON,
  AUTHORIZATION: BLOCKS,
  AGENT_BUSY: GOES_ON,
  CHECK_FAILED: GOES_ON,
  NO_ACTIVE_SESSION: GOES_ON,
  NOT_FOUND: GOES_ON,
};

type Standing = Pick<SessionState, 'status' | 'pause_reason'>;
const OTHERS = PAUSE_REASONS.filter((reason) => reason !== 'phase_complete');
/** One state for each column of the table. */
const COLUMNS: readonly (readonly Standing[])[] = [
  [{ status: 'running', pause_reason: null }],
  OTHERS.map((pause_reason) => ({ status: 'paused', pause_reason }) as const),
  [{ status: 'paused', pause_reason: 'phase_complete' }],
  [{ status: 'completed', pause_reason: null }],
  [{ status: 'failed', pause_reason: null }],
  [{ status: 'ended', pause_reason: null }],
];

const session = (() => {
  const d = new SessionDriver().start();
  d.next();
  return d.session;
})();

describe('S3-18 S3-25 S3-26 S3-32 S3-36: the signal', () => {
  test('has a row for every code, and a column for every status', () => {
    expect(Object.keys(TABLE).sort()).toEqual(['none', ...Object.keys(SESSION_ERRORS)].sort());
    expect(new Set(COLUMNS.flat().map(({ status }) => status))).toEqual(new Set(SESSION_STATUSES));
    expect(COLUMNS.flat().flatMap(({ pause_reason }) => pause_reason ?? [])).toHaveLength(PAUSE_REASONS.length);
  });

  test.each(Object.entries(TABLE))('of %s', (name, row) => {
    const code = name === 'none' ? null : (name as SessionErrorCode);
    COLUMNS.forEach((standings, column) => {
      for (const standing of standings) {
        const state = { ...session, ...standing };
        expect([standing, loopSignal(state, code)]).toEqual([standing, row[column]]);
        const answer = code === null ? sessionAnswer(state) : rejectionAnswer(state, code);
        expect(answer.data?.loop_signal).toBe(row[column]);
        // There is an exit packet exactly where the loop stops.
        expect(answer.data?.exit_packet === null).toBe(row[column] === null);
      }
    });
  });

  test('C62: matches the documentation for every code', () => {
    expect(tableOf('docs/errors.md', 'session-errors')).toEqual(
      Object.entries(SESSION_ERRORS).map(([code, { type, message }]) => {
        return [code, type, message, TABLE[code as SessionErrorCode] === BLOCKS ? 'yes' : 'no'];
      }),
    );
    expect(
      tableOf('docs/sessions.md', 'session-signals')
        .map(([signal]) => signal)
        .sort(),
    ).toEqual([...LOOP_SIGNALS].sort());
  });
});

describe('the recommended actions', () => {
  const ON_PAUSE: Readonly<Record<PauseReason, readonly string[]>> = {
    user: ['resume_session'],
    context_limit: ['resume_in_fresh_context'],
    error_threshold: ['inspect_recent_failures', 'reset_session_if_needed'],
    blocked: ['resolve_task_blockers', 'rebase_session_to_spec'],
    gate_failed: ['review_gate_findings'],
    gate_review_required: ['acknowledge_manual_gate_review'],
    task_limit: ['start_followup_session'],
    heartbeat_stale: ['refresh_heartbeat_or_resume'],
    step_stale: ['replay_or_reset_stale_step'],
    phase_complete: ['continue_with_next_phase'],
    fidelity_cycle_limit: ['escalate_fidelity_cycle_limit'],
  };
  test.each(Object.entries(ON_PAUSE))('for a pause as %s', (reason, actions) => {
    const standing = { status: 'paused', pause_reason: reason as PauseReason } as const;
    expect(recommendedActions(standing, null).map(({ action }) => action)).toEqual(actions);
  });

  const ON_ERROR: Readonly<Partial<Record<SessionErrorCode, string>>> = {
    STEP_RESULT_REQUIRED: 'replay_outstanding_step',
    STEP_MISMATCH: 'replay_outstanding_step',
    STEP_PROOF_MISSING: 'request_fresh_step_proof',
    STEP_PROOF_MISMATCH: 'request_fresh_step_proof',
    STEP_PROOF_CONFLICT: 'request_fresh_step_proof',
    STEP_PROOF_EXPIRED: 'request_fresh_step_proof',
    ERROR_VERIFICATION_RECEIPT_MISSING: 'regenerate_verification_receipt',
    ERROR_VERIFICATION_RECEIPT_INVALID: 'regenerate_verification_receipt',
    INVALID_GATE_EVIDENCE: 'request_fresh_gate_evidence',
    ERROR_GATE_INTEGRITY_CHECKSUM: 'rerun_gate_with_fresh_evidence',
    REQUIRED_GATE_UNSATISFIED: 'satisfy_or_waive_required_gate',
    GATE_AUDIT_FAILURE: 'satisfy_or_waive_required_gate',
    SPEC_REBASE_REQUIRED: 'rebase_session_to_spec',
    AUTHORIZATION: 'use_authorized_role',
    MANUAL_GATE_ACK_REQUIRED: 'acknowledge_manual_gate_review',
  };
  test.each(Object.keys(SESSION_ERRORS))('for %s', (name) => {
    const code = name as SessionErrorCode;
    const actions = recommendedActions({ status: 'running', pause_reason: null }, code).map(({ action }) => action);
    expect(actions).toEqual(ON_ERROR[code] === undefined ? [] : [ON_ERROR[code]]);
  });

  test('for a failed session', () => {
    const actions = recommendedActions({ status: 'failed', pause_reason: null }, 'SPEC_REBASE_REQUIRED');
    expect(actions.map(({ action }) => action)).toEqual([
      'rebase_session_to_spec',
      'collect_failure_context',
      'reset_or_restart_session',
    ]);
  });

  test('have one text each, with at most one command', () => {
    const standing = { status: 'paused', pause_reason: 'gate_review_required' } as const;
    expect(recommendedActions(standing, 'MANUAL_GATE_ACK_REQUIRED')).toEqual([
      { action: 'acknowledge_manual_gate_review', description: 'A person has to decide', command: 'session ack' },
    ]);
    expect(recommendedActions({ status: 'running', pause_reason: null }, 'AUTHORIZATION')).toEqual([
      { action: 'use_authorized_role', description: 'Another role has to do this', command: null },
    ]);
    const all = PAUSE_REASONS.flatMap((pause_reason) => recommendedActions({ status: 'paused', pause_reason }, null));
    expect(all.filter(({ description }) => description === '')).toEqual([]);
  });

  test('are empty for a completed or ended session', () => {
    for (const status of ['completed', 'ended'] as const) {
      expect(recommendedActions({ status, pause_reason: null }, null)).toEqual([]);
    }
  });
});

describe('S3-38: the exit packet', () => {
  const MEMBERS = [
    'active_phase_id',
    'details',
    'final_status',
    'gates_satisfied',
    'last_step_id',
    'loop_signal',
    'pause_reason',
    'session_id',
    'spec_id',
    'steps_executed',
    'summary',
  ];

  test('has its members, and no others, in every state and for every command', () => {
    let packets = 0;
    for (const standing of COLUMNS.flat()) {
      for (const code of [null, ...Object.keys(SESSION_ERRORS)] as (SessionErrorCode | null)[]) {
        const state = { ...session, ...standing };
        const { data } = code === null ? sessionAnswer(state) : rejectionAnswer(state, code);
        const packet = data?.exit_packet;
        if (packet == null) continue;
        packets += 1;
        expect(Object.keys(packet).sort()).toEqual(MEMBERS);
        expect(Object.keys(packet.details).sort()).toEqual(['error_code', 'recommended_actions', 'response_success']);
        expect(packet).toMatchObject({
          final_status: standing.status,
          pause_reason: standing.pause_reason,
          loop_signal: data?.loop_signal,
          details: { response_success: code === null, error_code: code },
        });
      }
    }
    expect(packets).toBeGreaterThan(300);
  });

  test('describes the state of the session', () => {
    const d = new SessionDriver().start();
    d.next();
    d.work();
    d.work();
    d.work();
    const { data } = d.next(d.report('skipped'), { context_usage_pct: 99 });
    expect(data?.exit_packet).toEqual({
      spec_id: 'spec-a',
      session_id: SESSION,
      final_status: 'paused',
      loop_signal: P,
      pause_reason: 'context_limit',
      active_phase_id: null,
      last_step_id: `${SESSION}-s4`,
      gates_satisfied: ['phase-1'],
      steps_executed: 4,
      summary: 'paused (context_limit): 2 of 3 tasks completed, 1 skipped',
      details: {
        response_success: true,
        error_code: null,
        recommended_actions: [
          { action: 'resume_in_fresh_context', description: "The agent's context is full", command: 'session resume' },
        ],
      },
    });
    const refused = d.next(null);
    expect(refused.data?.exit_packet).toEqual(data?.exit_packet);
  });

  test('contains what was rejected, and why the session failed', () => {
    const d = new SessionDriver().start();
    d.next();
    const { data } = d.next(d.report('success', { step_proof: 'x' }));
    expect(data?.exit_packet).toMatchObject({
      final_status: 'running',
      active_phase_id: 'phase-1',
      last_step_id: `${SESSION}-s1`,
      summary: 'running: 0 of 3 tasks completed; refused: STEP_PROOF_MISMATCH',
    });
    const failed = d.next(d.report(), { spec: { problem: 'not_found' } });
    expect(failed.data?.exit_packet?.summary).toBe(
      'failed (spec_not_found): 1 of 3 tasks completed; refused: SESSION_UNRECOVERABLE',
    );
  });
});

describe('an answer', () => {
  const MEMBERS = Object.keys(sessionAnswer(session).data ?? {}).sort();

  test('always has the same members, also in a rejection', () => {
    expect(MEMBERS).toHaveLength(18);
    for (const code of Object.keys(SESSION_ERRORS) as SessionErrorCode[]) {
      const { success, data, error } = rejectionAnswer(session, code, ['x']);
      expect(success).toBe(false);
      expect(Object.keys(data ?? {}).sort()).toEqual(MEMBERS);
      expect(error).toEqual({
        code,
        error_type: SESSION_ERRORS[code].type,
        message: SESSION_ERRORS[code].message,
        details: ['x'],
      });
    }
  });

  test('without a session has no data', () => {
    expect(rejectionWithoutSession('NO_ACTIVE_SESSION')).toMatchObject({
      success: false,
      data: null,
      error: { error_type: 'not_found' },
    });
  });

  test('lists the gates, and which of them are missing', () => {
    expect(sessionAnswer(session).data).toMatchObject({
      required_phase_gates: ['phase-1'],
      satisfied_gates: [],
      missing_required_gates: ['phase-1'],
    });
    const unenforced = { ...session, settings: { ...session.settings, enforce_gates: false } };
    expect(sessionAnswer(unenforced).data).toMatchObject({ required_phase_gates: [], missing_required_gates: [] });
  });
});
