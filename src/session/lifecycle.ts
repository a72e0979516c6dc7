// Who may ask a session for what, and in which states it takes it.

import type { SessionCommandName } from '../contract/session-command.js';
import { SESSION_ROLES, type PauseReason, type SessionRole, type SessionStatus } from '../contract/session.js';
import type { SessionErrorCode } from '../contract/session-answer.js';
import type { SessionState } from './state.js';

interface CommandRule {
  readonly roles: readonly SessionRole[];
  readonly statuses: readonly SessionStatus[];
}

const LOOP = ['autonomy_runner', 'maintainer'] as const;
const PEOPLE = ['maintainer'] as const;
/** `next` and `replay` tell, in every state, what that state is. */
const ANY = ['running', 'paused', 'completed', 'failed', 'ended'] as const;

export const COMMAND_RULES: Readonly<Record<SessionCommandName, CommandRule>> = {
  next: { roles: LOOP, statuses: ANY },
  replay: { roles: LOOP, statuses: ANY },
  heartbeat: { roles: LOOP, statuses: ['running'] },
  verify: { roles: LOOP, statuses: ['running'] },
  review: { roles: LOOP, statuses: ['running'] },
  pause: { roles: PEOPLE, statuses: ['running'] },
  resume: { roles: LOOP, statuses: ['paused', 'failed'] },
  rebase: { roles: PEOPLE, statuses: ['paused', 'failed'] },
  waive: { roles: PEOPLE, statuses: ['running', 'paused'] },
  end: { roles: PEOPLE, statuses: ['running', 'paused', 'failed'] },
};

/** Pauses that end without anybody having to decide anything; whatever else stopped a session, a maintainer resumes. */
const RESUMED_BY_RUNNERS: ReadonlySet<PauseReason> = new Set([
  'phase_complete',
  'context_limit',
  'task_limit',
  'heartbeat_stale',
  'step_stale',
]);

/** Fail closed: whoever is nobody known may look, and no more. */
export const roleOf = (role: string): SessionRole => SESSION_ROLES.find((known) => known === role) ?? 'observer';

/** Why a session does not take this command from this role now; null where it does. */
export function commandRefusal(
  { status, pause_reason }: Pick<SessionState, 'status' | 'pause_reason'>,
  command: SessionCommandName,
  role: SessionRole,
): SessionErrorCode | null {
  const { roles, statuses } = COMMAND_RULES[command];
  if (!roles.includes(role)) return 'AUTHORIZATION';
  if (!statuses.includes(status)) return 'INVALID_STATE_TRANSITION';
  if (command !== 'resume' || role === 'maintainer') return null;
  return pause_reason !== null && RESUMED_BY_RUNNERS.has(pause_reason) ? null : 'AUTHORIZATION';
}
