// What the conditions of policy say of a step: the request as Cedar gets it, made of what the ledger holds of the step.

import type { ActionDefinition } from '../../core/contract/policy/catalogue.js';
import { HASHED_PREFIX } from '../../core/contract/free-text.js';
import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import type { PathFact } from '../../core/contract/run/effect.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { CedarEntity, CedarFailure, CedarUid, CedarValue } from './cedar.js';
import {
  decideConditions,
  type ActionConditions,
  type ConditionRequest,
  type IndexedConditions,
} from './indexed-conditions.js';
import { domainsOf } from './domain-shape.js';
import type { PrincipalIdentity } from './principal-names.js';
import { type ReadNames, readPartsOf } from './read-parts.js';
import { extension, InexactValueError, recordToCedar, type RecordShape } from './value-shape.js';
import {
  counterQueries,
  type ConditionedPolicy,
  type ConditionedRequest,
  type ConditionedRun,
  type ConditionError,
  type ConditionVerdict,
  decidedActionName,
} from '../../core/policy/policy-features.js';
import type { CounterFact, UncountableReason } from '../../core/contract/run/counter-fact.js';
import { toPrintable } from '../../core/contract/finding-text.js';
import type { ParsedCondition } from './condition-file.js';

const NONE: ConditionVerdict = { kind: 'none' };

/** What the conditions say of a step. */
export function stepVerdict(
  request: ConditionedRequest,
  conditions: IndexedConditions,
  policy: ConditionedPolicy,
): ConditionVerdict {
  const { counters, run, args } = request;
  const name = decidedActionName(request.definition.name, args);
  const subject: DecidedSubject = {
    requestsOf: (applicable) => stepRequests(request, applicable, conditions),
    errorsOf: (failed) => {
      const queries = counterQueries({ name, args }, run, policy);
      return engineErrors(failed, counters, new Map(queries.map((query) => [query.name, query.uncountable])));
    },
  };
  return decide(conditions, name, policy, subject);
}

/** What the conditions say of a run that a person starts. An act that concerns several cases is decided for each. */
export function runVerdict(
  subject: ConditionedRun,
  conditions: IndexedConditions,
  policy: ConditionedPolicy,
): ConditionVerdict {
  const requestsOf = (applicable: ActionConditions): readonly ConditionRequest[] =>
    runsPerCase(subject).flatMap((run) => {
      const resource = subject.table === null ? uid('Case', run.case_id ?? '') : uid('Table', subject.table);
      const parts = { ...sharedContext({ ...subject, run }, conditions, applicable), args: () => ({}) };
      const context = contextOf(parts, applicable);
      return toRequests(run, applicable, [{ resource: entityOf(resource), context }]);
    });
  return decide(conditions, subject.action, policy, {
    requestsOf,
    errorsOf: (failed) => engineErrors(failed, [], NO_REASONS),
  });
}

const NO_REASONS: CounterReasons = new Map();

/** The run as it is, or once for each case and scope that it concerns. */
const runsPerCase = ({ run, cases }: ConditionedRun): readonly RunContext[] =>
  cases.length === 0
    ? [run]
    : cases.flatMap(({ case_id, scopes }) =>
        (scopes.length === 0 ? [run.scope] : scopes).map((scope) => ({ ...run, case_id, scope })),
      );

/** What conditions decide about. */
interface DecidedSubject {
  readonly requestsOf: (applicable: ActionConditions) => readonly ConditionRequest[];
  /** Why the engine could not evaluate conditions. */
  readonly errorsOf: (failed: readonly CedarFailure[]) => readonly ConditionError[];
}

function decide(
  conditions: IndexedConditions,
  name: string,
  { roles }: ConditionedPolicy,
  { requestsOf, errorsOf }: DecidedSubject,
): ConditionVerdict {
  const applicable = conditions.forAction(name);
  if (applicable === null) return NONE;
  try {
    const answer = decideConditions(applicable, requestsOf(applicable), roles);
    return answer.kind === 'error' ? errorVerdict(errorsOf(answer.failed)) : answer;
  } catch (error) {
    if (!(error instanceof InexactValueError)) throw error;
    return errorVerdict(inexactErrors(error, applicable.conditions));
  }
}

const errorVerdict = (errors: readonly ConditionError[]): ConditionVerdict => ({
  kind: 'deny',
  rule_id: 'condition.error',
  errors,
});

/** One request, or one for each path of the action; of each, one for every identity of the principal. */
function stepRequests(
  subject: ConditionedRequest,
  applicable: ActionConditions,
  conditions: IndexedConditions,
): readonly ConditionRequest[] {
  const { definition, args, run, files, counters } = subject;
  const parts = {
    ...sharedContext(subject, conditions, applicable),
    args: () => recordToCedar(applicable.args, readableArgs(definition, args)),
    domains: () => domainsOf(applicable.action.domains, readableArgs(definition, args)),
    counters: () => Object.fromEntries(counters.flatMap(({ name, used }) => (used === null ? [] : [[name, used]]))),
  };
  const context = contextOf(parts, applicable);
  if (applicable.action.resource !== 'Path') {
    return toRequests(run, applicable, [{ resource: resourceOf(definition, args), context }]);
  }
  const subjects = definition.paths.map((name, index) => {
    const file = fileContext(files[index]);
    return { resource: pathEntities(textOf(args[name])), context: file === null ? context : { ...context, file } };
  });
  return toRequests(run, applicable, subjects);
}

