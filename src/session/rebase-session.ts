// A paused or failed session goes on with another spec. What is outstanding counts no more, and what was skipped gets
// another chance.

import type { CommandOf } from '../contract/session-command.js';
import { answerOf, refusalOf } from './answer.js';
import { revoke } from './issue.js';
import { isFinished, isSatisfied } from './progress.js';
import { planRebase, type RebasePlan } from './rebase.js';
import { activate, clearCause } from './resume.js';
import { activationId, type GateRecord, type SessionState } from './state.js';
import { TurnBuilder, type CommandContext, type Turn } from './turn.js';

export function rebaseSession(state: SessionState, { force }: CommandOf<'rebase'>, context: CommandContext): Turn {
  const turn = new TurnBuilder(state, context);
  const after = context.new_spec;
  if (after === null) return turn.unchanged(refusalOf(state, 'VALIDATION_ERROR', ['spec']));
  if (after.id !== state.spec.id) return turn.unchanged(refusalOf(state, 'VALIDATION_ERROR', ['spec id']));
  const rebase = planRebase({
    before: state.spec,
    after,
    completed: completedOf(state),
    satisfied: satisfiedOf(state),
    force,
  });
  if (rebase.kind === 'refused') return turn.unchanged(refusalOf(state, rebase.code, rebase.task_ids));
  revoke(turn);
  clearCause(turn, context.role);
  // Whatever was reviewed is to be reviewed again before anybody says something to it.
  turn.set({ spec: after, evidence: null, ack: null, tasks: withoutSkipped(state.tasks) });
  if (rebase.kind === 'plan') takeUpPlan(turn, rebase.plan);
  turn.say('rebase', {}, { change: rebase.kind, structure_hash: turn.state.structure_hash, forced: force });
  activate(turn, context.time);
  turn.say('resume', { run_id: activationId(turn.state) }, { reason: state.pause_reason ?? state.failure_reason });
  return turn.done(answerOf(turn.state, { warnings: rebase.kind === 'no_change' ? ['NO_CHANGE'] : [] }));
}

function takeUpPlan(turn: TurnBuilder, { structure_hash, completed, satisfied }: RebasePlan): void {
  const { gates, phases_told } = turn.state;
  const kept = Object.entries(gates).filter(([phase_id]) => satisfied.includes(phase_id));
  turn.set({
    structure_hash,
    tasks: Object.fromEntries(completed.map((id) => [id, 'completed'] as const)),
    gates: Object.fromEntries<GateRecord>(kept),
    cycles: { phase_id: '', count: 0 },
  });
  const finished = turn.state.spec.phases.filter((phase) => isFinished(turn.state, phase)).map(({ id }) => id);
  turn.set({ phases_told: phases_told.filter((phase_id) => finished.includes(phase_id)) });
}

const withoutSkipped = (tasks: SessionState['tasks']): SessionState['tasks'] =>
  Object.fromEntries(Object.entries(tasks).filter(([, status]) => status !== 'skipped'));

const completedOf = ({ tasks }: SessionState): string[] => Object.keys(withoutSkipped(tasks));

const satisfiedOf = (state: SessionState): string[] =>
  state.spec.phases.filter((phase) => phase.gate !== undefined && isSatisfied(state, phase)).map(({ id }) => id);
