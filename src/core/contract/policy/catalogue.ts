// What an agent can propose: the built-in actions and those that the embedding service has registered. Registrations
// are data. Every tree pins them with its machines, so a replay needs no service.

import Type, { type Static, type TObject } from 'typebox';
import { isJsonObject, type JsonObject } from '../json.js';
import { CONFIDENTIALITY_FLAGS } from './labels.js';
import { WRITE_MODES, type WriteMode } from './lanes.js';
import { PolicyName } from './policy-header.js';
import { findSchemaProblem } from './registered-schema.js';
import { closed, OneOf, CaseId } from '../shapes.js';
import { isConforming } from '../validators.js';

// The eight built-in actions of the step contract. An action outside the catalogue does not exist; an action that no
// policy lists is denied. Limits that a policy sets (content bytes, extensions) are in the actions policy.

/** S1-19: what an action can change outside. `none` has no effect outside the pipeline. */
export const RISK_CLASSES = ['none', 'read', 'write', 'destructive'] as const;
/** One of `RISK_CLASSES`. */
export type RiskClass = (typeof RISK_CLASSES)[number];

/** The step limits the length of a path in UTF-8 bytes; this value keeps the schema itself bounded. */
const PATH_BYTES_MAX = 1_024;
export const SEGMENT_BYTES_MAX = 255;

const Path = Type.String({
  pattern: '^/sandbox/',
  maxLength: PATH_BYTES_MAX,
  description:
    "Absolute path below /sandbox/, Unicode NFC, no backslash or control character, no empty, '.' or '..' segment. " +
    "A segment has at most 255 bytes and does not begin with '.turnpike-'. " +
    'Only LIST_FILES and CREATE_DIRECTORY take a slash at the end.',
});

/** What the contract fixes about an action: its arguments, its risk, and the run that it needs. */
export interface ActionDefinition {
  readonly name: string;
  readonly summary: string;
  readonly risk: RiskClass;
  readonly args: TObject;
  /** Arguments that are sandbox paths, in the order in which they are checked. */
  readonly paths: readonly string[];
  /** C27: whether a path other than the root may end with a slash. */
  readonly trailingSlash: boolean;
  /** The kind of the mediated run that the action needs; null if it needs none. */
  readonly run_kind: MediatedKind | null;
  /** The tool that a lane must list for the action, if it is always the same; else null. */
  readonly tool: string | null;
  /**
   * The write that the lane must allow, if it is always the same; for a tool_gateway run, the write of its db_write
   * child.
   */
  readonly write: { readonly table: string; readonly mode: WriteMode } | null;
  /** The table that the lane must allow to read, if it is always the same. */
  readonly read: string | null;
  /** Whether two executions with one idempotency key have the effect of one: a failed one may be retried (C54). */
  readonly idempotent: boolean;
  /** Whether the action sends its arguments outside the platform. */
  readonly outside: boolean;
}

/** The kinds of runs that mediate an agent's actions. */
export type MediatedKind = 'tool_gateway' | 'db_write' | 'db_read';

const SANDBOX_FILES = { table: 'sandbox_files', mode: 'upsert' } as const;

const path = Type.Object({ path: Path }, closed);

/** What an action needs that nothing outside of its run sees. */
const WITHOUT_EFFECT = {
  paths: [],
  trailingSlash: false,
  run_kind: null,
  tool: null,
  write: null,
  read: null,
  idempotent: true,
  outside: false,
} as const;

