// S4 §5.1: which role may do what in which lane. Default deny: a run is allowed only if every check of its list holds.
// The lists define the order of the checks; `policy explain` prints the same lists.

import type { Lane } from '../contract/policy/lanes.js';
import { OPTIONAL_FILE_KEYS, POLICY_FILES } from '../contract/policy/pins.js';
import { contextInLane, type RunContext } from '../contract/run/run-context.js';
import { UNPINNED } from '../contract/shapes.js';
import { findBrokenLabelRule } from './label-rules.js';
import { isNativeTool, isRedacted } from '../contract/policy/native-tool-names.js';
import { callRuleVerdict } from './calls.js';
import type { Policy } from './policy.js';
import type { PrivilegedRequest } from './privileged-request.js';
import { isProhibition, isPromotion, isOtherCaseTarget, isViolated } from './prohibitions.js';
import { findBrokenScopeRule, isCaseRequired } from './scope.js';
import { findFirstDenial, type OrderedCheck } from './ordered-check.js';
import { allow, deny, type RuleId, type Verdict } from './verdict.js';
import { findBrokenExportRule } from './content/withheld-content.js';

export type { PrivilegedRequest } from './privileged-request.js';

/** What the lane checks read. */
interface LaneSubject {
  readonly run: RunContext;
  readonly policy: Policy;
}

/** What the checks of one privileged request read, once the lane checks hold. */
interface PrivilegedSubject extends LaneSubject {
  readonly lane: Lane;
  readonly request: PrivilegedRequest;
}

/** S4-29: the only check of an orchestrator run, which no lane governs. */
export const PIN_CHECK: OrderedCheck<Pick<LaneSubject, 'run'>, RuleId> = {
  claim: 'every version that the run is judged by is known',
  rules: ['contract.unsupported', 'pin.missing.*'],
  findDenial: ({ run }) => findMissingPin(run),
};

/** C55: role and lane must name each other. */
export const LANE_CHECKS: readonly OrderedCheck<LaneSubject, RuleId>[] = [
  PIN_CHECK,
  {
    claim: 'the role is in roles.yaml',
    rules: ['role.unknown'],
    findDenial: ({ run, policy }) => (policy.roles.has(run.role_id) ? null : 'role.unknown'),
  },
  {
    claim: 'the lane is in lanes.yaml',
    rules: ['lane.missing', 'lane.unknown'],
    findDenial: ({ run: { lane_id }, policy }) =>
      lane_id === null ? 'lane.missing' : policy.lanes.has(lane_id) ? null : 'lane.unknown',
  },
  {
    claim: 'the role lists the lane',
    rules: ['role.lane_not_granted'],
    findDenial: ({ run, policy }) =>
      policy.roles.get(run.role_id)?.privileges.lanes.includes(run.lane_id ?? '') === true
        ? null
        : 'role.lane_not_granted',
  },
  {
    claim: 'the lane names the role',
    rules: ['lane.role_not_allowed'],
    findDenial: ({ run, policy }) =>
      laneOf(run, policy)?.allowed_callers.roles.includes(run.role_id) === true ? null : 'lane.role_not_allowed',
  },
];

/** The checks of an agent run: without the case that its lane requires, it could do nothing there (S4-34). */
export const AGENT_CHECKS: readonly OrderedCheck<LaneSubject, RuleId>[] = [
  ...LANE_CHECKS,
  {
    claim: 'the run has the case that the lane requires',
    rules: ['scope.missing.case_id'],
    findDenial: ({ run, policy }) =>
      run.case_id === null && isCaseRequired(laneOf(run, policy)) ? 'scope.missing.case_id' : null,
  },
];

