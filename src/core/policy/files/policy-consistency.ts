// Checks what no schema can express: whether names exist, whether both sides of a grant agree, whether limits fit.

import type { ActionsPolicy } from '../../contract/policy/actions-policy.js';
import { approvalSubjectOf } from '../../contract/policy/call-rules.js';
import type { Catalogue } from '../../contract/policy/catalogue.js';
import type { LanesPolicy } from '../../contract/policy/lanes.js';
import { suggestion } from '../../contract/policy/near-names.js';
import type { PolicyFile } from '../../contract/policy/pins.js';
import { OPERATOR_SUBJECTS } from '../../contract/run/operator-act.js';
import type { RolesPolicy } from '../../contract/policy/roles.js';
import { quoteForMessage } from '../../contract/finding-text.js';
import type { CONSISTENCY_RULES } from './policy-finding.js';
import { decisionPointRules } from '../policy-features.js';
import { isProhibition, PROHIBITION_NAMES } from '../authorize-run.js';

/** The three files, each valid by its schema. */
export interface PolicyParts {
  readonly lanes: LanesPolicy;
  readonly roles: RolesPolicy;
  readonly actions: ActionsPolicy;
}

/** A contradiction and its place: the file, and a JSON pointer into it. */
export interface Inconsistency {
  readonly name: PolicyFile;
  readonly pointer: string;
  readonly rule: (typeof CONSISTENCY_RULES)[number];
  readonly message: string;
}

/** Every contradiction inside and between the files. */
export const findInconsistencies = (parts: PolicyParts, catalogue: Catalogue): readonly Inconsistency[] => [
  ...checkLanes(parts),
  ...checkExports(parts),
  ...checkCalls(parts),
  ...checkRoles(parts),
  ...checkActions(parts, catalogue),
  ...checkApprovals(parts, catalogue),
  ...checkDecisionPoints(parts, catalogue),
  ...checkLimits(parts.actions.limits),
];

function* checkDecisionPoints({ actions }: PolicyParts, catalogue: Catalogue): Generator<Inconsistency> {
  const { decision_points: points } = actions;
  if (points === undefined) return;
  for (const mistake of decisionPointRules().findMistakes(points, catalogue)) yield { name: 'actions', ...mistake };
}

function* checkLanes({ lanes: { lanes }, roles: { roles } }: PolicyParts): Generator<Inconsistency> {
  const granted = new Map(roles.map((role) => [role.role_id, new Set(role.privileges.lanes)]));
  const seen = new Set<string>();
  for (const [index, { lane_id, allowed_callers, scope }] of lanes.entries()) {
    const at = { name: 'lanes', pointer: `/lanes/${index}` } as const;
    const lane = `lane ${quoteForMessage(lane_id)}`;
    if (seen.has(lane_id)) yield { ...at, rule: 'lane.duplicate_id', message: `${lane} is there twice` };
    seen.add(lane_id);
    for (const [entry, role_id] of allowed_callers.roles.entries()) {
      const entryAt = { ...at, pointer: `${at.pointer}/allowed_callers/roles/${entry}` };
      const role = `role ${quoteForMessage(role_id)}`;
      const lanesOfRole = granted.get(role_id);
      if (lanesOfRole === undefined) {
        yield {
          ...entryAt,
          rule: 'lane.unknown_role',
          message: `${lane} names ${role}, which is not in the roles${suggestion(role_id, granted.keys())}`,
        };
      } else if (!lanesOfRole.has(lane_id)) {
        yield { ...entryAt, rule: 'pair.one_sided', message: `${lane} names ${role}, which does not list the lane` };
      }
    }
    for (const [entry, prohibition] of scope.prohibits.entries()) {
      if (isProhibition(prohibition)) continue;
      const message = `${lane} has the prohibition ${quoteForMessage(prohibition)}, which nothing decides${suggestion(prohibition, PROHIBITION_NAMES)}`;
      yield { ...at, pointer: `${at.pointer}/scope/prohibits/${entry}`, rule: 'prohibition.unknown', message };
    }
  }
}

