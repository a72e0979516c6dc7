import type { SessionView } from '../../contract/inspection.js';
import type { SpecPhase } from '../../contract/session-spec.js';
import { activePhase, gateOf, isFinished, taskStatus } from '../../session/progress.js';
import type { SessionState } from '../../session/state.js';

/** A session as it is drawn. No proof is in it, and nothing that an agent wrote. */
export function sessionView(state: SessionState, at: number): SessionView {
  const { outstanding, settings } = state;
  const active = activePhase(state);
  return {
    session_id: state.session_id,
    at,
    status: state.status,
    pause_reason: state.pause_reason,
    failure_reason: state.failure_reason,
    posture: settings.posture,
    activation: state.activation,
    steps_issued: state.steps_issued,
    outstanding:
      outstanding === null
        ? null
        : { step_id: outstanding.step.step_id, type: outstanding.type, task_id: outstanding.step.task_id },
    phases: state.spec.phases.map((phase) => ({
      id: phase.id,
      title: phase.title,
      state: phase === active ? 'current' : isFinished(state, phase) ? 'done' : 'open',
      gate: gateIn(state, phase),
      tasks: phase.tasks.map((task) => ({ id: task.id, title: task.title, state: taskStatus(state, task.id) })),
    })),
  };
}

function gateIn(state: SessionState, phase: SpecPhase): SessionView['phases'][number]['gate'] {
  if (phase.gate === undefined) return null;
  const { status, verdict, waiver } = gateOf(state, phase);
  const asked = state.ack?.phase_id === phase.id ? 'a person has to acknowledge it' : '';
  const said = waiver === null ? (verdict === null ? '' : `verdict ${verdict}`) : `waived: ${waiver.reason_code}`;
  return { state: status, detail: asked === '' ? said : asked };
}
