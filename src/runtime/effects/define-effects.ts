// What an embedding service registers: its own actions, tools for CALL_TOOL, and tables for WRITE_RECORD and
// READ_RECORDS. A definition cannot be called directly: only the gateway reaches its code.

import type { TObject, Static } from 'typebox';
import {
  createCatalogue,
  findRegistrationProblem,
  NO_REGISTRATIONS,
  Registrations,
  type Catalogue,
  type RegisteredAction,
  type TargetDefinition,
  type ToolDefinition,
  type RiskClass,
} from '../../core/contract/policy/catalogue.js';
import type { ConfidentialityFlag } from '../../core/contract/policy/labels.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { WriteMode } from '../../core/contract/policy/lanes.js';
import type { TraceCarrier } from '../../core/contract/trace-context.js';
import { EXPORT_BUNDLE } from '../../core/contract/evidence/export-bundle.js';
import { isConforming } from '../../core/contract/validators.js';
import { InvariantError, usageError } from '../../core/errors.js';
import type { RecordDatabase } from '../../engine/ports/effects/records.js';

const TIMEOUT_MS_DEFAULT = 30_000;
const RESULT_BYTES_DEFAULT = 1_048_576;

/** What the service's code gets besides its input. */
export interface EffectContext {
  /** The mediated run that has the allow. */
  readonly run_id: string;
  readonly case_id: string | null;
  /** Equal in every attempt of the same action: pass it to any system that can deduplicate with it. */
  readonly idempotency_key: string;
  /** Aborted at the timeout or when the process ends. The outcome of later work may count as unknown. */
  readonly signal: AbortSignal;
  /** The place of this call in its trace, to pass on to what the code calls. Absent without telemetry. */
  readonly trace?: TraceCarrier;
}

/** The outcome of an action whose answer was lost. */
export type ReconcileOutcome = { readonly done: JsonObject } | 'not_executed' | 'unknown';

type EffectCallback<In> = (input: In, context: EffectContext) => JsonObject | Promise<JsonObject>;
type ReconcileCallback<In> = (input: In, context: EffectContext) => ReconcileOutcome | Promise<ReconcileOutcome>;

interface CommonOptions {
  readonly summary?: string;
  /** Whether two executions with one idempotency key have the effect of one. Default false. */
  readonly idempotent?: boolean;
  /** Timeout in milliseconds. Default 30 s. */
  readonly timeout?: number;
  /** Size limit of the answer as JSON. Default 1 MiB. */
  readonly resultBytesMax?: number;
  /** Whether its input leaves the platform: mail, another firm's service. Default false. */
  readonly outside?: boolean;
  /** The confidentiality flags that its answers may carry (information flow). */
  readonly confidentiality?: readonly ConfidentialityFlag[];
}

/**
 * Options of `defineTool`: the schemas of a tool and the code behind it. `In` and `Out` follow from the schemas: a type
 * parameter of its own is computed once, and not at each comparison, which took the compiler many seconds.
 */
export interface ToolOptions<InSchema extends TObject, OutSchema extends TObject, In, Out> extends CommonOptions {
  /** The name that lanes list under `tools`. */
  readonly name: string;
  readonly input: InSchema;
  readonly output: OutSchema;
  /**
   * Throws `ActionNotExecutedError` if it certainly did nothing. After any other error or a timeout the outcome is
   * unknown, because it may have happened. It gets its own copy of the input and may change it.
   */
  readonly run: (input: NoInfer<In>, context: EffectContext) => NoInfer<Out> | Promise<NoInfer<Out>>;
  /**
   * Finds out the outcome of a call whose answer was lost (D8). For a call that timed out and is still running,
   * `not_executed` is not trusted: it may still happen.
   */
  readonly reconcile?: (input: NoInfer<In>, context: EffectContext) => ReconcileOutcome | Promise<ReconcileOutcome>;
}

/** Options of `defineExternalTool`. `timeout` is the time within which the outcome must be reported. */
export interface ExternalToolOptions extends Omit<CommonOptions, 'resultBytesMax'> {
  /** The name that lanes list under `tools`. */
  readonly name: string;
  readonly input: TObject;
}

/** Options of `defineAction`: the schema of an action and the code behind it. */
export interface ActionOptions<ArgsSchema extends TObject, Args> extends CommonOptions {
  /** In capitals: the name that agents propose and the actions policy lists. */
  readonly name: string;
  readonly risk: Exclude<RiskClass, 'none'>;
  readonly args: ArgsSchema;
  /** What the lane must allow: a tool (the run is a tool_gateway), a table to write (db_write) or to read (db_read). */
  readonly needs: RegisteredAction['needs'];
  readonly run: (args: NoInfer<Args>, context: EffectContext) => JsonObject | Promise<JsonObject>;
  readonly reconcile?: (args: NoInfer<Args>, context: EffectContext) => ReconcileOutcome | Promise<ReconcileOutcome>;
}

