// What the conditions of policy say of a step: the request as Cedar gets it, made of what the ledger holds of the step.

import type { ActionDefinition } from '../../contract/policy/actions.js';
import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import type { CounterFact } from '../../contract/policy/counters/counters.js';
import type { Label } from '../../contract/policy/labels.js';
import type { PathFact } from '../../contract/run/effect.js';
import type { ConcernedCase } from '../../contract/run/operator-act.js';
import type { RunContext } from '../../contract/run/run-context.js';
import type { CedarEntity, CedarRequest, CedarUid, CedarValue } from '../../policy/conditions/cedar.js';
import {
  decideConditions,
  type ActionConditions,
  type Conditions,
  type ConditionVerdict,
} from '../../policy/conditions/conditions.js';
import { extension, InexactValueError, recordToCedar } from '../../policy/conditions/value-shape.js';
import type { Policy } from '../../policy/policy.js';

/** What a step asks for, as AUTHORIZE has checked it so far. */
export interface ConditionedRequest {
  readonly definition: ActionDefinition;
  /** With canonical paths. */
  readonly args: JsonObject;
  /** The mediated run. */
  readonly run: RunContext;
  readonly label: Label;
  /** The files at the paths, in their order; empty if no facts were gathered. */
  readonly files: readonly PathFact[];
  /** Empty if no facts were gathered. */
  readonly counters: readonly Pick<CounterFact, 'name' | 'used'>[];
  /** When the proposal was received. */
  readonly at: string;
}

const NONE: ConditionVerdict = { kind: 'none' };

/** What the conditions say of a step; nothing for a policy without them. */
export function conditionVerdict(request: ConditionedRequest, policy: Policy): ConditionVerdict {
  const { conditions } = policy;
  if (conditions === undefined) return NONE;
  return decide(conditions, conditionActionName(request.definition.name, request.args), policy, (applicable) =>
    stepRequests(request, applicable, conditions),
  );
}

/** A run that a person starts, and whose arguments no condition can read: a promotion, an export, an operator's act. */
export interface ConditionedRun {
  /** What conditions call it. */
  readonly action: string;
  readonly run: RunContext;
  readonly label: Label;
  /** The table that a promotion writes; null for the others. */
  readonly table: string | null;
  /** The cases that an operator's act concerns; empty for the others, which have the case of their run. */
  readonly cases: readonly ConcernedCase[];
  readonly at: string;
}

/** What the conditions say of a run that a person starts. An act that concerns several cases is decided for each. */
export function runConditionVerdict(subject: ConditionedRun, policy: Policy): ConditionVerdict {
  const { conditions } = policy;
  if (conditions === undefined) return NONE;
  return decide(conditions, subject.action, policy, (applicable) =>
    runsPerCase(subject).map((run) => {
      const resource = subject.table === null ? uid('Case', run.case_id ?? '') : uid('Table', subject.table);
      const context = contextOf({ ...sharedContext({ ...subject, run }, conditions), args: () => ({}) }, applicable);
      return toRequest(run, applicable, entityOf(resource), context);
    }),
  );
}

/** The run as it is, or once for each case and scope that it concerns. */
const runsPerCase = ({ run, cases }: ConditionedRun): readonly RunContext[] =>
  cases.length === 0
    ? [run]
    : cases.flatMap(({ case_id, scopes }) =>
        (scopes.length === 0 ? [run.scope] : scopes).map((scope) => ({ ...run, case_id, scope })),
      );

function decide(
  conditions: Conditions,
  name: string,
  { roles }: Policy,
  requestsOf: (applicable: ActionConditions) => readonly CedarRequest[],
): ConditionVerdict {
  const applicable = conditions.forAction(name);
  if (applicable === null) return NONE;
  try {
    return decideConditions(applicable, requestsOf(applicable), roles);
  } catch (error) {
    if (error instanceof InexactValueError) return { kind: 'deny', rule_id: 'condition.error' };
    throw error;
  }
}

/** The name of an action for conditions: with the tool or table that the arguments name. */
export function conditionActionName(name: string, args: JsonObject): string {
  if (name === 'CALL_TOOL') return `${name}:${textOf(args['tool'])}`;
  return name === 'WRITE_RECORD' || name === 'READ_RECORDS' ? `${name}:${textOf(args['target'])}` : name;
}

