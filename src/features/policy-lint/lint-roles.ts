// Lint rules for roles: an agent that counts as a person can approve its own requests.

import { quoteForMessage } from '../../core/contract/finding-text.js';
import type { Catalogue } from '../../core/contract/policy/catalogue.js';
import type { Role } from '../../core/contract/policy/roles.js';
import type { LintFinding } from './lint-rules.js';
import { laneKindOf, type LaneKind } from './lane-kind.js';
import type { PolicyParts } from '../../core/policy/files/policy-consistency.js';

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
