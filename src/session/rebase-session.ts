// A paused or failed session goes on with another spec. What is outstanding counts no more, and what was skipped gets
// another chance.

import type { CommandOf } from '../contract/session/session-command.js';
import type { SessionSpec } from '../contract/session/session-spec.js';
import { sessionAnswer, rejectionAnswer } from './session-answer.js';
import { revokeStep } from './issue-step.js';
import { gateOf, isBlockedByGate, isPhaseFinished } from './progress.js';
import { planRebase, type RebasePlan } from './plan-rebase.js';
import { activate, clearPauseCause } from './resume.js';
import { activationId, type GateRecord, type SessionState } from './session-state.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn-builder.js';

export function rebaseSession(state: SessionState, command: CommandOf<'rebase'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const { force, spec_file } = command;
  const after = context.new_spec;
  if (after === null) return turn.buildUnchanged(rejectionAnswer(state, 'VALIDATION_ERROR', ['spec']));
  if (after.id !== state.spec.id) return turn.buildUnchanged(rejectionAnswer(state, 'VALIDATION_ERROR', ['spec id']));
  const rebase = planRebase({
    before: state.spec,
    after,
    completed: taskIdsWithStatus(state, 'completed'),
    skipped: taskIdsWithStatus(state, 'skipped'),
    satisfied: phasesNotBlocked(state),
    force,
  });
  if (rebase.kind === 'refused') return turn.buildUnchanged(rejectionAnswer(state, rebase.code, rebase.task_ids));
  revokeStep(turn);
  clearPauseCause(turn, context.role);
  applyPlan(turn, after, rebase.plan);
  turn.set({ spec_file });
  turn.recordEvent('rebase', {}, { change: rebase.kind, structure_hash: turn.state.structure_hash, forced: force });
  activate(turn, context);
  turn.recordEvent(
    'resume',
    { run_id: activationId(turn.state) },
    { reason: state.pause_reason ?? state.failure_reason },
  );
  return turn.build(sessionAnswer(turn.state, { warnings: rebase.kind === 'no_change' ? ['NO_CHANGE'] : [] }));
}

/**
 * Whatever was reviewed and has not passed is to be reviewed again before anybody says something to it, or mends what
 * was found by the words of before.
 */
function applyPlan(turn: TurnBuilder, spec: SessionSpec, { structure_hash, completed, satisfied }: RebasePlan): void {
  const { gates, phases_told } = turn.state;
  const satisfiedIds = new Set(satisfied);
  turn.set({
    spec,
    structure_hash,
    evidence: null,
    ack: null,
    tasks: Object.fromEntries(completed.map((id) => [id, 'completed'] as const)),
    gates: Object.fromEntries<GateRecord>(Object.entries(gates).filter(([phase_id]) => satisfiedIds.has(phase_id))),
    cycles: { phase_id: '', count: 0 },
  });
  const finished = new Set(spec.phases.filter((phase) => isPhaseFinished(turn.state, phase)).map(({ id }) => id));
  turn.set({ phases_told: phases_told.filter((phase_id) => finished.has(phase_id)) });
}

const taskIdsWithStatus = ({ tasks }: SessionState, status: 'completed' | 'skipped'): string[] =>
  Object.keys(tasks).filter((id) => tasks[id] === status);

/** Phases whose gate has been looked at, and does not hold the session up. */
const phasesNotBlocked = (state: SessionState): string[] =>
  state.spec.phases
    .filter(
      (phase) =>
        phase.gate !== undefined && gateOf(state, phase).status !== 'pending' && !isBlockedByGate(state, phase),
    )
    .map(({ id }) => id);
