// The state of runs and sessions at an entry, as plain data.

import { stepId } from '../../../machines/agent.js';
import type { Entry } from '../../core/contract/run/entry.js';
import { stateAfterEvent, type RunKind, type RunState } from '../../core/contract/run/run-state.js';
import type { FailureReason, PauseReason, SessionStatus } from '../../core/contract/session/session.js';
import type { Tree } from '../tree.js';

/** The state of one run. */
export interface RunSnapshot {
  readonly run_id: string;
  readonly tree_id: string;
  readonly kind: RunKind;
  readonly role_id: string;
  readonly lane_id: string | null;
  readonly state: RunState;
  /** Why the run has ended; null while it is live. */
  readonly reason: string | null;
  /** Log indexes of the entry that created the run, and of the entry that brought it into its state. */
  readonly created: number;
  readonly since: number;
  /** For a live agent run: how many steps it has started, including the current one. */
  readonly step: number | null;
  /** For a live run: its position inside its state. For an agent in a step, the phase: `AUTHORIZE.gatheringFacts`. */
  readonly at: string | null;
}

/** The state of one session. */
export interface SessionSnapshot {
  readonly session_id: string;
  readonly status: SessionStatus;
  readonly pause_reason: PauseReason | null;
  readonly failure_reason: FailureReason | null;
  readonly activation: number;
  readonly steps_issued: number;
  readonly tasks_done: number;
  /** The step that was issued to the agent and not reported yet. */
  readonly outstanding: { readonly step_id: string; readonly type: string } | null;
}

/** The state of everything at one entry of the log. */
export interface LedgerState {
  /** The requested entry. */
  readonly until: number;
  /** The last entry that the same input caused. These entries are atomic, so there is no state between them. */
  readonly through: number;
  /** The time of that input. */
  readonly time: string | null;
  readonly trees: { readonly begun: number; readonly ended: number };
  /** In order of creation. */
  readonly runs: readonly RunSnapshot[];
  readonly sessions: readonly SessionSnapshot[];
  /**
   * The live trees that are known from entries alone, because content that they need is unavailable, or because this
   * installation cannot evaluate their policy. The positions of their runs inside their states, and their sessions, are
   * unknown. Absent if empty.
   */
  readonly not_recomputed?: readonly string[];
  /** What to install to fold the trees, also ended ones, that this installation cannot evaluate. Absent: none. */
  readonly needs?: string;
}

/** Applies an entry to the state of its run; null if the entry does not affect it. */
export function applyEntry(
  entry: Entry,
  log_index: number,
  before: (run_id: string) => RunSnapshot | null,
): RunSnapshot | null {
  if (entry.type === 'run_created') {
    const { run_id, run_kind: kind, role_id, lane_id } = entry.body;
    const place = { created: log_index, since: log_index, step: null, at: null };
    return { run_id, tree_id: entry.tree_id, kind, role_id, lane_id, state: 'created', reason: null, ...place };
  }
  const state = entry.type === 'audit_event' ? stateAfterEvent(entry.body) : null;
  if (entry.type !== 'audit_event' || state === null) return null;
  const { run_id, outcome_reason = '' } = entry.body;
  const run = before(run_id);
  if (run === null) return null;
  return { ...run, state, since: log_index, reason: state === 'running' ? null : outcome_reason };
}

/** A live run, with its position in its folded tree. */
export function placeRun(run: RunSnapshot, tree: Tree): RunSnapshot {
  const actorState = tree.actorState(run.run_id);
  const step = run.kind === 'agent' ? tree.actorState(stepId(run.run_id)) : null;
  const steps = actorState?.memory['steps'];
  return {
    ...run,
    step: run.kind === 'agent' && typeof steps === 'number' ? steps : null,
    at: (step ?? actorState)?.path.join('.') ?? null,
  };
}

/** The session of a tree; null if the tree belongs to a run. */
export function sessionSnapshotOf({ session }: Tree): SessionSnapshot | null {
  if (session === null) return null;
  const { session_id, status, pause_reason, failure_reason, activation, steps_issued, tasks, outstanding } = session;
  return {
    session_id,
    status,
    pause_reason,
    failure_reason,
    activation,
    steps_issued,
    tasks_done: Object.keys(tasks).length,
    outstanding: outstanding === null ? null : { step_id: outstanding.step.step_id, type: outstanding.type },
  };
}
