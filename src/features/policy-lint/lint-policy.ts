// Finds careless rules in a valid policy; `checkPolicy` finds contradictions and runs first. The linter affects no run:
// a running tree, a recovery and a replay load the pinned policy, careless or not.

import { createCatalogue, NO_REGISTRATIONS, type Catalogue } from '../../core/contract/policy/catalogue.js';
import type { ActionsPolicy } from '../../core/contract/policy/actions-policy.js';
import type { LanesPolicy } from '../../core/contract/policy/lanes.js';
import { valuesOf, type ForPolicyFiles } from '../../core/contract/policy/pins.js';
import type { RolesPolicy, Role } from '../../core/contract/policy/roles.js';
import { toLintMessage, type LintFinding } from './lint-rules.js';
import type { LintMessage, PolicyLinter } from '../../home/policy/policy-linter.js';
import { checkPolicy } from '../../core/policy/files/check-policy.js';
import { readPolicyYaml, type NamedPolicyFile } from '../../core/policy/files/read-policy-file.js';
import { lintActions } from './lint-actions.js';
import { lintCalls, lintLanes, lintNames, laneKindOf, type LaneKind } from './lint-lanes.js';
import { lintConditions } from './lint-conditions.js';
import { lintIdentities } from './lint-identities.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';
import { quoteForMessage } from '../../core/contract/finding-text.js';

/** One part of the linter, with the rules for one subject. */
type Linter = (parts: PolicyParts, catalogue: Catalogue) => Iterable<LintFinding>;
const LINTERS: readonly Linter[] = [lintLanes, lintCalls, lintRoles, lintActions, lintNames];

/**
 * Reports every careless place of a policy, in the order of files and lines.
 * @returns nothing for a policy with findings of `checkPolicy`, which must be corrected first
 */
export function lintPolicy(
  files: ForPolicyFiles<NamedPolicyFile>,
  catalogue: Catalogue = createCatalogue(NO_REGISTRATIONS),
): readonly LintMessage[] {
  const { policy } = checkPolicy(files, catalogue);
  if (policy === null) return [];
  const documents = {
    lanes: readPolicyYaml(files.lanes.bytes).document,
    roles: readPolicyYaml(files.roles.bytes).document,
    actions: readPolicyYaml(files.actions.bytes).document,
  };
  const parts = {
    lanes: documents.lanes?.data as unknown as LanesPolicy,
    roles: documents.roles?.data as unknown as RolesPolicy,
    actions: documents.actions?.data as unknown as ActionsPolicy,
  };
  const messages: LintMessage[] = LINTERS.flatMap((linter) => [...linter(parts, catalogue)]).map((finding) =>
    toLintMessage(finding, files[finding.name].path, documents[finding.name]),
  );
  if (files.conditions !== undefined) {
    messages.push(...lintConditions(files.conditions.path, policy, parts.lanes.last_updated));
  }
  const order = valuesOf(files).map(({ path }) => path);
  return messages.sort((a, b) => order.indexOf(a.file) - order.indexOf(b.file) || a.line - b.line);
}

export const POLICY_LINTER: PolicyLinter = { lintPolicy, lintIdentities };

// Lint rules for roles: an agent that counts as a person can approve its own requests.

/** Words that name software and not people. */
const AGENT_WORDS: ReadonlySet<string> = new Set(
  'AGENT AGENTS AI ASSISTANT AUTOMATION BOT BOTS CHATBOT COPILOT GPT LLM MODEL ROBOT'.split(' '),
);
/** Whether an id contains such a word, with any word separator: `INTAKE-AGENT`, `intake.bot2`, `IntakeAgent`. */
const isAgentName = (role_id: string): boolean =>
  role_id
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toUpperCase()
    .split(/[^A-Z]+/)
    .some((word) => AGENT_WORDS.has(word));

export function* lintRoles({ lanes, roles, actions }: PolicyParts, catalogue: Catalogue): Generator<LintFinding> {
  const kinds = new Map(lanes.lanes.map((lane) => [lane.lane_id, laneKindOf(lane, catalogue)]));
  const approvers = new Set((actions.approvals ?? []).flatMap((rule) => rule.approver_roles));
  for (const [index, role] of roles.roles.entries()) {
    const granted = role.privileges.lanes.flatMap((lane_id) => kinds.get(lane_id) ?? []);
    const finding = lintRole(role, granted, approvers);
    if (finding === null) continue;
    const message = `role ${quoteForMessage(role.role_id)} ${finding.problem}`;
    yield { name: 'roles', pointer: `/roles/${index}/class`, rule: finding.rule, severity: 'error', message };
  }
}

interface RoleFinding {
  readonly rule: Extract<LintFinding['rule'], `role.${string}`>;
  readonly problem: string;
}

function lintRole(role: Role, granted: readonly LaneKind[], approvers: ReadonlySet<string>): RoleFinding | null {
  const works = granted.some(({ exports, promotes, checks }) => !exports && !promotes && !checks);
  if (role.class === 'human') {
    if (isAgentName(role.role_id)) {
      return { rule: 'role.agent_as_human', problem: 'is called an agent, and counts as a person who may approve' };
    }
    if (granted.some(({ files }) => files)) {
      return { rule: 'role.agent_as_human', problem: 'works on files as agents do, and counts as a person' };
    }
    if (works && approvers.has(role.role_id)) {
      return { rule: 'role.acts_and_approves', problem: 'has a lane for the work of agents, and approves' };
    }
  }
  if (role.class === 'system' && works) {
    return { rule: 'role.agent_as_system', problem: 'has a lane for the work of agents, and counts as the platform' };
  }
  return null;
}