/** One request, or one for each path of the action. */
function stepRequests(
  subject: ConditionedRequest,
  applicable: ActionConditions,
  conditions: Conditions,
): readonly CedarRequest[] {
  const { definition, args, run, files, counters } = subject;
  const parts = {
    ...sharedContext(subject, conditions),
    args: () => recordToCedar(applicable.args, readableArgs(definition, args)),
    counters: () => Object.fromEntries(counters.flatMap(({ name, used }) => (used === null ? [] : [[name, used]]))),
  };
  const context = contextOf(parts, applicable);
  if (applicable.action.resource !== 'Path') {
    return [toRequest(run, applicable, resourceOf(definition, args), context)];
  }
  return definition.paths.map((name, index) => {
    const path = textOf(args[name]);
    const file = fileContext(files[index]);
    return toRequest(run, applicable, pathEntities(path), file === null ? context : { ...context, file });
  });
}

/** The parts that the conditions read. */
function contextOf(parts: ContextParts, { reads }: ActionConditions): Record<string, CedarValue> {
  const context: Record<string, CedarValue> = {};
  for (const [name, make] of Object.entries(parts)) {
    const value = reads.context?.has(name) === false ? null : make();
    if (value !== null) context[name] = value;
  }
  return context;
}

/** Each part of a context, made only if it is read; null: absent. */
type ContextParts = Readonly<Record<string, () => CedarValue | null>>;

/** A call's arguments are the input of its tool; of a file's content a condition can read only the length. */
function readableArgs({ name, paths }: ActionDefinition, args: JsonObject): JsonObject {
  if (name === 'CALL_TOOL') return isJsonObject(args['input']) ? args['input'] : {};
  const { content } = args;
  return paths.length > 0 && typeof content === 'string'
    ? { ...args, content_bytes: Buffer.byteLength(content) }
    : args;
}

function resourceOf({ tool, write, read }: ActionDefinition, args: JsonObject): readonly CedarEntity[] {
  if (typeof args['target'] === 'string' && tool === null) return entityOf(uid('Table', args['target']));
  const table = write?.table ?? read;
  if (tool === null && table !== null) return entityOf(uid('Table', table));
  return entityOf(uid('Tool', tool ?? textOf(args['tool'])));
}

function sharedContext(
  { run, label, at }: Pick<ConditionedRequest, 'run' | 'label' | 'at'>,
  { scope }: Conditions,
): ContextParts {
  return {
    now: () => extension('datetime', new Date(at).toISOString()),
    lane: () => run.lane_id ?? '',
    case: () => run.case_id,
    label: () => ({ cases: [...label.cases], flags: [...label.flags], many: label.many }),
    scope: () => recordToCedar(scope, run.scope),
  };
}

function fileContext(fact: PathFact | undefined): Record<string, CedarValue> | null {
  if (fact === undefined) return null;
  if (fact.status === 'file') return { exists: true, bytes: fact.bytes };
  return { exists: fact.status === 'directory' };
}

/** A path is in each of its directories, and in itself. The first entity is the path. */
function pathEntities(given: string): readonly CedarEntity[] {
  const path = given.length > 1 && given.endsWith('/') ? given.slice(0, -1) : given;
  const segments = path.split('/').slice(1);
  const places = segments.map((_, index) => `/${segments.slice(0, index + 1).join('/')}`).toReversed();
  return places.map((place, index) => {
    const parent = places[index + 1];
    const name = place.slice(place.lastIndexOf('/') + 1);
    const dot = name.lastIndexOf('.');
    return {
      uid: uid('Path', place),
      attrs: { name, extension: dot < 0 ? '' : name.slice(dot + 1) },
      parents: parent === undefined ? [] : [uid('Path', parent)],
    };
  });
}

/** @param resource the resource, before the entities that it is in */
function toRequest(
  { actor, role_id }: RunContext,
  { action: { name, groups }, reads }: ActionConditions,
  resource: readonly CedarEntity[],
  context: Record<string, CedarValue>,
): CedarRequest {
  const principal = uid('Actor', actor.actor_id);
  const action = uid('Action', name);
  return {
    principal,
    action,
    resource: (resource[0] as CedarEntity).uid as CedarUid,
    context,
    entities: [
      ...(reads.principal ? [{ uid: principal, attrs: {}, parents: [uid('Role', role_id)] }] : []),
      ...(reads.action ? [{ uid: action, attrs: {}, parents: groups.map((group) => uid('Action', group)) }] : []),
      ...(reads.resource ? resource : []),
    ],
  };
}

const uid = (type: string, id: string): CedarUid => ({ type, id });
const entityOf = (of: CedarUid): readonly CedarEntity[] => [{ uid: of, attrs: {}, parents: [] }];
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
