// The whole verdict on a run and its request: first the pinned policy, then the emergency overlay, which can only deny
// (D1). Every decision uses these functions, so that none omits the overlay.

import {
  type OverlayFact,
  type OverlaySubject,
  OVERLAY_MATCHERS,
  type ComparedRule,
  type OverlayMatcher,
} from '../contract/policy/overlay.js';
import type { RunContext } from '../contract/run/run-context.js';
import {
  AGENT_CHECKS,
  authorizeAgent,
  authorizePrivileged,
  LANE_CHECKS,
  PRIVILEGED_CHECKS,
  type PrivilegedRequest,
} from './authorize-run.js';
import { denyBudget, type Verdict, type CheckDescription } from './verdict.js';
import type { Policy } from './policy.js';
import { compareNames } from '../contract/person.js';

/** The first check of an agent start; a step has it after the checks of its lane. */
export const BUDGET_CHECK: CheckDescription = { claim: 'enough of the budget is left', rules: ['budget.*'] };

/** The last check of an agent start and of every privileged request. */
const OVERLAY_CHECK: CheckDescription = {
  claim: 'no rule of the emergency overlay denies it',
  rules: ['overlay.*'],
};

interface AuthorizationRequest {
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

// The decision of the emergency overlay (D1). It can only restrict: it returns a denial, or nothing.

/** The rule id of every denial while the overlay cannot be trusted. */
export const OVERLAY_UNUSABLE = 'overlay.unusable';

/**
 * The policy's verdict after the overlay. A denial stays unchanged; an allow stays, or becomes the overlay's denial.
 */
export function withOverlay(verdict: Verdict, overlay: OverlayFact | null, subject: OverlaySubject): Verdict {
  if (verdict.decision !== 'allow') return verdict;
  return overlayVerdict(overlay, subject) ?? verdict;
}

/**
 * The overlay's denial of a request, or null if it has none. The first matching rule gives the rule id,
 * `overlay.<rule_id>`.
 */
export function overlayVerdict(overlay: OverlayFact | null, subject: OverlaySubject): Verdict | null {
  if (overlay === null) return null;
  if (overlay.epoch === null) return denial(OVERLAY_UNUSABLE);
  const rule = overlay.rules.find((candidate) => isMatchingRule(candidate, subject));
  return rule === undefined ? null : denial(`overlay.${rule.rule_id}`);
}

/** The schema rejects a rule without a matcher. If one occurs anyway, it matches: fail closed. */
const isMatchingRule = (rule: ComparedRule, subject: OverlaySubject): boolean =>
  OVERLAY_MATCHERS.every((name) => {
    const wanted = rule[name];
    if (wanted === undefined || isMatchingField(name, wanted, subject[name])) return true;
    return name === 'actor_id' && isSamePerson(rule, subject);
  });

/** C87: another spelling of the name, a name that looks like it, or one that cannot be compared. */
const isSamePerson = ({ person }: ComparedRule, subject: OverlaySubject): boolean =>
  person !== undefined && subject.person !== undefined && compareNames(person, subject.person) !== 'other';

/** D11: the ids of runs below a run begin with its id and a dot. */
const isMatchingField = (name: OverlayMatcher, wanted: string, given: string | null): boolean =>
  given === wanted || (name === 'run_id' && given !== null && given.startsWith(`${wanted}.`));

const denial = (rule_id: string): Verdict => ({ decision: 'deny', rule_id, cause: 'OVERLAY' });
