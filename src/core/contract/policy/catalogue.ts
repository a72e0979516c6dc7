// What an agent can propose: the built-in actions and those that the embedding service has registered. Registrations
// are data. Every tree pins them with its machines, so a replay needs no service.

import Type, { type Static } from 'typebox';
import { ACTION_NAMES, ACTIONS, RISK_CLASSES, type ActionDefinition } from './actions.js';
import { isJsonObject } from '../json.js';
import { CONFIDENTIALITY_FLAGS } from './labels.js';
import { WRITE_MODES } from './lanes.js';
import { PolicyName } from './policy-header.js';
import { RECORD_ACTION_DEFINITIONS } from './record-actions.js';
import { findSchemaProblem } from './registered-schema.js';
import { closed, OneOf } from '../shapes.js';
import { isConforming } from '../validators.js';

const Summary = Type.String({ minLength: 1, maxLength: 400 });
const Schema = Type.Record(Type.String(), Type.Unknown());
const Confidentiality = Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: 3 });

/** What a service declares about the code of a tool or an action. */
const codeProperties = {
  /** Whether two calls with one idempotency key have the effect of one. */
  idempotent: Type.Boolean(),
  timeout_ms: Type.Integer({ minimum: 1, maximum: 86_400_000 }),
  result_bytes_max: Type.Integer({ minimum: 2, maximum: 16_777_216 }),
  /** Whether its input leaves the platform. */
  outside: Type.Boolean(),
  confidentiality: Confidentiality,
};

/** A tool that CALL_TOOL may call. */
export const ToolDefinition = Type.Object(
  {
    name: PolicyName,
    summary: Summary,
    input: Schema,
    output: Schema,
    ...codeProperties,
    /** Its caller executes it and reports the outcome within `timeout_ms` (U-08). Absent: the service's code does. */
    external: Type.Optional(Type.Literal(true)),
  },
  closed,
);
export type ToolDefinition = Static<typeof ToolDefinition>;

/** A table that WRITE_RECORD and READ_RECORDS may name. */
export const TargetDefinition = Type.Object(
  {
    name: PolicyName,
    summary: Summary,
    /** A closed object of scalars and JSON: its properties are the columns. */
    record: Schema,
    /** The columns that identify a record; within one case if the target is case-scoped. */
    key: Type.Array(PolicyName, { minItems: 1, maxItems: 8 }),
    modes: Type.Array(OneOf(WRITE_MODES), { minItems: 1, maxItems: 2 }),
    /**
     * `case`: every row belongs to one case. `shared`: rows belong to no case, and only promotions write them (S4-85).
     */
    plane: OneOf(['case', 'shared']),
    /** `ledger`: in the ledger's own database, in one transaction with the audit. */
    place: OneOf(['ledger', 'elsewhere']),
    confidentiality: Confidentiality,
  },
  closed,
);
export type TargetDefinition = Static<typeof TargetDefinition>;

/**
 * An action of the embedding service. What the action needs decides whether its run is a tool_gateway, db_write or
 * db_read.
 */
export const RegisteredAction = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
    summary: Summary,
    risk: OneOf(RISK_CLASSES.slice(1) as ['read', 'write', 'destructive']),
    args: Schema,
    needs: Type.Union([
      Type.Object({ tool: PolicyName }, closed),
      Type.Object({ write: Type.Object({ table: PolicyName, mode: OneOf(WRITE_MODES) }, closed) }, closed),
      Type.Object({ read: PolicyName }, closed),
    ]),
    ...codeProperties,
  },
  closed,
);
export type RegisteredAction = Static<typeof RegisteredAction>;

/** All registrations, sorted by name: the same registrations give the same text. */
export const Registrations = Type.Object(
  {
    actions: Type.Array(RegisteredAction, { maxItems: 256 }),
    tools: Type.Array(ToolDefinition, { maxItems: 1_024 }),
    targets: Type.Array(TargetDefinition, { maxItems: 1_024 }),
  },
  closed,
);
export type Registrations = Static<typeof Registrations>;

export const NO_REGISTRATIONS: Registrations = { actions: [], tools: [], targets: [] };

