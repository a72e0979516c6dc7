// The types by which conditions are checked: who acts, what can be done to what, and what a condition can read. They
// follow from the actions, tools and tables that the tree pins, and from the lanes and roles of the policy.

import type { Catalogue, TargetDefinition, ActionDefinition } from '../../core/contract/policy/catalogue.js';
import type { Lane } from '../../core/contract/policy/lanes.js';
import { HIGH_RISK_KINDS } from '../../core/contract/run/input.js';
import { OPERATOR_SUBJECTS } from '../../core/contract/run/operator-act.js';
import { NAMED_ACTIONS } from '../../core/policy/policy-features.js';
import type { CedarSchema } from './cedar.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { domainShapeOf } from './domain-shape.js';
import {
  BOOLEAN,
  DATETIME,
  LONG,
  optional,
  recordOf,
  recordShapeOf,
  recordTypeOf,
  required,
  STRING,
  type RecordShape,
  type ValueShape,
} from './value-shape.js';

/** Something that a condition can be about: an action, a call of one tool, or a read or write of one table. */
export interface ConditionAction {
  /** Such as `WRITE_FILE`, `CALL_TOOL:payments.refund` or `WRITE_RECORD:invoices`. */
  readonly name: string;
  readonly groups: readonly string[];
  readonly resource: 'Path' | 'Tool' | 'Table' | 'Case';
  /** The arguments that a condition can read. */
  readonly args: RecordShape;
  /** The domains of the arguments that are addresses. */
  readonly domains: RecordShape;
}

/** All actions of a policy that conditions decide, by name. An action without a run of its own has no effect. */
export function conditionActions(catalogue: Catalogue): ReadonlyMap<string, ConditionAction> {
  const { registrations } = catalogue;
  const all = [
    ...catalogue.actions
      .filter(({ run_kind, name }) => run_kind !== null && !NAMED_ACTIONS.includes(name))
      .map(ownAction),
    ...registrations.tools.map(({ name, input, outside }): ConditionAction => ({
      name: `CALL_TOOL:${name}`,
      groups: ['CALL_TOOL', ...(outside ? ['outside'] : [])],
      resource: 'Tool',
      args: recordShapeOf(input),
      domains: domainShapeOf(input),
    })),
    ...registrations.targets.flatMap((target) => [writeOf(target), readOf(target)]),
    HIGH_RISK('promotion', 'Table'),
    HIGH_RISK('export', 'Case'),
    ...OPERATOR_SUBJECTS.map((subject) => HIGH_RISK(subject, 'Case')),
  ];
  return new Map(all.map((action) => [action.name, action]));
}

/** Whether a step has the action; people start the others. */
export const isStep = ({ name }: Pick<ConditionAction, 'name'>): boolean =>
  !HIGH_RISK_KINDS.some((kind) => kind === name) && !OPERATOR_SUBJECTS.includes(name);

const NO_ARGS = recordOf();
const HIGH_RISK = (name: string, resource: 'Table' | 'Case'): ConditionAction => ({
  name,
  groups: [],
  resource,
  args: NO_ARGS,
  domains: NO_ARGS,
});

function ownAction({ name, risk, args, paths, outside, tool }: ActionDefinition): ConditionAction {
  const schema = args as unknown as Readonly<Record<string, unknown>>;
  const shape = recordShapeOf(schema);
  return {
    name,
    groups: [`risk:${risk}`, ...(outside ? ['outside'] : [])],
    resource: paths.length > 0 ? 'Path' : tool === null ? 'Table' : 'Tool',
    // The content of a file is text of an agent: a condition can only read its length.
    args: paths.length === 0 ? shape : recordOf(...shape.attributes.flatMap(withoutContent)),
    domains: paths.length === 0 ? domainShapeOf(schema) : NO_ARGS,
  };
}

const withoutContent = (attribute: RecordShape['attributes'][number]): RecordShape['attributes'] =>
  attribute.name === 'content' ? [required('content_bytes', LONG)] : [attribute];

