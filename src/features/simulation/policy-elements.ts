// The elements of a policy, each of which can decide: lanes, grants, rules, conditions, prohibitions and approvals.
// What restricts an element (an extension list, a scope field, a refused label) is a rule: it can only deny.

import type { ElementCoverage } from '../../core/contract/evidence/coverage-proof.js';
import type { Lane, WriteMode } from '../../core/contract/policy/lanes.js';
import type { PolicyFile } from '../../core/contract/policy/pins.js';
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

/** A file and a JSON pointer into it. */
export interface PointerPlace {
  readonly file: PolicyFile;
  readonly pointer: string;
}

/** Every element of a policy once: first those of no lane, then lane by lane, in the order of the files. */
export const elementsOf = (policy: Policy): readonly PolicyElement[] =>
  [...firstPlaces(policy).values()].map(([element]) => element);

/** Finds elements in the YAML files. The place is null for a condition, and for what is not in the files. */
export function elementPlaces(policy: Policy): (element: PolicyElement) => PointerPlace | null {
  const places = firstPlaces(policy);
  return (element) => places.get(elementKey(element))?.[1] ?? null;
}

type PlacedElement = readonly [element: PolicyElement, place: PointerPlace | null];

function firstPlaces(policy: Policy): ReadonlyMap<string, PlacedElement> {
  const found = new Map<string, PlacedElement>();
  for (const placed of placedElements(policy)) {
    const key = elementKey(placed[0]);
    if (!found.has(key)) found.set(key, placed);
  }
  return found;
}

function placedElements({ actions, approvals, conditions, decision_points = [], lanes }: Policy) {
  const inActions = (pointer: string): PointerPlace => ({ file: 'actions', pointer });
  const listed = [...actions.values()];
  return [
    ...listed.map(({ action }, at): PlacedElement => [actionGrant(action), inActions(`/actions/${at}`)]),
    ...listed.flatMap(({ action, extensions }, at): readonly PlacedElement[] =>
      extensions === undefined ? [] : [[extensionRule(action), inActions(`/actions/${at}/extensions`)]],
    ),
    ...approvals.map((one, at): PlacedElement => [approval(one.for), inActions(`/approvals/${at}`)]),
    ...(conditions?.all ?? []).map(({ id }): PlacedElement => [condition(id), null]),
    ...decision_points.map(({ name }, at): PlacedElement => [decisionPoint(name), inActions(`/decision_points/${at}`)]),
    ...[...lanes.values()].flatMap((lane, at) =>
      [...lanedElements(lane)].map(([element, pointer]): PlacedElement => [
        element,
        { file: 'lanes', pointer: `/lanes/${at}${pointer}` },
      ]),
    ),
  ];
}

/** The elements of a lane, each with its pointer from the lane on. */
function* lanedElements(lane: Lane): Generator<readonly [element: PolicyElement, pointer: string]> {
  const { lane_id, allowed_callers, allowed_actions, scope, calls = [], refuses_labels = [] } = lane;
  const { tools = [], writes = [], reads = [] } = allowed_actions;
  yield [laneElement(lane_id), ''];
  for (const [at, role] of allowed_callers.roles.entries())
    yield [roleGrant(lane_id, role), `/allowed_callers/roles/${at}`];
  for (const [at, tool] of tools.entries()) yield [toolGrant(lane_id, tool), `/allowed_actions/tools/${at}`];
  for (const [at, write] of writes.entries()) yield [writeGrant(lane_id, write), `/allowed_actions/writes/${at}`];
  for (const [at, table] of reads.entries()) yield [readGrant(lane_id, table), `/allowed_actions/reads/${at}`];
  for (const [at, { id }] of calls.entries()) yield [callRule(lane_id, id), `/calls/${at}`];
  for (const [at, field] of scope.requires.entries()) yield [scopeRule(lane_id, field), `/scope/requires/${at}`];
  for (const [at, label] of refuses_labels.entries()) yield [labelRule(lane_id, label), `/refuses_labels/${at}`];
  for (const [at, name] of scope.prohibits.entries()) yield [prohibition(lane_id, name), `/scope/prohibits/${at}`];
}

export const elementKey = ({ kind, lane_id, name }: PolicyElement): string => JSON.stringify([kind, lane_id, name]);
