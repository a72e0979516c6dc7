import type { Packet, SessionView } from '../../contract/inspection.js';
import type { SpecPhase } from '../../contract/session-spec.js';
import { activePhase, gateOf, isFinished, taskStatus } from '../../session/progress.js';
import type { SessionState } from '../../session/state.js';

/** What of a session is told besides its state. */
export interface SessionTold {
  readonly packets: readonly Packet[];
  readonly packets_before: number;
  /** Whether the words of the spec may be shown. */
  readonly titled: boolean;
}

/** A session as it is drawn. No proof is in it, and nothing that an agent wrote. */
export function sessionView(state: SessionState, at: number, told: SessionTold): SessionView {
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
      title: told.titled ? phase.title : '',
      state: phase === active ? 'current' : isFinished(state, phase) ? 'done' : 'open',
      gate: gateIn(state, phase),
      tasks: phase.tasks.map(({ id, title }) => ({
        id,
        title: told.titled ? title : '',
        state: taskStatus(state, id),
      })),
    })),
    packets: told.packets,
    packets_before: told.packets_before,
  };
}

function gateIn(state: SessionState, phase: SpecPhase): SessionView['phases'][number]['gate'] {
  if (phase.gate === undefined) return null;
  const { status, verdict, waiver } = gateOf(state, phase);
  const asked = state.ack?.phase_id === phase.id ? 'a person has to acknowledge it' : '';
  const said = waiver === null ? (verdict === null ? '' : `verdict ${verdict}`) : `waived: ${waiver.reason_code}`;
  return { state: status, detail: asked === '' ? said : asked };
}