const writeOf = ({ name, record }: TargetDefinition): ConditionAction => ({
  name: `WRITE_RECORD:${name}`,
  groups: ['WRITE_RECORD', 'risk:write'],
  resource: 'Table',
  args: recordOf(optional('mode', STRING), required('record', recordShapeOf(record))),
  domains: domainsWithin('record', record),
});

/** The domains of addresses in an argument that is a record. */
function domainsWithin(name: string, schema: JsonSchema): RecordShape {
  const shape = domainShapeOf(schema);
  return shape.attributes.length === 0 ? NO_ARGS : recordOf(optional(name, shape));
}

/** The columns that a read asks for are each optional: a read can ask for none. */
const readOf = ({ name, record }: TargetDefinition): ConditionAction => ({
  name: `READ_RECORDS:${name}`,
  groups: ['READ_RECORDS', 'risk:read'],
  resource: 'Table',
  args: recordOf(
    optional('where', recordOf(...recordShapeOf(record).attributes.map(({ name, shape }) => optional(name, shape)))),
    optional('case_id', STRING),
  ),
  domains: domainsWithin('where', record),
});

/** The scope fields that a condition can read: those that some lane requires. */
export const scopeShape = (lanes: Iterable<Lane>): RecordShape => {
  const names = new Set([...lanes].flatMap(({ scope }) => scope.requires));
  return recordOf(...[...names].toSorted().map((name) => optional(name, STRING)));
};

const STRINGS: ValueShape = { kind: 'Set', element: STRING };
const LABEL = recordOf(required('cases', STRINGS), required('flags', STRINGS), required('many', BOOLEAN));

/** What was found at the path before the decision. */
const FILE = recordOf(required('exists', BOOLEAN), optional('bytes', LONG));

/** The values of counters; a promotion or export has none. */
export const counterShape = (counters: readonly { readonly name: string }[] = []): RecordShape =>
  recordOf(...counters.map(({ name }) => required(name, LONG)));

/** The parts of a context whose types follow from the policy. */
export interface PolicyShapes {
  readonly scope: RecordShape;
  readonly counters: RecordShape;
}

/** Everything that a condition about the action can read. */
export const contextShape = (action: ConditionAction, { scope, counters }: PolicyShapes): RecordShape =>
  recordOf(
    required('args', action.args),
    required('now', DATETIME),
    required('lane', STRING),
    optional('case', STRING),
    required('label', LABEL),
    required('scope', scope),
    ...(action.domains.attributes.length > 0 ? [required('domains', action.domains)] : []),
    ...(isStep(action) && counters.attributes.length > 0 ? [required('counters', counters)] : []),
    ...(action.resource === 'Path' ? [optional('file', FILE)] : []),
  );

/** The schema of Cedar for these actions. */
export function cedarSchemaOf(actions: ReadonlyMap<string, ConditionAction>, shapes: PolicyShapes): CedarSchema {
  const groups = [...new Set([...actions.values()].flatMap((action) => action.groups))].toSorted();
  const named = [...actions.values()].map((action) => [
    action.name,
    {
      appliesTo: {
        principalTypes: ['Actor'],
        resourceTypes: [action.resource],
        context: recordTypeOf(contextShape(action, shapes)),
      },
      memberOf: action.groups.map((id) => ({ id })),
    },
  ]);
  return {
    '': {
      entityTypes: {
        Actor: {
          memberOfTypes: ['Role', 'Group'],
          shape: recordTypeOf(recordOf(required('person', STRING))),
        },
        Role: {},
        Group: {},
        Path: {
          memberOfTypes: ['Path'],
          shape: recordTypeOf(recordOf(required('name', STRING), required('extension', STRING))),
        },
        Tool: {},
        Table: {},
        Case: {},
      },
      actions: Object.fromEntries([...groups.map((id) => [id, {}]), ...named]) as CedarSchema['']['actions'],
    },
  };
}
