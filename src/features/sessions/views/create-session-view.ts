import type { Packet, SessionView } from '../../../interfaces/inspector/contract/session-view.js';
import type { SpecPhase } from '../contract/session-spec.js';
import { activePhase, gateOf, isPhaseFinished, taskStatus } from '../rules/task-progress.js';
import type { SessionState } from '../rules/session-state.js';

/** The parts of a session view that are not in the session state. */
export interface SessionViewExtras {
  readonly packets: readonly Packet[];
  readonly packets_before: number;
  /** Whether the texts of the spec may be shown. */
  readonly isTitled: boolean;
}

/** Creates the view of a session for the page. It contains no step proofs, and no text that an agent wrote. */
export function createSessionView(state: SessionState, at: number, extras: SessionViewExtras): SessionView {
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
      title: extras.isTitled ? phase.title : '',
      state: phase === active ? 'current' : isPhaseFinished(state, phase) ? 'done' : 'open',
      gate: gateViewOf(state, phase),
      tasks: phase.tasks.map(({ id, title }) => ({
        id,
        title: extras.isTitled ? title : '',
        state: taskStatus(state, id),
      })),
    })),
    packets: extras.packets,
    packets_before: extras.packets_before,
  };
}

function gateViewOf(state: SessionState, phase: SpecPhase): SessionView['phases'][number]['gate'] {
  if (phase.gate === undefined) return null;
  const { status, verdict, waiver } = gateOf(state, phase);
  const pendingText = state.ack?.phase_id === phase.id ? 'a person has to acknowledge it' : '';
  const decidedText =
    waiver === null ? (verdict === null ? '' : `verdict ${verdict}`) : `waived: ${waiver.reason_code}`;
  return { state: status, detail: pendingText === '' ? decidedText : pendingText };
}