/** The eight built-in actions by name. */
export const ACTIONS = {
  THINK: {
    name: 'THINK',
    summary: 'Note a thought. Nothing happens.',
    risk: 'none',
    args: Type.Object({}, closed),
    ...WITHOUT_EFFECT,
  },
  FINISH: {
    name: 'FINISH',
    summary: 'End the run with a last word to the user.',
    risk: 'none',
    args: Type.Object({ response: Type.String() }, closed),
    ...WITHOUT_EFFECT,
  },
  READ_FILE: {
    name: 'READ_FILE',
    summary: 'Read a UTF-8 text file.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.read_file',
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  LIST_FILES: {
    name: 'LIST_FILES',
    summary: 'List a directory.',
    risk: 'read',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    run_kind: 'tool_gateway',
    tool: 'sandbox.list_files',
    write: null,
    read: null,
    idempotent: true,
    outside: false,
  },
  WRITE_FILE: {
    name: 'WRITE_FILE',
    summary: 'Create a text file, or replace all of it. Its directory must exist.',
    risk: 'write',
    args: Type.Object({ path: Path, content: Type.String({ minLength: 1 }) }, closed),
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.write_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: true,
    outside: false,
  },
  CREATE_DIRECTORY: {
    name: 'CREATE_DIRECTORY',
    summary: 'Create one directory. Its parent must exist.',
    risk: 'write',
    args: path,
    paths: ['path'],
    trailingSlash: true,
    run_kind: 'tool_gateway',
    tool: 'sandbox.create_directory',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
  DELETE_FILE: {
    name: 'DELETE_FILE',
    summary: 'Delete one file.',
    risk: 'destructive',
    args: path,
    paths: ['path'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.delete_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
  RENAME_FILE: {
    name: 'RENAME_FILE',
    summary: 'Rename or move one file. The destination must not exist.',
    risk: 'destructive',
    args: Type.Object({ source: Path, destination: Path }, closed),
    paths: ['source', 'destination'],
    trailingSlash: false,
    run_kind: 'tool_gateway',
    tool: 'sandbox.rename_file',
    write: SANDBOX_FILES,
    read: null,
    idempotent: false,
    outside: false,
  },
} as const satisfies Record<string, ActionDefinition>;
/** The name of a built-in action on files. */
export type FileActionName = {
  [Name in keyof typeof ACTIONS]: (typeof ACTIONS)[Name]['paths'] extends readonly [] ? never : Name;
}[keyof typeof ACTIONS];
/** The name of a built-in action. */
export type ActionName = keyof typeof ACTIONS;
/** The names of the built-in actions. */
export const ACTION_NAMES = Object.keys(ACTIONS) as readonly ActionName[];

/** The definition of a built-in action. Only own keys count, so `constructor` is not an action. */
export const findAction = (name: string): ActionDefinition | undefined =>
  Object.hasOwn(ACTIONS, name) ? ACTIONS[name as ActionName] : undefined;

/** The paths that an action changes in a sandbox; empty if it changes none. */
export function changedPaths({
  action,
  args,
}: {
  readonly action: string;
  readonly args: JsonObject;
}): readonly string[] {
  const definition = findAction(action);
  return definition?.write == null ? [] : definition.paths.map((name) => withoutTrailingSlash(args[name]));
}

/** A trailing slash names the same directory. */
export const withoutTrailingSlash = (path: unknown): string =>
  typeof path === 'string' ? path.replace(/\/$/, '') : '';

// The three built-in actions with a target as an argument. They reach what the embedding service has registered, in
// lanes that list the target, if the actions policy lists the action.

export const RECORDS_PER_READ_MAX = 1_000;
export const RECORDS_PER_READ_DEFAULT = 100;

/** What the schema of an action leaves open is in the schema of the tool or target that its arguments name. */
const anyValue = (description: string) => Type.Object({}, { additionalProperties: true, description });

export const RECORD_ACTIONS = {
  CALL_TOOL: {
    name: 'CALL_TOOL',
    summary: 'Call a tool.',
    risk: 'destructive',
    args: Type.Object({ tool: PolicyName, input: anyValue('What the input schema of the tool says.') }, closed),
    run_kind: 'tool_gateway',
  },
  WRITE_RECORD: {
    name: 'WRITE_RECORD',
    summary: 'Write one record: append a new one, or upsert the one with its key.',
    risk: 'write',
    args: Type.Object(
      { target: PolicyName, mode: OneOf(WRITE_MODES), record: anyValue('What the schema of the target says.') },
      closed,
    ),
    run_kind: 'db_write',
  },
  READ_RECORDS: {
    name: 'READ_RECORDS',
    summary: 'Read records in the order of their keys.',
    risk: 'read',
    args: Type.Object(
      {
        target: PolicyName,
        where: Type.Optional(anyValue('Columns of the target and the values they must have.')),
        after: Type.Optional(anyValue('The key of the last record that was read: only those behind it are.')),
        /** A case other than the run's own; only a lane with `cross_case_reads` may read it (S4-84). */
        case_id: Type.Optional(CaseId),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: RECORDS_PER_READ_MAX })),
      },
      closed,
    ),
    run_kind: 'db_read',
  },
} as const satisfies Record<string, Partial<ActionDefinition>>;
export type RecordActionName = keyof typeof RECORD_ACTIONS;

const ARGUMENT_DEPENDENT = {
  paths: [],
  trailingSlash: false,
  tool: null,
  write: null,
  read: null,
  idempotent: false,
  outside: false,
} as const;

export const RECORD_ACTION_DEFINITIONS: readonly ActionDefinition[] = Object.values(RECORD_ACTIONS).map((action) => ({
  ...action,
  ...ARGUMENT_DEPENDENT,
}));

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