/** C84: withheld content may be exported only if exports need approval. */
function* checkExports({ lanes: { lanes }, actions: { approvals } }: PolicyParts): Generator<Inconsistency> {
  const isApproved = approvals?.some((rule) => rule.for === 'export') === true;
  for (const [index, { lane_id, withholds_content, exports_content }] of lanes.entries()) {
    if (exports_content !== true) continue;
    const at = { name: 'lanes', pointer: `/lanes/${index}/exports_content`, rule: 'lane.exports_content' } as const;
    const lane = `lane ${quoteForMessage(lane_id)}`;
    if (withholds_content !== true) {
      yield { ...at, message: `${lane} lets exports hold its content, which it does not withhold: remove the line` };
    } else if (!isApproved) {
      yield {
        ...at,
        message: `${lane} lets exports hold what it withholds: add an approval for export to the actions`,
      };
    }
  }
}

/** Call rules name tools of their lane, and an approval that can be given. */
function* checkCalls({ lanes: { lanes }, actions: { approvals = [] } }: PolicyParts): Generator<Inconsistency> {
  const subjects = new Set(approvals.map((rule) => rule.for));
  for (const [index, { lane_id, calls = [], allowed_actions }] of lanes.entries()) {
    const seen = new Set<string>();
    for (const [entry, rule] of calls.entries()) {
      const at = { name: 'lanes', pointer: `/lanes/${index}/calls/${entry}` } as const;
      const label = `call rule ${quoteForMessage(rule.id)} of lane ${quoteForMessage(lane_id)}`;
      if (seen.has(rule.id)) yield { ...at, rule: 'call.duplicate_id', message: `${label} is there twice` };
      seen.add(rule.id);
      for (const tool of rule.tools) {
        if (allowed_actions.tools?.includes(tool) === true) continue;
        const message = `${label} names ${quoteForMessage(tool)}, which the lane does not list`;
        yield { ...at, pointer: `${at.pointer}/tools`, rule: 'call.tool_not_listed', message };
      }
      if (rule.decision === 'approval' && !subjects.has(approvalSubjectOf(rule))) {
        const message = `${label} asks for an approval: add one for ${approvalSubjectOf(rule)} to the actions`;
        yield { ...at, pointer: `${at.pointer}/decision`, rule: 'call.approval_missing', message };
      }
    }
  }
}

function* checkRoles({ lanes: { lanes }, roles: { roles } }: PolicyParts): Generator<Inconsistency> {
  const callers = new Map(lanes.map((lane) => [lane.lane_id, new Set(lane.allowed_callers.roles)]));
  const seen = new Set<string>();
  for (const [index, { role_id, privileges }] of roles.entries()) {
    const at = { name: 'roles', pointer: `/roles/${index}` } as const;
    const role = `role ${quoteForMessage(role_id)}`;
    if (seen.has(role_id)) yield { ...at, rule: 'role.duplicate_id', message: `${role} is there twice` };
    seen.add(role_id);
    for (const [entry, lane_id] of privileges.lanes.entries()) {
      const entryAt = { ...at, pointer: `${at.pointer}/privileges/lanes/${entry}` };
      const lane = `lane ${quoteForMessage(lane_id)}`;
      const rolesOfLane = callers.get(lane_id);
      if (rolesOfLane === undefined) {
        yield { ...entryAt, rule: 'role.unknown_lane', message: `${role} lists ${lane}, which is not in the lanes` };
      } else if (!rolesOfLane.has(role_id)) {
        yield { ...entryAt, rule: 'pair.one_sided', message: `${role} lists ${lane}, which does not name the role` };
      }
    }
  }
}

