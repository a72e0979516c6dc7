// The session of a tree, read from its root machine.

import type { SummarizedRoot, TreeState } from '../../../kernel/tree-feature.js';
import type { FailureReason, PauseReason, SessionStatus } from '../contract/session.js';
import type { SessionState } from '../rules/session-state.js';

/** The session of a tree, also of one that has ended; null for a run tree. */
export const sessionOf = ({ rootMemory }: Pick<TreeState, 'rootMemory'>): SessionState | null =>
  readSession(rootMemory);

/** The session in the context of a session machine, or in its output; null for another machine. */
const readSession = (memory: unknown): SessionState | null =>
  ((memory ?? {}) as { readonly session?: SessionState }).session ?? null;

/** The state of one session, for readers of the ledger at an entry. */
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

declare module '../../../kernel/replay/ledger-state.js' {
  interface RootSummaries {
    readonly sessions: readonly SessionSnapshot[];
  }
}

export function summarizeSession(memory: unknown): SummarizedRoot | null {
  const session = readSession(memory);
  if (session === null) return null;
  const { session_id, status, pause_reason, failure_reason, activation, steps_issued, tasks, outstanding } = session;
  const summary: SessionSnapshot = {
    session_id,
    status,
    pause_reason,
    failure_reason,
    activation,
    steps_issued,
    tasks_done: Object.keys(tasks).length,
    outstanding: outstanding === null ? null : { step_id: outstanding.step.step_id, type: outstanding.type },
  };
  return { summary, isOver: status === 'completed' || status === 'ended' };
}
