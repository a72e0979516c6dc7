// The conditions of a policy, read, checked and ordered by the actions that they can apply to, and the decision by them
// (S4-31: a policy only narrows). Any error of a condition denies: Cedar itself would skip it.

import type { Group, Role } from '../../core/contract/policy/roles.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type {
  CombinedObligation,
  ConditionedPolicy,
  ConditionVerdict,
  Obligation,
} from '../../core/policy/policy-features.js';
import type { PolicyFinding } from '../../core/policy/files/policy-finding.js';
import {
  PreparedPolicies,
  validatePolicies,
  type CedarAnswer,
  type CedarFailure,
  type CedarRequest,
  type CedarSchema,
} from './cedar.js';
import { positionOf, problemText, readConditionFile, type ParsedCondition } from './condition-file.js';
import { cedarSchemaOf, conditionActions, counterShape, scopeShape, type ConditionAction } from './condition-schema.js';
import { identitiesOf, namesInCondition, type NamedCondition, type PrincipalIdentity } from './principal-names.js';
import { readPartsOf, type ReadParts } from './read-parts.js';
import { compileUnmetCheck, type UnmetCheck } from './unmet-check.js';
import type { RecordShape } from './value-shape.js';

/** The conditions of one policy, ordered by the actions that they can apply to. */
export interface IndexedConditions {
  readonly all: readonly ParsedCondition[];
  readonly actions: ReadonlyMap<string, ConditionAction>;
  readonly scope: RecordShape;
  readonly schema: CedarSchema;
  /** The names of actors and persons that they compare, and the persons of groups. */
  readonly names: readonly string[];
  /** The conditions whose scope can include the action; null if no scope includes it. */
  forAction(name: string): ActionConditions | null;
}

/** The conditions that one action can meet, in the order of the file. */
export interface ActionConditions {
  readonly action: ConditionAction;
  readonly conditions: readonly ParsedCondition[];
  /** What of a request they read. */
  readonly reads: ReadParts;
  /** The arguments that they read. */
  readonly args: RecordShape;
  readonly prepared: Pick<PreparedPolicies, 'decide'>;
  /** Whether a request certainly meets none of them. */
  readonly isUnmet: UnmetCheck;
  /** The identities of a principal, if they compare it by name or group; null if they do not. */
  readonly identitiesOf: ((run: RunContext) => readonly PrincipalIdentity[]) | null;
}

/** @returns the conditions, and what is wrong with them; conditions with a finding must not be used */
export function loadConditions(
  path: string,
  bytes: Uint8Array,
  subject: ConditionedPolicy,
): { readonly conditions: IndexedConditions; readonly findings: readonly PolicyFinding[] } {
  const file = readConditionFile(path, bytes);
  const conditions = indexConditions(file.conditions, subject);
  const findings = [...file.findings, ...findMistakes(path, conditions, subject)];
  return { conditions, findings: findings.toSorted((a, b) => a.line - b.line) };
}

function indexConditions(
  all: readonly ParsedCondition[],
  { catalogue, lanes, counters, groups = [] }: ConditionedPolicy,
): IndexedConditions {
  const actions = conditionActions(catalogue);
  const scope = scopeShape(lanes.values());
  const named = new Map(all.map((condition) => [condition.id, namesInCondition(condition.id, condition.scope)]));
  const names = new Set([...named.values()].flatMap(({ actors, persons }) => [...actors, ...persons]));
  for (const { persons } of groups) for (const person of persons) names.add(person);
  const byAction = new Map<string, ActionConditions | null>();
  return {
    all,
    actions,
    scope,
    names: [...names],
    schema: cedarSchemaOf(actions, { scope, counters: counterShape(counters?.all) }),
    forAction(name) {
      const known = byAction.get(name);
      if (known !== undefined) return known;
      const action = actions.get(name);
      const conditions = action === undefined ? [] : all.filter((condition) => canApply(condition, action));
      const policies = Object.fromEntries(conditions.map(({ id, text }) => [id, text]));
      const found =
        action === undefined || conditions.length === 0
          ? null
          : {
              action,
              conditions,
              ...readShapes(action, conditions),
              prepared: new PreparedPolicies(policies),
              isUnmet: compileUnmetCheck(conditions.map((condition) => condition.scope)),
              identitiesOf: identitiesFor(
                conditions.flatMap(({ id }) => named.get(id) ?? []),
                groups,
              ),
            };
      byAction.set(name, found);
      return found;
    },
  };
}

/** Null if no condition compares a principal by its name, its person or its groups. */
const identitiesFor = (named: readonly NamedCondition[], groups: readonly Group[]): ActionConditions['identitiesOf'] =>
  named.some(({ actors, persons, comparesGroups }) => actors.length > 0 || persons.length > 0 || comparesGroups)
    ? (run) => identitiesOf(run, named, groups)
    : null;

function readShapes(
  { args }: ConditionAction,
  conditions: readonly ParsedCondition[],
): Pick<ActionConditions, 'reads' | 'args'> {
  const reads = readPartsOf(conditions.map((condition) => condition.scope));
  const attributes = args.attributes.filter(({ name }) => reads.args?.has(name) !== false);
  return { reads, args: { kind: 'Record', attributes } };
}