/** All actions, and the tools and targets that some of their arguments can name. */
export interface Catalogue {
  readonly registrations: Registrations;
  /** Only own names count, so `constructor` is not an action. */
  action(name: string): ActionDefinition | undefined;
  tool(name: string): ToolDefinition | undefined;
  target(name: string): TargetDefinition | undefined;
  readonly actions: readonly ActionDefinition[];
}

/**
 * The catalogue of these registrations. If a name is registered twice, the first registration counts; a built-in action
 * always takes precedence. `findRegistrationProblem` reports such conflicts to the embedding service.
 */
export function createCatalogue(registrations: Registrations): Catalogue {
  const actions = indexByName([...BUILT_IN_ACTIONS, ...registrations.actions.map(toActionDefinition)]);
  const tools = indexByName(registrations.tools);
  const targets = indexByName(registrations.targets);
  return {
    registrations,
    action: (name) => actions.get(name),
    tool: (name) => tools.get(name),
    target: (name) => targets.get(name),
    actions: [...actions.values()],
  };
}

/** @returns what is wrong with the registrations, in words for the programmer, or null */
export function findRegistrationProblem({ actions, tools, targets }: Registrations): string | null {
  const names = [...BUILT_IN_ACTIONS, ...actions].map(({ name }) => name);
  const twice = [names, tools.map(({ name }) => name), targets.map(({ name }) => name)].flatMap((list) =>
    list.filter((name, index) => list.indexOf(name) !== index),
  );
  if (twice[0] !== undefined) return `${twice[0]} is registered twice`;
  const reserved = [...tools, ...targets].find(({ name }) => PLATFORM_NAMES.test(name));
  if (reserved !== undefined) return `${reserved.name} is a name of the platform's own`;
  const schemas: readonly (readonly [string, unknown])[] = [
    ...actions.map(({ name, args }) => [`the arguments of ${name}`, args] as const),
    ...tools.flatMap(({ name, input, output }) => [
      [`the input of ${name}`, input] as const,
      [`the output of ${name}`, output] as const,
    ]),
    ...targets.map(({ name, record }) => [`the record of ${name}`, record] as const),
  ];
  for (const [label, schema] of schemas) {
    const problem = findSchemaProblem(schema);
    if (problem !== null) return `${label}: ${problem}`;
  }
  for (const target of targets) {
    const missing = target.key.find((column) => columnsOf(target)[column] === undefined);
    if (missing !== undefined) return `the key of ${target.name} has ${missing}, which is no column of its record`;
  }
  return null;
}

/** Names that lanes use for the platform's own tools are reserved. */
const PLATFORM_NAMES = /^(?:sandbox[._]|export_bundle|audit_ledger$)/;

/** The columns of a target, each with its schema. */
export function columnsOf({ record }: TargetDefinition): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const { properties } = record as {
    readonly properties?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  return properties ?? {};
}

/**
 * The registrations inside a text that a tree has pinned.
 * @returns null if it has none that can be used
 */
export function parseRegistrations(definitions: unknown): Registrations | null {
  const found: unknown = isJsonObject(definitions) ? definitions['registrations'] : undefined;
  return isConforming(Registrations, found) && findRegistrationProblem(found as Registrations) === null
    ? (found as Registrations)
    : null;
}

const BUILT_IN_ACTIONS: readonly ActionDefinition[] = [
  ...ACTION_NAMES.map((name): ActionDefinition => ACTIONS[name]),
  ...RECORD_ACTION_DEFINITIONS,
];

/** The first item with a name counts. */
function indexByName<T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<string, T> {
  const map = new Map<string, T>();
  for (const item of items) if (!map.has(item.name)) map.set(item.name, item);
  return map;
}

function toActionDefinition({
  name,
  summary,
  risk,
  args,
  needs,
  idempotent,
  outside,
}: RegisteredAction): ActionDefinition {
  return {
    name,
    summary,
    risk,
    args: args as unknown as ActionDefinition['args'],
    paths: [],
    trailingSlash: false,
    run_kind: 'tool' in needs ? 'tool_gateway' : 'write' in needs ? 'db_write' : 'db_read',
    tool: 'tool' in needs ? needs.tool : null,
    write: 'write' in needs ? needs.write : null,
    read: 'read' in needs ? needs.read : null,
    idempotent,
    outside,
  };
}