/** S4-31 to S4-35 in this order, then the rules that the platform enforces in every lane. */
export const PRIVILEGED_CHECKS: readonly OrderedCheck<PrivilegedSubject, RuleId>[] = [
  {
    claim: 'a tool or table is requested, and it is registered',
    rules: ['lane.nothing_requested', 'tool.not_registered', 'target.*'],
    findDenial: ({ request: { tool, write, read, unregistered } }) =>
      tool === null && write === null && read === null ? 'lane.nothing_requested' : unregistered,
  },
  {
    claim: 'the lane lists the tool',
    rules: ['lane.tool_not_allowed'],
    findDenial: ({ request: { tool }, lane: { allowed_actions } }) =>
      tool === null || allowed_actions.tools?.includes(tool) === true ? null : 'lane.tool_not_allowed',
  },
  {
    claim: 'the call rules of the lane allow each part of the call',
    rules: ['call.*'],
    findDenial: ({ request, lane, policy }) => findBrokenCallRule(request, lane, policy),
  },
  {
    claim: 'the lane lists the table among its reads',
    rules: ['lane.read_not_allowed'],
    findDenial: ({ request: { read }, lane: { allowed_actions } }) =>
      read === null || allowed_actions.reads?.includes(read) === true ? null : 'lane.read_not_allowed',
  },
  {
    claim: 'the lane lists the table and mode among its writes',
    rules: ['lane.write_not_allowed', 'lane.write_mode_not_allowed'],
    findDenial: ({ request, lane }) => findBrokenWriteRule(request, lane),
  },
  {
    claim: 'every scope field that the lane requires has its value',
    rules: ['scope.*'],
    findDenial: ({ run, lane }) => findBrokenScopeRule(run, lane),
  },
  {
    claim: 'no prohibition of the lane is violated',
    rules: ['prohibition.*'],
    findDenial: ({ run, request, lane }) => findBrokenProhibition(run, request, lane),
  },
  {
    claim: 'the lane refuses no label of what the run has read',
    rules: ['label.*', 'platform.label_other_case'],
    findDenial: ({ run, request, lane }) => findBrokenLabel(run, request, lane),
  },
  {
    claim: 'no other case and no shared knowledge is touched',
    rules: ['platform.*'],
    findDenial: ({ run, request, lane }) => findBrokenPlatformRule(run, request, lane),
  },
  {
    claim: 'no withheld content would be exported',
    rules: ['export.*'],
    findDenial: ({ request, policy }) => findBrokenExportRule(request, policy),
  },
];

/** Decides whether an orchestrator run may enter `running`: only its pins are checked (S4-29). */
export function authorizeOrchestrator(run: RunContext): Verdict {
  const denial = PIN_CHECK.findDenial({ run });
  return denial === null ? allow('orchestrator.pinned') : deny(denial);
}

/** Decides whether an agent run may enter `running` with its role and case in its lane (C55). */
export function authorizeAgent(run: RunContext, policy: Policy): Verdict {
  const denial = findFirstDenial(AGENT_CHECKS, { run, policy });
  return denial === null ? allow('agent.lane_granted') : deny(denial);
}

/** Decides whether this mediated run may execute one privileged request. `run` is in the lane of the action. */
export function authorizePrivileged(run: RunContext, request: PrivilegedRequest, policy: Policy): Verdict {
  if (request.operator === true && !isListed(request, policy)) return authorizeUnlimited(run);
  const lane = laneOf(run, policy);
  const denial =
    findFirstDenial(LANE_CHECKS, { run, policy }) ??
    (lane === undefined ? 'lane.unknown' : findFirstDenial(PRIVILEGED_CHECKS, { run, request, lane, policy }));
  return denial === null ? allow('lane.granted') : deny(denial);
}

/** A policy that lists an operator's tool in no lane leaves the act to everyone who can open the ledger for writing. */
const isListed = ({ tool }: PrivilegedRequest, { lanes }: Policy): boolean =>
  tool !== null && [...lanes.values()].some(({ allowed_actions }) => allowed_actions.tools?.includes(tool) === true);

function authorizeUnlimited(run: RunContext): Verdict {
  const denial = PIN_CHECK.findDenial({ run });
  return denial === null ? allow('operator.not_limited') : deny(denial);
}

/** The run's context in a lane. It has no case if the lane does not inherit it (C46). */
export const laneContext = (run: RunContext, lane: Lane): RunContext =>
  contextInLane(run, lane.lane_id, lane.inherits_case_id === false ? null : run.case_id);

