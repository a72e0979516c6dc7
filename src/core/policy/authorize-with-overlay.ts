// The whole verdict on a run and its request: first the pinned policy, then the emergency overlay, which can only deny
// (D1). Every decision uses these functions, so that none omits the overlay.

import type { OverlayFact, OverlaySubject } from '../contract/policy/overlay.js';
import type { RunContext } from '../contract/run/run-context.js';
import {
  AGENT_CHECKS,
  authorizeAgent,
  authorizePrivileged,
  LANE_CHECKS,
  PRIVILEGED_CHECKS,
  type PrivilegedRequest,
} from './authorize-run.js';
import { withOverlay } from './overlay-verdict.js';
import type { CheckDescription } from './ordered-check.js';
import type { Policy } from './policy.js';
import { denyBudget, type Verdict } from './verdict.js';

/** The first check of an agent start; a step has it after the checks of its lane. */
export const BUDGET_CHECK: CheckDescription = { claim: 'enough of the budget is left', rules: ['budget.*'] };

/** The last check of an agent start and of every privileged request. */
const OVERLAY_CHECK: CheckDescription = {
  claim: 'no rule of the emergency overlay denies it',
  rules: ['overlay.*'],
};

export interface AuthorizationRequest {
  readonly action: string;
  readonly privileged: PrivilegedRequest;
  /** The overlay at the time of the proposal, the vote or the retry. */
  readonly overlay: OverlayFact | null;
}

/** Decides whether this mediated run may execute one privileged request. */
export function authorizeWithOverlay(
  run: RunContext,
  { action, privileged, overlay }: AuthorizationRequest,
  policy: Policy,
): Verdict {
  const { tool, write, read } = privileged;
  const target = { action, tool, table: write?.table ?? read };
  return withOverlay(authorizePrivileged(run, privileged, policy), overlay, subjectOf(run, target));
}

/**
 * Decides whether this agent run may enter `running`. `exhausted` is the first kind of budget that its parent cannot
 * reserve for it, or null.
 */
export function authorizeAgentStart(
  run: RunContext,
  { exhausted, overlay }: { readonly exhausted: string | null; readonly overlay: OverlayFact | null },
  policy: Policy,
): Verdict {
  if (exhausted !== null) return denyBudget(exhausted);
  return withOverlay(authorizeAgent(run, policy), overlay, subjectOf(run, NO_TARGET));
}

/** The checks of `authorizeAgentStart`, in order. */
export const AGENT_START_CHECKS: readonly CheckDescription[] = [BUDGET_CHECK, ...AGENT_CHECKS, OVERLAY_CHECK];

/** The checks of `authorizeWithOverlay`, in order. */
export const REQUEST_CHECKS: readonly CheckDescription[] = [...LANE_CHECKS, ...PRIVILEGED_CHECKS, OVERLAY_CHECK];

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