/** The conditions without one of them. */
export const withoutCondition = (
  { all }: IndexedConditions,
  id: string,
  subject: ConditionedPolicy,
): IndexedConditions =>
  indexConditions(
    all.filter((condition) => condition.id !== id),
    subject,
  );

/** The conditions with another obligation of one of them; null: it denies. */
export const withConditionObligation = (
  { all }: IndexedConditions,
  id: string,
  obligation: Obligation | null,
  subject: ConditionedPolicy,
): IndexedConditions =>
  indexConditions(
    all.map((condition) => (condition.id === id ? { ...condition, obligation } : condition)),
    subject,
  );

/** Whether the scope of a condition includes the action. What the rest of the scope says depends on the request. */
function canApply({ scope: { action: constraint } }: ParsedCondition, { name, groups }: ConditionAction): boolean {
  if (constraint.op === 'All') return true;
  const listed = 'entities' in constraint ? constraint.entities : 'entity' in constraint ? [constraint.entity] : [];
  const ids = listed.map((entity) => ('__entity' in entity ? entity.__entity : entity)).map(({ id }) => id);
  return ids.includes(name) || (constraint.op === 'in' && ids.some((id) => groups.includes(id)));
}

function* findMistakes(
  path: string,
  { all, schema }: IndexedConditions,
  { roles }: ConditionedPolicy,
): Generator<PolicyFinding> {
  const problems =
    all.length === 0 ? null : validatePolicies(Object.fromEntries(all.map(({ id, text }) => [id, text])), schema);
  for (const condition of all) {
    for (const { message, help, start } of problems?.get(condition.id) ?? []) {
      const rule = message.includes('policy is impossible') ? 'condition.unreachable' : 'condition.type';
      yield { file: path, ...positionOf(condition, start), rule, message: problemText({ message, help, start }) };
    }
    const message = roleMistake(condition.obligation, roles);
    if (message !== null) yield { file: path, line: condition.line, column: condition.column, ...message };
  }
}

/** An approval that no person can give is a denial that does not say so. */
function roleMistake(
  obligation: Obligation | null,
  roles: ReadonlyMap<string, Role>,
): Pick<PolicyFinding, 'rule' | 'message'> | null {
  if (obligation === null) return null;
  const { approver_roles } = obligation;
  const unknown = approver_roles?.find((role) => !roles.has(role));
  if (unknown !== undefined) {
    return { rule: 'condition.unknown_role', message: `@approver_role names ${unknown}, which is not in roles.yaml` };
  }
  const human = (approver_roles ?? [...roles.keys()]).some((role) => roles.get(role)?.class === 'human');
  return human ? null : { rule: 'condition.no_approver', message: 'no role of @approver_role is one of people' };
}

/** What the engine answers. `failed`: the conditions that it could not evaluate. */
export type ConditionAnswer = ConditionVerdict | { readonly kind: 'error'; readonly failed: readonly CedarFailure[] };

/** A request, and the ids of the conditions that it counts for. Absent: all. */
export interface ConditionRequest extends CedarRequest {
  readonly conditions?: ReadonlySet<string>;
}

/**
 * Decides one request by the conditions of its action. Several requests of one proposal, one for each of its paths, are
 * decided together.
 */
export function decideConditions(
  { conditions, prepared, isUnmet }: ActionConditions,
  requests: readonly ConditionRequest[],
  roles: ReadonlyMap<string, Role>,
): ConditionAnswer {
  if (requests.every(isUnmet)) return { kind: 'none' };
  const answers = requests.map((request) => prepared.decide(request));
  const failed = answers.flatMap((answer) => answer.failed);
  if (failed.length > 0) return { kind: 'error', failed };
  const satisfied = new Set(
    answers.flatMap((answer: CedarAnswer, index) =>
      answer.satisfied.filter((id) => requests[index]?.conditions?.has(id) !== false),
    ),
  );
  const met = conditions.filter(({ id }) => satisfied.has(id));
  const denying = met.find(({ obligation }) => obligation === null);
  if (denying !== undefined) return { kind: 'deny', rule_id: denying.id };
  const obligations = met.flatMap(({ obligation }) => obligation ?? []);
  if (obligations.length === 0) return { kind: 'none' };
  const people = [...roles.values()].filter((role) => role.class === 'human').map(({ role_id }) => role_id);
  const obligation = combineObligations(obligations, people);
  if (obligation.approver_roles.length === 0) return { kind: 'deny', rule_id: 'condition.no_approver' };
  return { kind: 'approval', ids: met.map(({ id }) => id), obligation };
}

/** The highest quorum, the roles that all accept, and the earliest expiry. */
export function combineObligations(all: readonly Obligation[], people: readonly string[]): CombinedObligation {
  return {
    quorum: Math.max(...all.map(({ quorum }) => quorum)),
    approver_roles: people
      .filter((role) => all.every(({ approver_roles }) => approver_roles?.includes(role) !== false))
      .toSorted(),
    expires_minutes: Math.min(...all.map(({ expires_minutes }) => expires_minutes)),
  };
}
