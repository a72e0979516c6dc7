// The rules of the linter. A careless policy can be loaded, and a tree that has pinned it is judged by it permanently,
// so no rule here affects a run. `turnpike policy check` shows the findings, and `turnpike policy pin` refuses errors.

import type { PolicyFile } from '../../core/contract/policy/pins.js';
import type { LintMessage, LintSeverity } from '../../home/policy/policy-linter.js';

/** Every rule, with its remedy. */
export const LINT_RULES = {
  'export.no_approval': 'add `{ for: export, approver_roles: [...], quorum: 1, expires_minutes: ... }` to approvals',
  'export.by_agent': 'let roles of class human start exports, and take the lane from the role in both files',
  'export.prohibition_missing': 'add the prohibition to scope.prohibits of the lane',
  'promotion.no_approval':
    'add `{ for: promotion, approver_roles: [...], quorum: 1, expires_minutes: ... }` to approvals',
  'promotion.by_agent': 'let a role of class human or system start promotions, and take the lane from the role',
  'promotion.prohibition_missing': 'add the prohibition to scope.prohibits of the lane',
  'lane.prohibition_missing': 'add the prohibition to scope.prohibits of the lane',
  'lane.audit_not_required': 'set audit.required to true',
  'lane.scope_missing': 'add the field to scope.requires of the lane',
  'lane.cross_case_reads': 'take cross_case_reads out, or keep its reads in a lane without writes and tools',
  'lane.embedded_text': 'take allow_embedded_text out: records hold references',
  'lane.drops_case': 'take inherits_case_id out: the lane requires a case',
  'lane.partial_outputs': 'take partial_outputs out, or let nothing rely on the tables of the lane',
  'call.unrestricted': 'add `calls` to the lane: rules for the commands that it may run',
  'call.any_command': 'list the commands that are allowed under `commands`',
  'call.any_option': 'list the options that are harmless under `options`, or ask for an approval',
  'call.never_matches': 'let a rule have conditions of one kind of part, of a kind that its tools have',
  'lane.session_checks': 'let roles of class system alone verify and review, in a lane of their own',
  'role.agent_as_human': 'set class to agent: people approve, and agents act',
  'role.agent_as_system': 'set class to agent: a system role is for the platform itself',
  'role.acts_and_approves': 'let the approvers have a role that no agent run is started with',
  'action.path_unrestricted': 'list the endings that are allowed under extensions, for each path argument',
  'action.runs': 'take the endings out of extensions: what agents write must not be what programs run',
  'action.privileged_lane': 'take `lane` out, or name a lane without exports, promotions and session checks',
  'approval.unlisted_action': 'list the action under actions, or take the approval out',
  'approval.long_lived': 'let approvals expire within 30 days (43200 minutes)',
  'budget.no_tool_calls': 'limit tool_calls under budgets: CALL_TOOL is listed',
  'limits.denials': 'let an agent run end after at most 1000 denials',
  'finish.no_request': 'take the key out, or add the approval of an action to approvals',
  'checkpoints.late': 'set knobs.checkpoints to batch: the head is signed after every batch',
  'tool.misspelt': 'write the name of the tool that there is',
  'tool.unknown': 'register the tool, or take it out',
  'table.misspelt': 'write the name of the table that there is',
  'condition.unreachable': 'take one of the two out, or write two conditions',
  'condition.past': 'take the condition out, or give it a later date',
  'condition.unknown_name': 'write the name that there is, or add it to roles.yaml',
  'condition.unknown_actor': 'write the name of an actor, or of its role or group',
  'identity.matches_everyone': 'add `claims` or `subjects`: without them, every user of the issuer is this caller',
  'identity.changeable_claim': 'take a claim that users cannot change, such as sub or an employee number',
  'identity.shared_actor':
    'take the actor from a claim whose values differ between issuers, or restrict the values with `subjects` or `claims`',
  'identity.unverified_votes': 'add `identity: {}` to the approval rule, so that it takes only votes of issuers',
} as const satisfies Record<string, string>;
export type LintRule = keyof typeof LINT_RULES;
export const LINT_RULE_IDS = Object.keys(LINT_RULES) as readonly LintRule[];

/** A careless place: the file, and a JSON pointer into it. */
export interface LintFinding {
  readonly name: PolicyFile;
  readonly pointer: string;
  readonly rule: LintRule;
  readonly severity: LintSeverity;
  readonly message: string;
}

/** The finding with its line and its remedy. */
export const toLintMessage = (
  { pointer, rule, severity, message }: Omit<LintFinding, 'name'>,
  file: string,
  document: { readonly lineOf: (pointer: string) => number } | null,
): LintMessage => ({
  file,
  line: document?.lineOf(pointer) ?? 1,
  rule,
  severity,
  message,
  remedy: LINT_RULES[rule],
});

/** A lint finding as one line, in the form that editors and CI systems turn into links. */
export const formatLintMessage = ({ file, line, rule, severity, message, remedy }: LintMessage): string =>
  `${file}:${line} ${severity === 'warning' ? 'warning: ' : ''}${rule}: ${message}; ${remedy}`;
