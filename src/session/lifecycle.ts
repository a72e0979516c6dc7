// Decides which role may send a session which command, and in which state.

import type { SessionCommandName } from '../contract/session/session-command.js';
import { SESSION_ROLES, type PauseReason, type SessionRole, type SessionStatus } from '../contract/session/session.js';
import type { SessionErrorCode } from '../contract/session/session-answer.js';
import type { SessionState } from './session-state.js';

interface CommandRule {
  readonly roles: readonly SessionRole[];
  readonly statuses: readonly SessionStatus[];
}

const LOOP_ROLES = ['autonomy_runner', 'maintainer'] as const;
const PERSON_ROLES = ['maintainer'] as const;
/** `next` and `replay` report the state, whatever it is. */
const ANY_STATUS = ['running', 'paused', 'completed', 'failed', 'ended'] as const;

export const COMMAND_RULES: Readonly<Record<SessionCommandName, CommandRule>> = {
  next: { roles: LOOP_ROLES, statuses: ANY_STATUS },
  replay: { roles: LOOP_ROLES, statuses: ANY_STATUS },
  heartbeat: { roles: LOOP_ROLES, statuses: ['running'] },
  verify: { roles: LOOP_ROLES, statuses: ['running'] },
  review: { roles: LOOP_ROLES, statuses: ['running'] },
  pause: { roles: PERSON_ROLES, statuses: ['running'] },
  resume: { roles: LOOP_ROLES, statuses: ['paused', 'failed'] },
  rebase: { roles: PERSON_ROLES, statuses: ['paused', 'failed'] },
  waive: { roles: PERSON_ROLES, statuses: ['running', 'paused'] },
  end: { roles: PERSON_ROLES, statuses: ['running', 'paused', 'failed'] },
};

/** Pauses that end without a decision by a person. For any other pause, a maintainer must resume the session. */
const RUNNER_RESUMABLE: ReadonlySet<PauseReason> = new Set([
  'phase_complete',
  'context_limit',
  'task_limit',
  'heartbeat_stale',
  'step_stale',
]);

/** Fail closed: an unknown role may only read. */
export const toSessionRole = (role: string): SessionRole => SESSION_ROLES.find((known) => known === role) ?? 'observer';

/** Why a session rejects this command from this role now; null if it accepts it. */
export function commandRejection(
  { status, pause_reason }: Pick<SessionState, 'status' | 'pause_reason'>,
  command: SessionCommandName,
  role: SessionRole,
): SessionErrorCode | null {
  const { roles, statuses } = COMMAND_RULES[command];
  if (!roles.includes(role)) return 'AUTHORIZATION';
  if (!statuses.includes(status)) return 'INVALID_STATE_TRANSITION';
  if (command !== 'resume' || role === 'maintainer') return null;
  return pause_reason !== null && RUNNER_RESUMABLE.has(pause_reason) ? null : 'AUTHORIZATION';
}
