// The checks that a decision passes through, in their order. A deny is the first check that does not hold; so the rule
// that decided says of every other check whether it was passed or never reached.

import { REFUSED_KINDS } from '../../contract/run/effect.js';
import type { Policy } from '../../policy/policy.js';
import type { RecordedDecision } from './recorded-decision.js';

export interface DecisionCheck {
  readonly name: string;
  readonly verdict: 'passed' | 'decided' | 'not reached';
  /** Of the check that decided. */
  readonly rule_id: string | null;
}

/** What is asked, and the rules by which it says no; `*` stands for every rule that begins so. */
type CheckQuestion = readonly [name: string, ...rules: string[]];

const PINS_CHECK: CheckQuestion = [
  'every version that the run is judged by is known',
  'contract.unsupported',
  'pin.missing.*',
];
const LANE_CHECKS: readonly CheckQuestion[] = [
  PINS_CHECK,
  ['the role is in roles.yaml', 'role.unknown'],
  ['the lane is in lanes.yaml', 'lane.missing', 'lane.unknown'],
  ['the role lists the lane', 'role.lane_not_granted'],
  ['the lane names the role', 'lane.role_not_allowed'],
];
const OVERLAY_CHECK: CheckQuestion = ['no rule of the emergency overlay denies it', 'overlay.*'];
const ACT_CHECKS: readonly CheckQuestion[] = [
  ...LANE_CHECKS,
  ['a tool or table is asked for, and registered', 'lane.nothing_requested', 'tool.not_registered', 'target.*'],
  ['the lane lists the tool', 'lane.tool_not_allowed'],
  ['the lane lists the table among its reads', 'lane.read_not_allowed'],
  ['the lane lists the table and mode among its writes', 'lane.write_not_allowed', 'lane.write_mode_not_allowed'],
  ['every scope field that the lane requires has its value', 'scope.*'],
  ['no prohibition of the lane is violated', 'prohibition.*'],
  ['nothing that was read is refused', 'label.*', 'platform.label_other_case'],
  ['no other case, and no shared knowledge, is touched', 'platform.*'],
  ['no withheld content would be exported', 'export.*'],
  OVERLAY_CHECK,
];
const VALIDATION_CHECKS: readonly CheckQuestion[] = [
  ['the payload is UTF-8 text within its limits', 'payload.*'],
  ['the payload is JSON', 'json.*'],
  ['the payload is a proposal', 'schema.*'],
  ['the proposal id is new', 'proposal.*'],
  ['the action is listed', 'action.*'],
  ['the arguments are what the action takes', 'args.*', 'path.*'],
];
const BUDGET_CHECK: CheckQuestion = ['there is enough of the budget left', 'budget.*'];
const STEP_CHECKS: readonly CheckQuestion[] = [
  ['the run has a case where it needs one', 'sandbox.no_case', 'records.no_case'],
  BUDGET_CHECK,
  ['the run is not being called off', 'lifecycle.*'],
  ['the paths lead into the sandbox', 'sandbox.*'],
  ['the endings of the paths are allowed', 'extension.not_allowed'],
  ['what stands at the paths may be touched', 'sandbox.no_facts', ...REFUSED_KINDS.map((kind) => `sandbox.${kind}`)],
  ['the sandbox has room for it', 'sandbox.depth', 'quota.*'],
  ['no outcome of the same request is unknown', 'outcome.unsettled'],
  ['people have approved it, where they are asked', 'approval.*'],
];
const APPROVAL_CHECK: CheckQuestion = ['people have approved it, where they are asked', 'approval.*'];
const BALLOT_CHECKS: readonly CheckQuestion[] = [
  ['the voter is a person whose role there is', 'approval.by_agent', 'approval.role_unknown', 'approval.not_a_person'],
  ['the run has asked for this', 'approval.other_run', 'approval.unknown_digest'],
  ['the rule for it names the role', 'approval.role_not_allowed'],
  ['the voter has not asked for it', 'approval.by_requester'],
  ['the request is open', 'approval.consumed', 'approval.already_decided', 'approval.expired'],
  ['the voter has not voted before', 'approval.already_voted'],
  ['the answer is yes', 'approval.rejected'],
];

function questionsOf({ facts, said }: RecordedDecision, { catalogue }: Policy): readonly CheckQuestion[] {
  switch (facts.kind) {
    case 'orchestrator':
      return [PINS_CHECK];
    case 'agent':
      return [BUDGET_CHECK, ...LANE_CHECKS, OVERLAY_CHECK];
    case 'run':
      return [...ACT_CHECKS, APPROVAL_CHECK];
    case 'approval':
      return [APPROVAL_CHECK, ...ACT_CHECKS];
    case 'retry':
    case 'write':
      return ACT_CHECKS;
    case 'ballot':
      return BALLOT_CHECKS;
    case 'step': {
      const privileged = facts.act !== null && catalogue.action(facts.act.action)?.run_kind !== null;
      if (facts.input.seen !== null && said.rule_id === null) return VALIDATION_CHECKS.slice(0, 4);
      return privileged || (said.rule_id !== null && findQuestion(VALIDATION_CHECKS, said.rule_id) >= 0)
        ? [...VALIDATION_CHECKS, ...ACT_CHECKS, ...STEP_CHECKS]
        : [...VALIDATION_CHECKS, BUDGET_CHECK];
    }
  }
}

/** Every check in its order. Of an allow, all of them were passed. */
export function checksOf(decision: RecordedDecision, policy: Policy): readonly DecisionCheck[] {
  const questions = questionsOf(decision, policy);
  const { decision: verdict, rule_id } = decision.said;
  const decided = verdict === 'allow' || rule_id === null ? questions.length : findQuestion(questions, rule_id);
  return questions.map(([name], i) => ({
    name,
    verdict: i === decided ? 'decided' : decided === -1 || i > decided ? 'not reached' : 'passed',
    rule_id: i === decided ? rule_id : null,
  }));
}

/** Which of them a rule belongs to: one that names it comes before one that names its kind. -1 for none. */
function findQuestion(questions: readonly CheckQuestion[], rule_id: string): number {
  const exact = questions.findIndex(([, ...rules]) => rules.includes(rule_id));
  if (exact >= 0) return exact;
  return questions.findIndex(([, ...rules]) =>
    rules.some((rule) => rule.endsWith('*') && rule_id.startsWith(rule.slice(0, -1))),
  );
}