const PINS = [...POLICY_FILES, 'machines', ...OPTIONAL_FILE_KEYS] as const;

function findMissingPin(run: RunContext): RuleId | null {
  const contract: string = run.contract_version;
  if (contract !== 'v1') return 'contract.unsupported';
  for (const name of PINS) {
    const version = run.policy_versions[name];
    if (version === UNPINNED || version === '') return `pin.missing.${name}`;
  }
  return null;
}

const laneOf = ({ lane_id }: RunContext, { lanes }: Policy): Lane | undefined =>
  lane_id === null ? undefined : lanes.get(lane_id);

/** A call that needs an approval breaks no rule: the approval is checked last (`APPROVAL_CHECK`). */
function findBrokenCallRule({ tool, input }: PrivilegedRequest, lane: Lane, policy: Policy): RuleId | null {
  if (tool === null || input === undefined) return null;
  // A condition or a decision point can read every argument, and would decide about another text than the client has.
  const isRead = policy.conditions !== undefined || policy.decision_points !== undefined;
  if (isRead && isNativeTool(tool) && isRedacted(input)) return 'call.unreadable';
  const verdict = callRuleVerdict(lane, { tool, input });
  switch (verdict.decision) {
    case 'unreadable':
      return 'call.unreadable';
    case 'deny':
      return verdict.rule === null ? 'call.not_allowed' : `call.denied.${verdict.rule.id}`;
    default:
      return null;
  }
}

/** S4-33: a grant to append does not include upserts, nor the reverse. */
function findBrokenWriteRule({ write }: PrivilegedRequest, { allowed_actions: { writes = [] } }: Lane): RuleId | null {
  if (write === null) return null;
  const modes = writes.filter(({ table }) => table === write.table).map(({ mode }) => mode);
  if (modes.length === 0) return 'lane.write_not_allowed';
  return modes.includes(write.mode) ? null : 'lane.write_mode_not_allowed';
}

function findBrokenProhibition(run: RunContext, request: PrivilegedRequest, lane: Lane): RuleId | null {
  for (const name of lane.scope.prohibits) {
    if (!isProhibition(name)) return 'prohibition.unknown';
    if (isViolated(name, { run, lane, request })) return `prohibition.${name}`;
  }
  return null;
}

/** Checks what the run has read before, because two steps can each be allowed while their combination must not be. */
const findBrokenLabel = (
  { case_id }: RunContext,
  { label, write, plane, destination }: PrivilegedRequest,
  lane: Lane,
) =>
  findBrokenLabelRule(label, case_id, lane.refuses_labels ?? NO_REFUSALS, {
    write: write !== null,
    shared: plane === 'shared',
    outside: destination === 'outside',
  });

const NO_REFUSALS: NonNullable<Lane['refuses_labels']> = [];

/** S4-84 and S4-85 hold in every lane. A lane can allow reads of another case, and no lane can allow writes to it. */
function findBrokenPlatformRule(run: RunContext, request: PrivilegedRequest, lane: Lane): RuleId | null {
  if (isOtherCaseTarget(run, request) && !canReadOtherCases(request, lane)) return 'platform.cross_case';
  const writesShared = request.plane === 'shared' && request.write !== null;
  if (writesShared && !(isPromotion(run, request) && isPromotionLane(lane))) return 'platform.shared_write';
  return null;
}

const canReadOtherCases = ({ tool, write, read }: PrivilegedRequest, lane: Lane): boolean =>
  read !== null && tool === null && write === null && lane.cross_case_reads === true;

// A promotion lane is recognized by the conditions that every promotion needs (S4-71, S4-73), not by its name.
const PROMOTION_PROHIBITS = ['raw_case_text', 'client_identity', 'privileged_notes'];

const isPromotionLane = ({ scope: { requires, prohibits } }: Lane): boolean =>
  requires.includes('promotion_ticket_id') &&
  !prohibits.includes('shared_knowledge_write') &&
  PROMOTION_PROHIBITS.every((name) => prohibits.includes(name));
