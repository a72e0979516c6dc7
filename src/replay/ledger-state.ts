// Where runs and sessions stand at an entry, as plain data.

import { stepId } from '../../machines/agent.js';
import type { Entry } from '../contract/run/entry.js';
import { stateAfterEvent, type RunKind, type RunState } from '../contract/run/run-state.js';
import type { FailureReason, PauseReason, SessionStatus } from '../contract/session/session.js';
import type { Tree } from '../kernel/tree.js';

/** One run, as it stood. */
export interface RunSnapshot {
  readonly run_id: string;
  readonly tree_id: string;
  readonly kind: RunKind;
  readonly role_id: string;
  readonly lane_id: string | null;
  readonly state: RunState;
  /** Why it has ended; null while it has not. */
  readonly reason: string | null;
  /** Log indexes: of the entry it was created by, and of the one that brought it into its state. */
  readonly created: number;
  readonly since: number;
  /** Of an agent run that lives: how many steps it has taken, the present one with them. */
  readonly step: number | null;
  /** Of a run that lives: where it stands inside its state. Of an agent in a step, the phase: `AUTHORIZE.gathering`. */
  readonly at: string | null;
}

/** One session, as it stood. */
export interface SessionSnapshot {
  readonly session_id: string;
  readonly status: SessionStatus;
  readonly pause_reason: PauseReason | null;
  readonly failure_reason: FailureReason | null;
  readonly activation: number;
  readonly steps_issued: number;
  readonly tasks_done: number;
  /** What the agent has been told and had not reported. */
  readonly outstanding: { readonly step_id: string; readonly type: string } | null;
}

/** Everything at one entry of the log. */
export interface LedgerState {
  /** The entry that was asked for. */
  readonly until: number;
  /** The last entry that its input caused: they came together, so there was no moment between them. */
  readonly through: number;
  /** The time of that input. */
  readonly time: string | null;
  readonly trees: { readonly begun: number; readonly ended: number };
  /** In the order in which they were created. */
  readonly runs: readonly RunSnapshot[];
  readonly sessions: readonly SessionSnapshot[];
  /**
   * The live trees of which entries tell all that is known: content that they need is not to be had. Where their runs
   * stood inside their states, and their sessions, is not known. Absent where there are none.
   */
  readonly not_recomputed?: readonly string[];
}

/** What an entry says of where a run stands; null where it says nothing of that. */
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

/** A live run with where it stands in its tree now. */
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

/** The session of a tree; null where it is the tree of a run. */
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