/** The parts that the conditions read. */
function contextOf(parts: ContextParts, { reads }: ActionConditions): Record<string, CedarValue> {
  const context: Record<string, CedarValue> = {};
  for (const [name, make] of Object.entries(parts)) {
    const value = reads.context?.has(name) === false ? null : makePart(name, make);
    if (value !== null) context[name] = value;
  }
  return context;
}

function makePart(name: string, make: () => CedarValue | null): CedarValue | null {
  try {
    return make();
  } catch (error) {
    if (error instanceof InexactValueError) error.path.unshift(name);
    throw error;
  }
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
  { scope }: IndexedConditions,
  { reads }: ActionConditions,
): ContextParts {
  return {
    now: () => extension('datetime', new Date(at).toISOString()),
    lane: () => run.lane_id ?? '',
    case: () => run.case_id,
    label: () => ({ cases: [...label.cases], flags: [...label.flags], many: label.many }),
    scope: () => {
      requireReadable(run.scope, scope, reads.scope);
      return recordToCedar(scope, run.scope);
    },
  };
}

/**
 * A value that is no identifier is recorded as a hash, which no condition should compare with anything.
 * @throws InexactValueError
 */
function requireReadable(given: RunContext['scope'], { attributes }: RecordShape, read: ReadNames): void {
  for (const { name } of attributes) {
    if (read?.has(name) === false || given[name]?.startsWith(HASHED_PREFIX) !== true) continue;
    const error = new InexactValueError('only its hash is recorded, because it is not an identifier');
    error.path.push(name);
    throw error;
  }
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

/** What is asked about one resource: it is the first of its entities, before those that it is in. */
interface RequestSubject {
  readonly resource: readonly CedarEntity[];
  readonly context: Record<string, CedarValue>;
}

function toRequests(
  run: RunContext,
  applicable: ActionConditions,
  subjects: readonly RequestSubject[],
): readonly ConditionRequest[] {
  const identities = applicable.identitiesOf?.(run);
  if (identities === undefined) return subjects.map((subject) => toRequest(run, applicable, subject, null));
  return identities.flatMap((identity) => subjects.map((subject) => toRequest(run, applicable, subject, identity)));
}

/** @param identity null: the actor as it is named */
function toRequest(
  { actor, role_id }: RunContext,
  { action: { name, groups }, reads }: ActionConditions,
  { resource, context }: RequestSubject,
  identity: PrincipalIdentity | null,
): ConditionRequest {
  const principal = uid('Actor', identity?.actor ?? actor.actor_id);
  const action = uid('Action', name);
  const attrs: Record<string, CedarValue> = identity === null ? {} : { person: identity.person };
  const parents = [uid('Role', role_id), ...(identity?.groups ?? []).map((group) => uid('Group', group))];
  return {
    principal,
    action,
    resource: (resource[0] as CedarEntity).uid as CedarUid,
    context,
    entities: [
      ...(reads.principal ? [{ uid: principal, attrs, parents }] : []),
      ...(reads.action ? [{ uid: action, attrs: {}, parents: groups.map((group) => uid('Action', group)) }] : []),
      ...(reads.resource ? resource : []),
    ],
    ...(identity === null ? {} : { conditions: identity.conditions }),
  };
}

const uid = (type: string, id: string): CedarUid => ({ type, id });
const entityOf = (of: CedarUid): readonly CedarEntity[] => [{ uid: of, attrs: {}, parents: [] }];
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

// Why conditions could not be evaluated, for people: which condition, which attribute, and the cause.

const CAUSE_CHARS_MAX = 400;

/** A value that Cedar does not hold exactly, for every condition that reads it. */
function inexactErrors(error: InexactValueError, conditions: readonly ParsedCondition[]): readonly ConditionError[] {
  const [part = '', name = ''] = error.path;
  const reading = conditions.filter(({ scope }) => {
    const { context, ...records } = readPartsOf([scope]);
    const names = part === 'args' || part === 'scope' ? records[part] : null;
    return context?.has(part) !== false && names?.has(name) !== false;
  });
  const attribute = `context.${error.path.join('.')}`;
  return reading.map(({ id }) => ({ condition: id, attribute, cause: error.message }));
}

/** Why a counter has no value for a step. */
type CounterReasons = ReadonlyMap<string, UncountableReason | undefined>;

const COUNTER_CAUSES: Readonly<Record<UncountableReason, string>> = {
  currency: 'its currency is not that of the counter',
  amount: 'its amount is not a whole number of 0 or more',
  name: 'the name of its actor can be read as several names',
};

/** What the engine says of each condition; a counter without a value is named with the cause. */
function engineErrors(
  failed: readonly CedarFailure[],
  counters: readonly Pick<CounterFact, 'name' | 'used'>[],
  reasons: CounterReasons,
): readonly ConditionError[] {
  return failed.map(({ id, message }) => {
    const name = ATTRIBUTE.exec(message)?.[1] ?? null;
    const counter = counters.find((one) => one.name === name && one.used === null);
    if (counter === undefined) return { condition: id, attribute: name, cause: printable(message) };
    const reason = reasons.get(counter.name);
    const cause =
      reason === undefined
        ? 'entries of its window were moved to an archive, or it is too large'
        : `the step cannot be counted: ${COUNTER_CAUSES[reason]}`;
    return { condition: id, attribute: `context.counters.${counter.name}`, cause };
  });
}

const ATTRIBUTE = /attribute `([^`]{1,120})`/;
const printable = (text: string): string => toPrintable(text).slice(0, CAUSE_CHARS_MAX);
