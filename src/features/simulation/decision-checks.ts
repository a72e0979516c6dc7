// The checks that a recorded decision passed, in order. A denial names the first check that does not hold. Its rule
// therefore determines whether every other check passed or was not reached. The lists are those of the live decision;
// only the checks of a ballot and of FINISH are described here.

import {
  isPrivileged,
  APPROVAL_CHECK,
  CONDITION_CHECK,
  DECISION_POINT_CHECK,
  STEP_CHECKS,
} from '../../core/step/authorization.js';
import { PIN_CHECK, BUDGET_CHECK, AGENT_START_CHECKS, REQUEST_CHECKS } from '../../core/policy/authorize-run.js';
import { indexOfCheck, type CheckDescription } from '../../core/policy/verdict.js';
import type { Policy } from '../../core/policy/policy.js';
import { IDENTITY_PHASES, VALIDATION_CHECKS } from '../../core/step/check-phases.js';
import type { RecordedDecision } from './recorded-decision.js';

export interface DecisionCheck {
  /** What is true if the check passed. */
  readonly name: string;
  readonly verdict: 'passed' | 'decided' | 'not reached';
  /** The rule of the check that decided; null for the others. */
  readonly rule_id: string | null;
}

/** The check of FINISH, if the policy has a rule for it. */
const FINISH_CHECK: CheckDescription = {
  claim: 'no request of the run keeps it from finishing',
  rules: ['finish.*'],
};

/** The checks that a repeated proposal has passed. */
const IDENTITY_CHECKS = VALIDATION_CHECKS.filter(({ phase }) => IDENTITY_PHASES.some((known) => known === phase));

/** The checks of `countBallot`, in order. */
const BALLOT_CHECKS: readonly CheckDescription[] = [
  {
    claim: 'the voter is a person with a known role',
    rules: ['approval.by_agent', 'approval.role_unknown', 'approval.not_a_person'],
  },
  { claim: 'the run has requested this', rules: ['approval.other_run', 'approval.unknown_digest'] },
  { claim: 'the approval rule names the role', rules: ['approval.role_not_allowed'] },
  {
    claim: 'the voter is authenticated as the approval rule requires',
    rules: ['approval.not_verified', 'approval.step_up_required'],
  },
  { claim: 'the voter has not requested it', rules: ['approval.by_requester'] },
  { claim: 'the request is pending', rules: ['approval.consumed', 'approval.already_decided', 'approval.expired'] },
  { claim: 'the voter has not voted before', rules: ['approval.already_voted'] },
  { claim: 'the vote approves', rules: ['approval.rejected'] },
];

/** The check of conditions, whose ids are rule ids; none for a policy without conditions. */
const conditionChecks = ({ conditions }: Policy): readonly CheckDescription[] =>
  conditions === undefined
    ? []
    : [{ ...CONDITION_CHECK, rules: [...CONDITION_CHECK.rules, ...conditions.all.map(({ id }) => id)] }];

/** Needed by steps only: people start the other runs. */
const decisionPointChecks = ({ decision_points }: Policy): readonly CheckDescription[] =>
  decision_points === undefined ? [] : [DECISION_POINT_CHECK];

const stepChecks = (policy: Policy): readonly CheckDescription[] =>
  STEP_CHECKS.flatMap((check) =>
    check === CONDITION_CHECK
      ? conditionChecks(policy)
      : check === DECISION_POINT_CHECK
        ? decisionPointChecks(policy)
        : [check],
  );

function checkListOf({ facts, said }: RecordedDecision, policy: Policy): readonly CheckDescription[] {
  switch (facts.kind) {
    case 'orchestrator':
      return [PIN_CHECK];
    case 'agent':
      return AGENT_START_CHECKS;
    case 'run':
      return [...REQUEST_CHECKS, ...conditionChecks(policy), APPROVAL_CHECK];
    case 'approval':
      return [APPROVAL_CHECK, ...REQUEST_CHECKS, ...conditionChecks(policy)];
    case 'retry':
    case 'write':
      return REQUEST_CHECKS;
    case 'ballot':
      return BALLOT_CHECKS;
    case 'step': {
      const privileged = facts.act !== null && isPrivileged(facts.act, policy);
      if (facts.input.seen !== null && said.rule_id === null) return IDENTITY_CHECKS;
      return privileged || (said.rule_id !== null && indexOfCheck(VALIDATION_CHECKS, said.rule_id) >= 0)
        ? [...VALIDATION_CHECKS, ...REQUEST_CHECKS, ...stepChecks(policy)]
        : [...VALIDATION_CHECKS, BUDGET_CHECK, ...(said.rule_id?.startsWith('finish.') === true ? [FINISH_CHECK] : [])];
    }
  }
}

/** Returns every check in order. All checks of an allowed decision have passed. */
export function checksOf(decision: RecordedDecision, policy: Policy): readonly DecisionCheck[] {
  const checks = checkListOf(decision, policy);
  const { decision: verdict, rule_id } = decision.said;
  const decided = verdict === 'allow' || rule_id === null ? checks.length : indexOfCheck(checks, rule_id);
  return checks.map(({ claim }, i) => ({
    name: claim,
    verdict: i === decided ? 'decided' : decided === -1 || i > decided ? 'not reached' : 'passed',
    rule_id: i === decided ? rule_id : null,
  }));
}
