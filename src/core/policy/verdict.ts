import type { PolicyCause } from '../contract/fault.js';

/** The policy's decision about one request. `rule_id` goes to the audit, never to the agent. */
export interface Verdict {
  readonly decision: 'allow' | 'deny';
  readonly rule_id: string;
  /** Null exactly if the decision is allow. */
  readonly cause: PolicyCause | null;
}

/**
 * Every rule by which lanes and roles decide, in the order of the checks, with its description.
 * In place of `<field>`, a rule id has the name of the scope field, or the id of the call rule.
 */
export const RULES = {
  'contract.unsupported': 'The run is not pinned to contract v1.',
  'pin.missing.lanes': 'The version of lanes.yaml is not known.',
  'pin.missing.roles': 'The version of roles.yaml is not known.',
  'pin.missing.actions': 'The version of the actions file is not known.',
  'pin.missing.machines': 'The version of the machines is not known.',
  'pin.missing.conditions': 'The version of conditions.cedar is not known.',
  'pin.missing.counters': 'The version of counters.yaml is not known.',
  'orchestrator.pinned': 'Allowed: every version that the run is judged by is known.',
  'role.unknown': 'The role is not in roles.yaml.',
  'lane.missing': 'The run names no lane.',
  'lane.unknown': 'The lane is not in lanes.yaml.',
  'role.lane_not_granted': 'The role does not list the lane.',
  'lane.role_not_allowed': 'The lane does not name the role.',
  'agent.lane_granted': 'Allowed: role and lane name one another.',
  'lane.nothing_requested': 'The request names neither a tool nor a table.',
  'tool.not_registered': 'The tool does not exist.',
  'target.not_registered': 'The table does not exist.',
  'target.mode_not_registered': 'The table cannot be written with this mode.',
  'lane.tool_not_allowed': 'The lane does not list the tool.',
  'call.unreadable': 'The call cannot be read with certainty, so the call rules of the lane cannot decide it.',
  'call.not_allowed': 'No call rule of the lane allows a part of the call.',
  'call.denied.<field>': 'A call rule of the lane denies a part of the call.',
  'lane.write_not_allowed': 'The lane does not list the table.',
  'lane.write_mode_not_allowed': 'The lane lists the table, but not with this mode.',
  'lane.read_not_allowed': 'The lane does not list the table among those that may be read.',
  'scope.missing.<field>': 'The lane requires a scope field that the run does not have.',
  'scope.mismatch.<field>': "The scope names another case or run than the run's own.",
  'prohibition.unknown': 'The lane has a prohibition that nothing decides.',
  'prohibition.cross_case_lookup': "The target belongs to another case than the run's.",
  'prohibition.external_export': 'The destination is outside the platform.',
  'prohibition.shared_knowledge_write': 'The target is shared knowledge, and this is no promotion run.',
  'prohibition.raw_case_text': 'Raw text of a case would be carried over.',
  'prohibition.client_identity': 'What identifies a client would be carried over.',
  'prohibition.privileged_notes': 'Privileged notes would be carried over.',
  'prohibition.raw_external_destination': 'Something other than an export bundle would leave the platform.',
  'prohibition.unaudited_delivery': 'Something would leave the platform outside an audited export run.',
  'label.other_case': "The lane refuses what was read in another case than the run's.",
  'label.any_case': 'The lane refuses what was read in a case.',
  'label.contains_pii': 'The lane refuses what identifies a person.',
  'label.contains_phi': 'The lane refuses what is about the health of a person.',
  'label.contains_privileged': 'The lane refuses what is privileged.',
  'platform.cross_case': "The target belongs to another case than the run's, and the lane does not allow that.",
  'platform.shared_write': 'Shared knowledge is written only by a promotion run in a promotion lane.',
  'platform.label_other_case':
    "What was read in another case than the run's would be shared or leave the platform, and no lane can allow that.",
  'export.content_withheld': 'The export would hold content of a lane that withholds it (withholds_content).',
  'export.not_approved':
    'The export would hold withheld content, and the policy does not require an approval of exports.',
  'operator.not_limited': 'Allowed: no lane lists the tool of this act, so role and lane do not limit it.',
  'lane.granted': 'Allowed: role, lane, tool or table, scope and prohibitions hold.',
} as const satisfies Record<string, string>;

type RuleName = keyof typeof RULES;
type ExpandedRuleName<Name extends string> = Name extends `${infer Stem}<field>` ? `${Stem}${string}` : Name;
/** A rule id as verdicts carry it. */
export type RuleId = ExpandedRuleName<RuleName>;

/** The names of all rules in the order of the checks; docs and tests compare with it. */
export const RULE_IDS = Object.keys(RULES) as readonly RuleName[];

/** All rules of lanes and roles have the cause LANE; the rule id names the exact reason. */
export const deny = (rule_id: RuleId): Verdict => ({ decision: 'deny', rule_id, cause: 'LANE' });

/** The denial by a condition, whose id is the rule id. */
export const denyCondition = (rule_id: string): Verdict => ({ decision: 'deny', rule_id, cause: 'CONDITION' });

/** The denial of a start or step for which the budget of `kind` is exhausted. */
export const denyBudget = (kind: string): Verdict => ({ decision: 'deny', rule_id: `budget.${kind}`, cause: 'BUDGET' });

// The checks of a decision as data. Live decisions, `policy simulate` and `policy explain` share each list, so all of
// them check in the same order.

/** A check as `policy explain` prints it. */
export interface CheckDescription {
  /** What is true once the check has passed. */
  readonly claim: string;
  /** The rules by which the check denies. A rule that ends with `*` stands for every rule id with this beginning. */
  readonly rules: readonly string[];
}

/** One check of a decision about a `Subject`. */
export interface OrderedCheck<Subject, Denial> extends CheckDescription {
  /** Returns the denial if the check does not hold, otherwise null. */
  readonly findDenial: (subject: Subject) => Denial | null;
}

/** The position of the check that denies by `rule_id`, or -1. A check that names the rule precedes one with `*`. */
export function indexOfCheck(checks: readonly CheckDescription[], rule_id: string): number {
  const exact = checks.findIndex(({ rules }) => rules.includes(rule_id));
  if (exact >= 0) return exact;
  return checks.findIndex(({ rules }) =>
    rules.some((rule) => rule.endsWith('*') && rule_id.startsWith(rule.slice(0, -1))),
  );
}