/** Options of `defineTarget`: the table of a target and the database that has it. */
export interface TargetOptions {
  readonly name: string;
  readonly summary?: string;
  /** A closed object; its properties are the columns. */
  readonly record: TObject;
  readonly key: readonly string[];
  readonly modes?: readonly WriteMode[];
  readonly plane?: 'case' | 'shared';
  /** Default: the ledger's own database, in one transaction with the audit. */
  readonly database?: RecordDatabase;
  readonly confidentiality?: readonly ConfidentialityFlag[];
}

/** Opaque: made by `defineTool`, passed to `openTurnpike`. */
export class Tool {
  readonly definition: ToolDefinition;
  constructor(definition: ToolDefinition) {
    this.definition = definition;
  }
}
/** Opaque: made by `defineAction`. */
export class Action {
  readonly definition: RegisteredAction;
  constructor(definition: RegisteredAction) {
    this.definition = definition;
  }
}
/** Opaque: made by `defineTarget`. */
export class Target {
  readonly definition: TargetDefinition;
  readonly database: RecordDatabase | null;
  constructor(definition: TargetDefinition, database: RecordDatabase | null) {
    this.definition = definition;
    this.database = database;
  }
}

/** What a definition defines. */
export type DefinitionKind = 'action' | 'tool' | 'target';

/**
 * The command and a service load this module separately, so the command cannot recognize a definition of the service by
 * its class. A registered symbol is the same in both.
 */
const KIND = Symbol.for('turnpike.definition');
const KINDS = [
  [Action, 'action'],
  [Tool, 'tool'],
  [Target, 'target'],
] as const;
for (const [made, kind] of KINDS) Object.defineProperty(made.prototype, KIND, { value: kind });

/** The kind of a definition, also of one that another copy of this module made; null for anything else. */
export function definitionKindOf(value: unknown): DefinitionKind | null {
  if (typeof value !== 'object' || value === null) return null;
  const found: unknown = Reflect.get(value, KIND);
  return KINDS.find(([, kind]) => kind === found)?.[1] ?? null;
}

/** The code behind a definition. */
export interface EffectCode {
  readonly run: EffectCallback<JsonObject>;
  readonly reconcile: ReconcileCallback<JsonObject> | null;
}

/** Not a member of a definition, so that code with a definition cannot call it. */
const effectCodes = new WeakMap<Tool | Action, EffectCode>();

/** For the gateway, which checks the capability first. */
export function codeOf(definition: Tool | Action): EffectCode {
  const found = effectCodes.get(definition);
  if (found === undefined) throw new InvariantError('a definition that was not made by defineTool or defineAction');
  return found;
}

/**
 * Defines a tool that agents call with the action `CALL_TOOL`.
 * `openTurnpike` checks the definition and throws a UsageError for an invalid one.
 */
export function defineTool<
  InSchema extends TObject,
  OutSchema extends TObject,
  In = Static<InSchema>,
  Out = Static<OutSchema>,
>(options: ToolOptions<InSchema, OutSchema, In, Out>): Tool {
  const { name, input, output, run, reconcile } = options;
  const tool = new Tool(
    deepFreeze({ name, input: toPlainSchema(input), output: toPlainSchema(output), ...commonOf(name, options) }),
  );
  effectCodes.set(tool, {
    run: run as unknown as EffectCallback<JsonObject>,
    reconcile: (reconcile as unknown as ReconcileCallback<JsonObject> | undefined) ?? null,
  });
  return tool;
}

/**
 * Defines an action with effects of its own, which the actions policy must list.
 * `openTurnpike` checks the definition and throws a UsageError for an invalid one.
 */
export function defineAction<ArgsSchema extends TObject, Args = Static<ArgsSchema>>(
  options: ActionOptions<ArgsSchema, Args>,
): Action {
  const { name, risk, args, needs, run, reconcile } = options;
  const action = new Action(deepFreeze({ name, risk, args: toPlainSchema(args), needs, ...commonOf(name, options) }));
  effectCodes.set(action, {
    run: run as unknown as EffectCallback<JsonObject>,
    reconcile: (reconcile as unknown as ReconcileCallback<JsonObject> | undefined) ?? null,
  });
  return action;
}