function* checkActions(
  { lanes: { lanes }, actions: { actions } }: PolicyParts,
  catalogue: Catalogue,
): Generator<Inconsistency> {
  const laneIds = new Set(lanes.map(({ lane_id }) => lane_id));
  const seen = new Set<string>();
  for (const [index, { action, extensions = {}, lane }] of actions.entries()) {
    const at = { name: 'actions', pointer: `/actions/${index}` } as const;
    const actionLabel = `action ${quoteForMessage(action)}`;
    if (seen.has(action)) yield { ...at, rule: 'action.duplicate', message: `${actionLabel} is there twice` };
    seen.add(action);
    if (lane !== undefined && !laneIds.has(lane)) {
      const message = `${actionLabel} works in lane ${quoteForMessage(lane)}, which is not in the lanes`;
      yield { ...at, pointer: `${at.pointer}/lane`, rule: 'action.unknown_lane', message };
    }
    const definition = catalogue.action(action);
    if (definition === undefined) {
      yield { ...at, rule: 'action.unknown', message: `${actionLabel} is not in the catalogue` };
      continue;
    }
    for (const argument of Object.keys(extensions)) {
      if (definition.paths.includes(argument)) continue;
      const message = `${actionLabel} has no path argument ${quoteForMessage(argument)}`;
      yield { ...at, pointer: `${at.pointer}/extensions/${argument}`, rule: 'extensions.unknown_argument', message };
    }
  }
}

/** An approver role must exist and belong to people; otherwise the request could never be approved. */
function* checkApprovals(
  { lanes: { lanes }, roles: { roles }, actions }: PolicyParts,
  catalogue: Catalogue,
): Generator<Inconsistency> {
  const calls = new Set(lanes.flatMap(({ calls: rules = [] }) => rules.map(approvalSubjectOf)));
  const people = new Set(roles.filter((role) => role.class === 'human').map(({ role_id }) => role_id));
  const seen = new Set<string>();
  for (const [index, { for: subject, approver_roles }] of (actions.approvals ?? []).entries()) {
    const at = { name: 'actions', pointer: `/approvals/${index}` } as const;
    const approvalLabel = `the approval of ${quoteForMessage(subject)}`;
    if (seen.has(subject)) yield { ...at, rule: 'approval.duplicate', message: `${approvalLabel} is there twice` };
    seen.add(subject);
    const privileged = catalogue.action(subject)?.run_kind ?? null;
    if (!APPROVED_RUNS.includes(subject) && !calls.has(subject) && privileged === null) {
      yield {
        ...at,
        rule: 'approval.unknown_subject',
        message: `${approvalLabel} is for nothing that could be approved`,
      };
    }
    for (const [entry, role_id] of approver_roles.entries()) {
      if (people.has(role_id)) continue;
      const message = `${approvalLabel} names role ${quoteForMessage(role_id)}, which is no role of class human`;
      yield { ...at, pointer: `${at.pointer}/approver_roles/${entry}`, rule: 'approval.unknown_role', message };
    }
  }
}

const APPROVED_RUNS = ['promotion', 'export', ...OPERATOR_SUBJECTS];

/** A proposal contains its content and its paths, and some more bytes. */
function* checkLimits(limits: ActionsPolicy['limits']): Generator<Inconsistency> {
  const { content_bytes_max, path_bytes_max, payload_bytes_max } = limits;
  const payloadLimit = `payload_bytes_max (${payload_bytes_max})`;
  if (content_bytes_max >= payload_bytes_max) {
    const message = `content_bytes_max (${content_bytes_max}) does not fit into ${payloadLimit}`;
    yield { name: 'actions', pointer: '/limits/content_bytes_max', rule: 'limits.content_exceeds_payload', message };
  }
  if (path_bytes_max >= payload_bytes_max) {
    const message = `path_bytes_max (${path_bytes_max}) does not fit into ${payloadLimit}`;
    yield { name: 'actions', pointer: '/limits/path_bytes_max', rule: 'limits.path_exceeds_payload', message };
  }
}
