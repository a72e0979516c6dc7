// The elements of a policy, each of which can decide: lanes, grants, rules, conditions, prohibitions and approvals.
// What restricts an element (an extension list, a scope field, a refused label) is a rule: it can only deny.

import type { ElementCoverage } from '../../core/contract/evidence/coverage-proof.js';
import type { Lane, WriteMode } from '../../core/contract/policy/lanes.js';
import type { Policy } from '../../core/policy/policy.js';

export type PolicyElement = Pick<ElementCoverage, 'kind' | 'lane_id' | 'name'>;

export const laneElement = (lane_id: string): PolicyElement => ({ kind: 'lane', lane_id, name: lane_id });

const grant = (lane_id: string | null, name: string): PolicyElement => ({ kind: 'grant', lane_id, name });
const rule = (lane_id: string | null, name: string): PolicyElement => ({ kind: 'rule', lane_id, name });

export const actionGrant = (action: string): PolicyElement => grant(null, `action ${action}`);
export const roleGrant = (lane_id: string, role_id: string): PolicyElement => grant(lane_id, `role ${role_id}`);
export const toolGrant = (lane_id: string, tool: string): PolicyElement => grant(lane_id, `tool ${tool}`);
export const readGrant = (lane_id: string, table: string): PolicyElement => grant(lane_id, `read ${table}`);
export const writeGrant = (lane_id: string, { table, mode }: { table: string; mode: WriteMode }): PolicyElement =>
  grant(lane_id, `${mode} ${table}`);

export const extensionRule = (action: string): PolicyElement => rule(null, `extensions of ${action}`);
export const callRule = (lane_id: string, id: string): PolicyElement => rule(lane_id, `call ${id}`);
export const scopeRule = (lane_id: string, field: string): PolicyElement => rule(lane_id, `requires ${field}`);
export const labelRule = (lane_id: string, label: string): PolicyElement => rule(lane_id, `refuses ${label}`);

export const prohibition = (lane_id: string, name: string): PolicyElement => ({ kind: 'prohibition', lane_id, name });
export const condition = (id: string): PolicyElement => ({ kind: 'condition', lane_id: null, name: id });
export const approval = (subject: string): PolicyElement => ({ kind: 'approval', lane_id: null, name: subject });
export const decisionPoint = (name: string): PolicyElement => ({ kind: 'decision_point', lane_id: null, name });

/** Every element of a policy once: first those of no lane, then lane by lane, in the order of the files. */
export function elementsOf(policy: Policy): readonly PolicyElement[] {
  const actions = [...policy.actions.values()];
  return uniqueElements([
    ...actions.map(({ action }) => actionGrant(action)),
    ...actions.flatMap(({ action, extensions }) => (extensions === undefined ? [] : [extensionRule(action)])),
    ...policy.approvals.map((one) => approval(one.for)),
    ...(policy.conditions?.all ?? []).map(({ id }) => condition(id)),
    ...(policy.decision_points ?? []).map(({ name }) => decisionPoint(name)),
    ...[...policy.lanes.values()].flatMap(elementsOfLane),
  ]);
}

function elementsOfLane(lane: Lane): readonly PolicyElement[] {
  const { lane_id, allowed_callers, allowed_actions, scope, calls = [], refuses_labels = [] } = lane;
  const { tools = [], writes = [], reads = [] } = allowed_actions;
  return [
    laneElement(lane_id),
    ...allowed_callers.roles.map((role) => roleGrant(lane_id, role)),
    ...tools.map((tool) => toolGrant(lane_id, tool)),
    ...writes.map((write) => writeGrant(lane_id, write)),
    ...reads.map((table) => readGrant(lane_id, table)),
    ...calls.map(({ id }) => callRule(lane_id, id)),
    ...scope.requires.map((field) => scopeRule(lane_id, field)),
    ...refuses_labels.map((label) => labelRule(lane_id, label)),
    ...scope.prohibits.map((name) => prohibition(lane_id, name)),
  ];
}

export const elementKey = ({ kind, lane_id, name }: PolicyElement): string => JSON.stringify([kind, lane_id, name]);

const uniqueElements = (elements: readonly PolicyElement[]): readonly PolicyElement[] => [
  ...new Map(elements.map((element) => [elementKey(element), element])).values(),
];
