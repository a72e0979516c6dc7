// S4 §5.1: who may do what, where. Default deny: each function ends in an allow only after every check before it held.

import type { Lane } from '../contract/policy/lanes.js';
import { POLICY_FILES } from '../contract/policy/pins.js';
import { contextInLane, type RunContext } from '../contract/run/run-context.js';
import { UNPINNED } from '../contract/shapes.js';
import { findBrokenLabelRule } from './labels.js';
import type { Policy } from './policy.js';
import type { PrivilegedRequest } from './privileged-request.js';
import { isProhibition, isPromotion, isOtherCaseTarget, isViolated } from './prohibitions.js';
import { findBrokenScopeRule } from './scope.js';
import { allow, deny, type RuleId, type Verdict } from './verdict.js';
import { findBrokenExportRule } from './content/withheld-content.js';

export type { PrivilegedRequest } from './privileged-request.js';

/** May an orchestrator run enter `running`? It governs no lane, so only its pins are looked at (S4-29). */
export const authorizeOrchestrator = (run: RunContext): Verdict =>
  missingPinDenial(run) ?? allow('orchestrator.pinned');

/** May an agent run enter `running` with its role, in its lane? Both sides must say so (C55). */
export function authorizeAgent(run: RunContext, policy: Policy): Verdict {
  const resolved = resolveLane(run, policy);
  return 'denial' in resolved ? resolved.denial : allow('agent.lane_granted');
}

/**
 * May this run do this one privileged act? The checks of S4-31 to S4-35 in their order, then what the platform forbids
 * whatever a lane says. `run` is the mediated run, in the lane it works in (`laneContext`).
 */
export function authorizePrivileged(run: RunContext, request: PrivilegedRequest, policy: Policy): Verdict {
  const resolved = resolveLane(run, policy);
  if ('denial' in resolved) return resolved.denial;
  const { lane } = resolved;
  const brokenRule =
    findBrokenActionRule(request, lane) ??
    findBrokenScopeRule(run, lane) ??
    findBrokenProhibition(run, request, lane) ??
    findBrokenLabel(run, request, lane) ??
    findBrokenPlatformRule(run, request, lane) ??
    findBrokenExportRule(request, policy);
  return brokenRule === null ? allow('lane.granted') : deny(brokenRule);
}

/** A run's context in a lane. A lane may refuse to inherit the case; then the run has none (C46). */
export const laneContext = (run: RunContext, lane: Lane): RunContext =>
  contextInLane(run, lane.lane_id, lane.inherits_case_id === false ? null : run.case_id);

const PINS = [...POLICY_FILES, 'machines'] as const;

function missingPinDenial(run: RunContext): Verdict | null {
  const contract: string = run.contract_version;
  if (contract !== 'v1') return deny('contract.unsupported');
  for (const name of PINS) {
    const version = run.policy_versions[name];
    if (version === UNPINNED || version === '') return deny(`pin.missing.${name}`);
  }
  return null;
}

function resolveLane(run: RunContext, policy: Policy): { readonly lane: Lane } | { readonly denial: Verdict } {
  const pinDenial = missingPinDenial(run);
  if (pinDenial !== null) return { denial: pinDenial };
  const role = policy.roles.get(run.role_id);
  if (role === undefined) return { denial: deny('role.unknown') };
  if (run.lane_id === null) return { denial: deny('lane.missing') };
  const lane = policy.lanes.get(run.lane_id);
  if (lane === undefined) return { denial: deny('lane.unknown') };
  if (!role.privileges.lanes.includes(lane.lane_id)) return { denial: deny('role.lane_not_granted') };
  if (!lane.allowed_callers.roles.includes(role.role_id)) return { denial: deny('lane.role_not_allowed') };
  return { lane };
}

/** S4-33. A grant to append does not let anybody upsert, nor the other way round. */
function findBrokenActionRule(request: PrivilegedRequest, { allowed_actions }: Lane): RuleId | null {
  const { tool, write, read, unregistered } = request;
  const { tools = [], writes = [], reads = [] } = allowed_actions;
  if (tool === null && write === null && read === null) return 'lane.nothing_requested';
  if (unregistered !== null) return unregistered;
  if (tool !== null && !tools.includes(tool)) return 'lane.tool_not_allowed';
  if (read !== null && !reads.includes(read)) return 'lane.read_not_allowed';
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

/** What the run has read decides as well: each of two steps may be allowed, and both together not. */
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

/** S4-84 and S4-85 hold in every lane. A lane may allow to read another case, and none can allow to write there. */
function findBrokenPlatformRule(run: RunContext, request: PrivilegedRequest, lane: Lane): RuleId | null {
  if (isOtherCaseTarget(run, request) && !canReadOtherCases(request, lane)) return 'platform.cross_case';
  const writesShared = request.plane === 'shared' && request.write !== null;
  if (writesShared && !(isPromotion(run, request) && isPromotionLane(lane))) return 'platform.shared_write';
  return null;
}

const canReadOtherCases = ({ tool, write, read }: PrivilegedRequest, lane: Lane): boolean =>
  read !== null && tool === null && write === null && lane.cross_case_reads === true;

// A promotion lane is known by what every promotion needs (S4-71, S4-73), not by its name.
const PROMOTION_PROHIBITS = ['raw_case_text', 'client_identity', 'privileged_notes'];

const isPromotionLane = ({ scope: { requires, prohibits } }: Lane): boolean =>
  requires.includes('promotion_ticket_id') &&
  !prohibits.includes('shared_knowledge_write') &&
  PROMOTION_PROHIBITS.every((name) => prohibits.includes(name));
