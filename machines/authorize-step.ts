// AUTHORIZE of one step, stage by stage. The step machine, `policy simulate` and `policy explain` use these functions,
// so that the order of the stages exists once:
//
//   start:  lane, overlay, case, budget (`STEP_CHECKS`), and whatever needs no facts
//   facts:  paths, quota, unknown outcomes, approval
//   ending: the run was cancelled before the facts arrived
//
// The budget is last of the first stage: an agent without budget learns first that a lane denies it.

import type { GatheredFacts } from '../src/core/contract/run/effect.js';
import type { Account, BudgetKind } from '../src/core/contract/run/budget.js';
import type { Policy } from '../src/core/policy/policy.js';
import type { Verdict } from '../src/core/policy/verdict.js';
import { lackingKind } from '../src/core/run/budget-account.js';
import {
  authorizeLane,
  authorizeWithFacts,
  type Authorization,
  type AuthorizationSubject,
} from '../src/core/step/authorization.js';

/** What starts a stage. */
export type AuthorizationStage =
  | { readonly kind: 'start'; readonly account: Account }
  | { readonly kind: 'facts'; readonly facts: GatheredFacts | null }
  | { readonly kind: 'ending' };

/** Runs one stage. Returns no verdict if facts are needed, or if an action without a run of its own is allowed. */
export function authorizeStep(step: AuthorizationSubject, stage: AuthorizationStage, policy: Policy): Authorization {
  switch (stage.kind) {
    case 'start': {
      const runs = isPrivileged(step, policy) ? 1 : 0;
      return authorizeLane(step, policy, findExhaustedBudget(stage.account, runs));
    }
    case 'facts':
      return authorizeWithFacts(step, stage.facts, policy);
    case 'ending':
      return { ...step.authorization, verdict: RUN_ENDING_DENIAL };
  }
}

/** Whether the action of the step needs a mediated run. */
export const isPrivileged = ({ action }: Pick<AuthorizationSubject, 'action'>, { catalogue }: Policy): boolean =>
  // Stryker disable next-line StringLiteral: neither name is an action
  catalogue.action(action ?? '')?.run_kind !== null;

/** The verdict on a step whose agent run is ending. */
export const RUN_ENDING_DENIAL: Verdict = { decision: 'deny', rule_id: 'lifecycle.run_ending', cause: 'LIFECYCLE' };

/**
 * The first budget kind that is exhausted for a step with `runs` mediated runs, or null. A step needs one step, its
 * runs, and something left of time, bytes and limited tokens.
 */
export function findExhaustedBudget(account: Account, runs: number): BudgetKind | null {
  const needed = { steps: 1, tool_calls: runs, wall_ms: 1, bytes: 1, tokens: 1 };
  return lackingKind(account, needed);
}
