// The whole verdict on a run and its request: first the pinned policy, then the emergency overlay, which can only deny
// (D1). Every decision uses `authorizeWithOverlay` or `authorizeAgentStart`, so that none omits the overlay.
//
// S4 §5.1: which role may do what in which lane. Default deny: a run is allowed only if every check of its list holds.
// The lists define the order of the checks; `policy explain` prints the same lists.

import type { Lane } from '../contract/policy/lanes.js';
import { OPTIONAL_FILE_KEYS, POLICY_FILES } from '../contract/policy/pins.js';
import { contextInLane, type RunContext } from '../contract/run/run-context.js';
import { UNPINNED, TAXONOMY_FIELDS, type TaxonomyField } from '../contract/shapes.js';
import { isNativeTool, isRedacted } from '../contract/policy/native-tool-names.js';
import { callRuleVerdict, approvalRuleFor } from './policy-features.js';
import type { Policy } from './policy.js';
import type { PrivilegedRequest } from './privileged-request.js';
import { deny, denyBudget, type CheckDescription, type OrderedCheck, type RuleId, type Verdict } from './verdict.js';
import type { ArtifactRef } from '../contract/artifact-ref.js';
import {
  CONFIDENTIALITY_FLAGS,
  LABEL_CASES_MAX,
  type ConfidentialityFlag,
  type Label,
  type LabelRefusal,
} from '../contract/policy/labels.js';
import {
  type OverlayFact,
  type OverlaySubject,
  OVERLAY_MATCHERS,
  type ComparedRule,
  type OverlayMatcher,
} from '../contract/policy/overlay.js';
import { compareNames } from '../contract/person.js';