/**
 * Defines a tool that the caller of the agent executes itself (U-08). An allowed call has the result
 * `{ authorized: true, run_id }`. The caller then executes it, and reports the outcome to `Turnpike.report` before the
 * timeout.
 * `openTurnpike` checks the definition and throws a UsageError for an invalid one.
 */
export const defineExternalTool = (options: ExternalToolOptions): Tool =>
  new Tool(
    deepFreeze({
      name: options.name,
      input: toPlainSchema(options.input),
      output: REPORTED_OUTPUT,
      ...commonOf(options.name, options),
      external: true,
    }),
  );

/** Not used: a reported result is recorded as it is. */
const REPORTED_OUTPUT = { type: 'object', properties: {}, additionalProperties: false };

/**
 * Defines a table of records that runs may read or write.
 * `openTurnpike` checks the definition and throws a UsageError for an invalid one.
 */
export function defineTarget(options: TargetOptions): Target {
  const { name, summary = name, record, key, modes = ['append'], plane = 'case', database = null } = options;
  const definition: TargetDefinition = {
    name,
    summary,
    record: toPlainSchema(record),
    key: [...key],
    modes: [...modes],
    plane,
    place: database === null ? 'ledger' : 'elsewhere',
    confidentiality: [...(options.confidentiality ?? [])],
  };
  return new Target(deepFreeze(definition), database);
}

export interface RegistrationOptions {
  readonly actions?: readonly Action[];
  readonly tools?: readonly Tool[];
  readonly targets?: readonly Target[];
}

/** Registrations without the code behind them. */
export interface DefinedRegistrations {
  readonly actions?: readonly Pick<Action, 'definition'>[];
  readonly tools?: readonly Pick<Tool, 'definition'>[];
  readonly targets?: readonly Pick<Target, 'definition'>[];
}

/**
 * The registrations of a service as the catalogue of its trees.
 * @param others what other services register; a registration of this service takes precedence
 * @throws UsageError for invalid registrations
 */
export function catalogueFrom(
  { actions = [], tools = [], targets = [] }: DefinedRegistrations,
  others: Registrations = NO_REGISTRATIONS,
): Catalogue {
  const registrations: Registrations = {
    actions: sortByName(joinByName(actions, others.actions)),
    tools: sortByName(joinByName(tools, others.tools)),
    targets: sortByName(joinByName(targets, others.targets)),
  };
  const problem = isConforming(Registrations, registrations)
    ? (findRegistrationProblem(registrations) ?? actionProblem(registrations))
    : 'a name, a limit or a list in it is not as the documentation of defineAction, defineTool or defineTarget says';
  if (problem === null) return createCatalogue(registrations);
  throw usageError(`this registration is invalid: ${problem}`);
}

function joinByName<T extends { readonly name: string }>(
  own: readonly { readonly definition: T }[],
  others: readonly T[],
): readonly T[] {
  const names = new Set(own.map(({ definition }) => definition.name));
  return [...own.map(({ definition }) => definition), ...others.filter(({ name }) => !names.has(name))];
}

/** An action must not perform the export of a case, which is a run of its own, or a promotion (S4-85). */
function actionProblem({ actions, targets }: Registrations): string | null {
  const shared = targets.filter(({ plane }) => plane === 'shared').map(({ name }) => name);
  for (const { name, needs } of actions) {
    if (name === EXPORT_BUNDLE) return `${name} is a name of the platform's own`;
    if ('write' in needs && shared.includes(needs.write.table)) {
      return `${name} writes ${needs.write.table}, which is shared knowledge: only promotions do`;
    }
  }
  return null;
}

const commonOf = (name: string, options: CommonOptions) => ({
  summary: options.summary ?? name,
  idempotent: options.idempotent ?? false,
  timeout_ms: options.timeout ?? TIMEOUT_MS_DEFAULT,
  result_bytes_max: options.resultBytesMax ?? RESULT_BYTES_DEFAULT,
  outside: options.outside ?? false,
  confidentiality: [...(options.confidentiality ?? [])],
});

/** The schema as the plain data that a ledger stores. */
const toPlainSchema = (schema: TObject): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;

/** Deep, so that code with a definition cannot change the schema that validates answers. */
function deepFreeze<T>(definition: T): T {
  if (typeof definition !== 'object' || definition === null) return definition;
  for (const member of Object.values(definition)) deepFreeze(member);
  return Object.freeze(definition);
}

/** Makes the text, and so the pin, independent of the order of registrations. */
const sortByName = <T extends { readonly name: string }>(items: readonly T[]): T[] =>
  [...items].sort((a, b) => (a.name < b.name ? -1 : 1));
