// The whole verdict on a run and what it is about to do: what its pinned policy says, and then the emergency overlay,
// which can only take away (D1). Whoever judges asks here, so that nobody can forget the second question.

import type { OverlayFact, OverlaySubject } from '../contract/policy/overlay.js';
import type { RunContext } from '../contract/run/run-context.js';
import { authorizeAgent, authorizePrivileged, type PrivilegedRequest } from './authorize-run.js';
import { withOverlay } from './overlay.js';
import type { Policy } from './policy.js';
import type { Verdict } from './verdict.js';

export interface AuthorizationRequest {
  readonly action: string;
  readonly privileged: PrivilegedRequest;
  /** As it was when the act was proposed, voted on, or tried again. */
  readonly overlay: OverlayFact | null;
}

/** May this mediated run do this one privileged act? */
export function authorizeWithOverlay(
  run: RunContext,
  { action, privileged, overlay }: AuthorizationRequest,
  policy: Policy,
): Verdict {
  const { tool, write, read } = privileged;
  const target = { action, tool, table: write?.table ?? read };
  return withOverlay(authorizePrivileged(run, privileged, policy), overlay, subjectOf(run, target));
}

/** May this agent run begin? */
export const authorizeAgentWithOverlay = (run: RunContext, overlay: OverlayFact | null, policy: Policy): Verdict =>
  withOverlay(authorizeAgent(run, policy), overlay, subjectOf(run, NO_TARGET));

const NO_TARGET = { action: null, tool: null, table: null } as const;

const subjectOf = (
  run: RunContext,
  { action, tool, table }: Pick<OverlaySubject, 'action' | 'tool' | 'table'>,
): OverlaySubject => ({
  role_id: run.role_id,
  lane_id: run.lane_id,
  action,
  tool,
  table,
  case_id: run.case_id,
  run_id: run.run_id,
  actor_id: run.actor.actor_id,
  person: run.person,
});