export type { PrivilegedRequest } from './privileged-request.js';

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
const AGENT_CHECKS: readonly OrderedCheck<LaneSubject, RuleId>[] = [
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

/** The first check of an agent start; a step has it after the checks of its lane. */
export const BUDGET_CHECK: CheckDescription = { claim: 'enough of the budget is left', rules: ['budget.*'] };

/** The last check of an agent start and of every privileged request. */
const OVERLAY_CHECK: CheckDescription = {
  claim: 'no rule of the emergency overlay denies it',
  rules: ['overlay.*'],
};

/** The checks of `authorizeAgentStart`, in order. */
export const AGENT_START_CHECKS: readonly CheckDescription[] = [BUDGET_CHECK, ...AGENT_CHECKS, OVERLAY_CHECK];

/** The checks of `authorizeWithOverlay`, in order. */
export const REQUEST_CHECKS: readonly CheckDescription[] = [...LANE_CHECKS, ...PRIVILEGED_CHECKS, OVERLAY_CHECK];

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

const allow = (rule_id: RuleId): Verdict => ({ decision: 'allow', rule_id, cause: null });

/** Runs the checks in order. Returns the first denial, or null if every check holds. */
export function findFirstDenial<Subject, Denial>(
  checks: readonly OrderedCheck<Subject, Denial>[],
  subject: Subject,
): Denial | null {
  for (const { findDenial } of checks) {
    const denial = findDenial(subject);
    if (denial !== null) return denial;
  }
  return null;
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

// C56: a prohibition is a predicate of the platform over facts. An agent cannot declare these facts.

/** The input of a prohibition. */
interface ProhibitionFacts {
  readonly run: RunContext;
  readonly lane: Lane;
  readonly request: PrivilegedRequest;
}

/** Text inside a record, without a reference to an artifact. It can contain anything, so it has every marking. */
export const EMBEDDED_TEXT = 'embedded_text';

// Artifact kinds that contain the original text of a case, or text that an agent wrote from it without review.
const RAW_TEXT = [
  'raw_case_text',
  'raw_payload',
  'raw_payload_prefix',
  'result',
  'file_content',
  'response',
  'explanation',
  'transcript',
  EMBEDDED_TEXT,
];
const IDENTITY = ['client_identity', 'contains_pii', 'contains_phi', EMBEDDED_TEXT];
const PRIVILEGED = ['privileged_notes', 'interview_notes', 'contains_privileged', EMBEDDED_TEXT];
const BUNDLE_KIND = 'export_bundle';

const hasAnyFlag = (flags: readonly string[], wanted: readonly string[]): boolean =>
  flags.some((flag) => wanted.includes(flag));

const PROHIBITIONS = {
  cross_case_lookup: ({ run, request }) => isOtherCaseTarget(run, request),
  external_export: ({ request }) => request.destination === 'outside',
  shared_knowledge_write: ({ run, request }) => request.plane === 'shared' && !isPromotion(run, request),
  raw_case_text: ({ request }) => hasAnyFlag(request.artifact_flags, RAW_TEXT),
  client_identity: ({ request }) => hasAnyFlag(request.artifact_flags, IDENTITY),
  privileged_notes: ({ request }) => hasAnyFlag(request.artifact_flags, PRIVILEGED),
  raw_external_destination: ({ request: { destination, artifact_flags } }) =>
    destination === 'outside' && (!artifact_flags.includes(BUNDLE_KIND) || hasAnyFlag(artifact_flags, RAW_TEXT)),
  unaudited_delivery: ({ run, lane, request }) =>
    request.destination === 'outside' && (run.run_kind !== 'export' || !lane.audit.required),
} as const satisfies Record<string, (facts: ProhibitionFacts) => boolean>;
export type Prohibition = keyof typeof PROHIBITIONS;
export const PROHIBITION_NAMES = Object.keys(PROHIBITIONS) as readonly Prohibition[];

/** Whether the platform defines a prohibition of this name. */
export const isProhibition = (name: string): name is Prohibition => Object.hasOwn(PROHIBITIONS, name);

/** Whether the request violates the prohibition. */
export const isViolated = (name: Prohibition, facts: ProhibitionFacts): boolean => PROHIBITIONS[name](facts);

/** Whether the run is a promotion run, or the db_write run that executes its write. */
const isPromotion = ({ run_kind }: RunContext, { promotes }: PrivilegedRequest): boolean =>
  run_kind === 'promotion' || (run_kind === 'db_write' && promotes);

/** S4-84: whether the target belongs to a case that is not the run's. A target without a case belongs to no case. */
const isOtherCaseTarget = (run: RunContext, { target_case_id }: PrivilegedRequest): boolean =>
  target_case_id !== null && target_case_id !== run.case_id;

/** The kinds and confidentiality flags of the artifacts that a request transfers, each once. */
export const artifactFlags = (refs: readonly ArtifactRef[]): readonly string[] => [
  ...new Set(
    refs.flatMap(({ artifact_kind, confidentiality = {} }) => [
      artifact_kind,
      ...Object.entries(confidentiality).flatMap(([flag, value]) => (value === true ? [flag] : [])),
    ]),
  ),
];

/** A rule id has at most 120 characters in an audit event, and the ledger must be able to record every denial. */
const FIELD_CHARS_MAX = 100;

/**
 * S4-34: checks that every scope field that the lane requires is present, a string, and not blank. For `case_id`,
 * `run_id` and pinned taxonomy versions the run's own value counts (S4-30). A scope with another value is denied, not
 * overridden, because its author expects an effect of it.
 * @returns the first broken rule, or null
 */
export function findBrokenScopeRule(run: RunContext, lane: Lane): RuleId | null {
  for (const field of lane.scope.requires) {
    const given: unknown = Object.hasOwn(run.scope, field) ? run.scope[field] : undefined;
    const own = fieldOf(run, field, given);
    const name = field.slice(0, FIELD_CHARS_MAX);
    if (typeof own !== 'string' || own.trim() === '') return `scope.missing.${name}`;
    if (given !== undefined && given !== own) return `scope.mismatch.${name}`;
  }
  return null;
}

/** Whether the lane requires that its runs have a case. */
export const isCaseRequired = (lane: Lane | undefined): boolean => lane?.scope.requires.includes('case_id') === true;

/** The value of the field: the run's own if it has one, otherwise the given one. */
function fieldOf({ run_id, case_id, taxonomy_versions }: RunContext, field: string, given: unknown): unknown {
  if (field === 'case_id') return case_id;
  if (field === 'run_id') return run_id;
  const taxonomy = Object.hasOwn(TAXONOMY_FIELDS, field) ? TAXONOMY_FIELDS[field as TaxonomyField] : undefined;
  return (taxonomy === undefined ? undefined : taxonomy_versions?.[taxonomy]) ?? given;
}

// Information flow (S4-84, S4-85): every step of a flow can be allowed while the flow must not be. A run that reads
// case A and then writes shared knowledge uses no target of another case in either step. Only its label, the record of
// what it has read, shows the flow.
//
// Labels form a lattice: a label is above another if it contains everything in it. A join is the least label above
// both, so the order and number of reads do not matter. If a label is refused, every label above it is refused.

type LabelRuleId = `label.${LabelRefusal}` | 'platform.label_other_case';

/** The operation that a run with a label requests. The platform gathers these facts, as in `PrivilegedRequest`. */
export interface LabelledOperation {
  readonly write: boolean;
  /** Whether the target is shared knowledge. A read of shared knowledge discloses nothing. */
  readonly shared: boolean;
  /** Whether data leaves the platform. */
  readonly outside: boolean;
}

/** The label without cases and flags. It is one shared object, so most joins need only one comparison. */
export const EMPTY_LABEL: Label = { cases: [], flags: [], many: false };
Object.freeze(EMPTY_LABEL.cases);
Object.freeze(EMPTY_LABEL.flags);
Object.freeze(EMPTY_LABEL);

/** Returns the label of data that belongs to this case, or to none if null, and has these flags. */
export function createLabel(case_id: string | null, flags: readonly ConfidentialityFlag[]): Label {
  if (case_id === null && flags.length === 0) return EMPTY_LABEL;
  return { cases: case_id === null ? [] : [case_id], flags: union(flags, []), many: false };
}

/** Returns the label of an artifact. An artifact with the scope `case` but no case id can belong to any case. */
export function labelOfRef(ref: ArtifactRef): Label {
  const flags = CONFIDENTIALITY_FLAGS.filter((flag) => ref.confidentiality?.[flag] === true);
  if (ref.scope === 'case' && ref.case_id === undefined) return { cases: [], flags: union(flags, []), many: true };
  return createLabel(ref.case_id ?? null, flags);
}

/**
 * Returns the least label above both. With more than 64 cases it contains `many` in place of the case ids.
 * @returns `a` itself if `b` adds nothing to it, or else `b` itself if `a` adds nothing to `b`
 */
export function joinLabels(a: Label, b: Label): Label {
  if (isAtOrAbove(a, b)) return a;
  if (isAtOrAbove(b, a)) return b;
  const cases = a.many || b.many ? [] : union(a.cases, b.cases);
  const many = a.many || b.many || cases.length > LABEL_CASES_MAX;
  return { cases: many ? [] : cases, flags: union(a.flags, b.flags), many };
}

/**
 * Decides whether a run with this label may execute the operation. The refusals of a lane apply to writes, and to data
 * that leaves the platform.
 *
 * In every lane, data of another case must not reach shared knowledge and must not leave the platform. S4-84 and S4-85
 * check the target of one operation only. A shared target belongs to no case, so without this rule it would connect
 * every case with every other. For a run without a case, every case is another case.
 *
 * @returns the first broken rule, or null. A label above this one breaks at least the same rules.
 */
export function findBrokenLabelRule(
  label: Label,
  run_case_id: string | null,
  refuses: readonly LabelRefusal[],
  operation: LabelledOperation,
): LabelRuleId | null {
  if (!operation.write && !operation.outside) return null;
  const refused = refuses.find((refusal) => hasRefusedLabel(label, run_case_id, refusal));
  if (refused !== undefined) return `label.${refused}`;
  const leavesCase = operation.outside || operation.shared;
  return leavesCase && hasRefusedLabel(label, run_case_id, 'other_case') ? 'platform.label_other_case' : null;
}

function hasRefusedLabel(label: Label, run_case_id: string | null, refusal: LabelRefusal): boolean {
  switch (refusal) {
    case 'other_case':
      return label.many || label.cases.some((case_id) => case_id !== run_case_id);
    case 'any_case':
      return label.many || label.cases.length > 0;
    case 'contains_pii':
    case 'contains_phi':
    case 'contains_privileged':
      return label.flags.includes(refusal);
  }
}

/** Whether `label` equals `other` or is above it. */
const isAtOrAbove = (label: Label, other: Label): boolean =>
  label === other ||
  ((label.many || (!other.many && other.cases.every((case_id) => label.cases.includes(case_id)))) &&
    other.flags.every((flag) => label.flags.includes(flag)));

/** Each element once, sorted by code units, so that recorded bytes do not depend on a locale. */
const union = <T extends string>(some: readonly T[], more: readonly T[]): T[] =>
  [...new Set([...some, ...more])].sort();

// C84: content that a lane withholds leaves the platform only if that lane permits it (`exports_content: true`) and
// approvers have approved the export. The platform determines as a fact which lanes of the case withhold content.

/** The export would contain content that a lane withholds and does not permit in exports. */
export const WITHHELD_CONTENT = 'withheld_content';
/**
 * The export would contain withheld content, and every lane that withholds any of it permits it in approved exports.
 */
export const EXPORTABLE_CONTENT = 'exportable_withheld_content';

/**
 * The artifact flags of an export. `lanes` maps each withholding lane of its case to whether it permits its content in
 * exports.
 */
export function withheldFlags(lanes: ReadonlyMap<string, boolean>): readonly string[] {
  if (lanes.size === 0) return [];
  return [[...lanes.values()].every((exports) => exports) ? EXPORTABLE_CONTENT : WITHHELD_CONTENT];
}

/**
 * Whether some lane of a policy withholds content. Content that belongs to no single lane is then withheld in its
 * trees.
 */
export const hasWithholdingLane = ({ lanes }: Pick<Policy, 'lanes'>): boolean =>
  [...lanes.values()].some(({ withholds_content }) => withholds_content === true);

/** An export without a required approval has no approval. */
export function findBrokenExportRule(
  { destination, artifact_flags }: PrivilegedRequest,
  { approvals }: Policy,
): RuleId | null {
  if (destination !== 'outside') return null;
  if (artifact_flags.includes(WITHHELD_CONTENT)) return 'export.content_withheld';
  if (!artifact_flags.includes(EXPORTABLE_CONTENT)) return null;
  return approvalRuleFor(approvals, 'export') === undefined ? 'export.not_approved' : null;
}

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
  if (overlay.epoch === null) return overlayDenial(OVERLAY_UNUSABLE);
  const rule = overlay.rules.find((candidate) => isMatchingRule(candidate, subject));
  return rule === undefined ? null : overlayDenial(`overlay.${rule.rule_id}`);
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

const overlayDenial = (rule_id: string): Verdict => ({ decision: 'deny', rule_id, cause: 'OVERLAY' });
