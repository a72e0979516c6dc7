// Protocol of the control socket (D13): one JSON object per line. Each request has an id and gets one answer with the
// same id; answers may arrive in another order. A client that can connect has the rights of the owner of the home.
// Still, each message is parsed strictly and validated against its schema.

import { isUtf8 } from 'node:buffer';
import Type, { type Static, type TArrayOptions, type TProperties, type TSchema } from 'typebox';
import { ApprovalBallot } from '../../core/contract/run/approval.js';
import { BudgetLimits } from '../../core/contract/run/budget.js';
import { AGENT_LINKS, ResolveInput } from '../../core/contract/run/entry.js';
import { ExportBundle } from '../../core/contract/evidence/export-bundle.js';
import { type JsonObject, scanJson } from '../../core/contract/json.js';
import { CONFIDENTIALITY_FLAGS } from '../../core/contract/policy/labels.js';
import { WRITE_MODES } from '../../core/contract/policy/lanes.js';
import { EXPOSURES } from '../../core/contract/run/response.js';
import { TERMINAL_STATES } from '../../core/contract/run/run-context.js';
import { closed, Nullable, OneOf, RunId, Sha256, TaxonomyVersions } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import {
  CodedError,
  InvariantError,
  LedgerError,
  PolicyError,
  RunError,
  SandboxError,
  UsageError,
} from '../../core/errors.js';
import { PAYLOAD_BYTES_CEILING } from '../../runtime/agents/caller-input.js';
import { INPUT_PLACES_MAX } from '../../runtime/agents/remote-agents.js';
import { OPERATOR_FIELDS } from '../../runtime/operator-acts.js';

/** A request contains at most one payload in base64, and some short members. */
export const REQUEST_BYTES_MAX = Math.ceil(PAYLOAD_BYTES_CEILING / 3) * 4 + 65_536;
/** An answer contains one response, whose content may be escaped twice. */
export const RESPONSE_BYTES_MAX = 4 * PAYLOAD_BYTES_CEILING;
/** A record may be as deep as a payload. */
const DEPTH_MAX = 40;

const Id = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });
const Text = Type.String({ maxLength: 400 });
const InputId = Type.String({ minLength: 1, maxLength: 160 });
/** The contract folder that the caller requires, which must be the one in use; null if it requires none. */
const Contract = Nullable(Type.String({ maxLength: 8_192 }));
/** The trace context of the caller. */
const Trace = Type.Optional(Type.Object({ traceparent: Type.String({ maxLength: 256 }) }, closed));
const Scope = Type.Optional(Type.Record(Type.String(), Type.String()));
const List = <T extends TSchema>(item: T, options?: TArrayOptions) =>
  Type.Unsafe<readonly Static<T>[]>(Type.Array(item, options ?? {}));
/** The schema of the record's target, or of the tool, is known only to the other process. */
const RecordObject = Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true }));

const AgentOptions = Type.Object(
  {
    lane: Type.Optional(Text),
    role: Type.Optional(Text),
    actor: Type.Optional(Text),
    case: Type.Optional(Text),
    scope: Scope,
    correlation: Type.Optional(Text),
    key: Type.Optional(Text),
    taxonomy: Type.Optional(TaxonomyVersions),
    exposure: Type.Optional(OneOf(EXPOSURES)),
    link: Type.Optional(OneOf(AGENT_LINKS)),
    idleMs: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    budget: Type.Optional(BudgetLimits),
    trace: Trace,
  },
  closed,
);
/** Options of an agent run in another process: attached to the connection, or remote. */
export type ControlAgentOptions = Static<typeof AgentOptions>;

const KeyOwner = Type.Object(
  {
    key: Text,
    actor: Type.Optional(Text),
    person: Type.Optional(Text),
    role: Type.Optional(Text),
    lane: Type.Optional(Text),
    case: Type.Optional(Text),
  },
  closed,
);
const InputPlaces = List(Type.Object({ run_id: RunId, inputId: InputId }, closed), {
  maxItems: INPUT_PLACES_MAX,
});

const proposalFields = {
  run_id: RunId,
  /** The raw bytes of the payload in base64. */
  payload: Type.String(),
  input_id: Type.Optional(InputId),
  trace: Trace,
};
/** The person who acts. */
const personFields = { actor: Text, role: Text };
/** The person who starts a promotion or an export, and the case. */
const starterFields = {
  ...personFields,
  case: Type.Optional(Text),
  lane: Type.Optional(Text),
  scope: Scope,
  correlation: Type.Optional(Text),
};
const PromoteOptions = Type.Object(
  {
    ...starterFields,
    ticket: Text,
    target: Text,
    mode: Type.Optional(OneOf(WRITE_MODES)),
    record: RecordObject,
    sources: Type.Optional(List(Sha256, { maxItems: 63 })),
    confidentiality: Type.Optional(List(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length })),
  },
  closed,
);
const ExportOptions = Type.Object(
  {
    ...starterFields,
    reason: Text,
    kind: Type.Optional(ExportBundle.properties.bundle_kind),
    /** Absolute, because the two processes may have different working directories. */
    destination: Type.String({ pattern: '^/', maxLength: 4_096 }),
    format: Type.Optional(OneOf(['folder', 'zip'])),
  },
  closed,
);
const { digests, decision } = ApprovalBallot.properties;
const Digests = Type.Unsafe<readonly string[]>(digests);
const Ballot = Type.Object({ run: RunId, digests: Digests, decision, ...personFields }, closed);
const { outcome, note } = ResolveInput.properties;
const Resolution = Type.Object({ run: RunId, outcome, ...personFields, note: Type.Optional(note) }, closed);
const DecisionRequest = Type.Object(
  {
    tool: Text,
    input: RecordObject,
    ...personFields,
    lane: Type.Optional(Text),
    case: Type.Optional(Text),
    key: Type.Optional(Text),
  },
  closed,
);
const ActionReport = Type.Object(
  { run: RunId, status: OneOf(['done', 'failed', 'unknown']), result: Type.Optional(RecordObject) },
  closed,
);

export const EmptyResult = Type.Object({}, closed);
const Ending = Type.Object(
  { run_id: RunId, state: OneOf(TERMINAL_STATES), reason: Type.String({ maxLength: 200 }) },
  closed,
);
/** `ending` is set if the run has already ended: policy denied the agent, or this step was its last. */
const startedFields = {
  run_id: RunId,
  root_run_id: RunId,
  correlation_id: Type.String(),
  ending: Nullable(Ending),
};
/** `digest`: of the request that people must approve first. */
const StartedHighRiskRun = Type.Object({ ...startedFields, digest: Nullable(Sha256) }, closed);
const BallotResult = Type.Object(
  {
    digest: Sha256,
    counted: Type.Boolean(),
    rule_id: Type.String({ maxLength: 120 }),
    reminder: Type.Optional(Type.Literal(true)),
  },
  closed,
);
const FoundRun = Type.Object(
  {
    run_id: RunId,
    actor: Type.String(),
    role: Type.String(),
    lane: Nullable(Type.String()),
    case: Nullable(Type.String()),
    ended: Nullable(Type.Object({ state: OneOf(TERMINAL_STATES), reason: Type.String() }, closed)),
  },
  closed,
);
/** A recorded decision. */
const Decision = Type.Object(
  {
    decision: Type.Boolean(),
    pending: Type.Boolean(),
    call: Nullable(RunId),
    run: RunId,
    step: Nullable(Type.Integer({ minimum: 1 })),
    rule: Nullable(Type.String({ maxLength: 200 })),
    code: Type.String({ maxLength: 120 }),
    message: Type.String({ maxLength: 2_000 }),
  },
  closed,
);
/** What an erasure removed. */
const Erasure = Type.Object(
  {
    contents: Type.Integer({ minimum: 0 }),
    bytes: Type.Integer({ minimum: 0 }),
    archived: Type.Optional(Type.Literal(true)),
  },
  closed,
);

/** The members of a request besides `id` and `op`, and its result. */
const operation = <Members extends TProperties, Result extends TSchema>(members: Members, result: Result) => ({
  members: Type.Object(members, closed),
  result,
});
const found = <T extends TSchema>(schema: T) => Type.Object({ found: Nullable(schema) }, closed);

/** The requests that the platform answers, by `op`. Features have the schemas of those that they answer. */
export const CONTROL_OPERATIONS = {
  ping: operation({}, EmptyResult),
  start_agent: operation({ contract: Contract, options: AgentOptions }, Type.Object(startedFields, closed)),
  respond: operation(proposalFields, Type.Object({ response: Type.String(), ending: Nullable(Ending) }, closed)),
  end: operation({ run_id: RunId }, Ending),
  interrupt: operation({ run_id: RunId }, Ending),
  finished: operation({ run_id: RunId }, Ending),
  cancel: operation({ run_id: RunId, reason: Type.String() }, Ending),
  // Remote runs belong to no connection: every client reaches them by their ids.
  find_remote: operation({ run_id: RunId }, found(FoundRun)),
  find_keyed: operation({ owner: KeyOwner }, found(Type.Object({ run_id: RunId, ending: Nullable(Ending) }, closed))),
  find_input: operation({ places: InputPlaces }, found(Type.Object({ run_id: RunId, sha256: Sha256 }, closed))),
  /** The response is JSON text. */
  submit_remote: operation(proposalFields, Type.Object({ response: Type.String() }, closed)),
  end_remote: operation({ run_id: RunId }, EmptyResult),
  promote: operation({ contract: Contract, options: PromoteOptions }, StartedHighRiskRun),
  export: operation({ contract: Contract, options: ExportOptions }, StartedHighRiskRun),
  // The pinned policy of the run's tree decides about ballots and resolutions.
  vote: operation({ ballot: Ballot }, Type.Object({ results: List(BallotResult) }, closed)),
  resolve: operation({ resolution: Resolution }, EmptyResult),
  decide: operation({ contract: Contract, request: DecisionRequest }, Decision),
  report: operation({ report: ActionReport }, EmptyResult),
  /** The result is null if the person may not see the request. */
  read_request: operation(
    { reading: Type.Object({ run: RunId, digest: Sha256, ...personFields }, closed) },
    Type.Object({ request: Nullable(Type.Object({ action: Type.String(), args: RecordObject }, closed)) }, closed),
  ),
  erase: operation({ erasure: Type.Object({ case: Text, ...OPERATOR_FIELDS }, closed) }, Erasure),
} as const;

type Operations = typeof CONTROL_OPERATIONS;
export type ControlOperation = keyof Operations;
export type RequestMembersOf<Op extends ControlOperation> = Static<Operations[Op]['members']>;
export type ResultOf<Op extends ControlOperation> = Static<Operations[Op]['result']>;

/** Any request. */
export const RequestEnvelope = Type.Object({ id: Id, op: Type.String() }, { additionalProperties: true });
export type RequestEnvelope = Static<typeof RequestEnvelope>;

/** An error by its code and message. The receiver creates it anew, of its original class. */
const WireError = Type.Object({ code: Type.String({ maxLength: 80 }), message: Type.String() }, closed);
type WireError = Static<typeof WireError>;

export const ControlResponse = Type.Union([
  Type.Object({ id: Id, ok: Type.Literal(true), result: Type.Unknown() }, closed),
  /** The id is null if the request could not be parsed; then the connection is closed. */
  Type.Object({ id: Nullable(Id), ok: Type.Literal(false), error: WireError }, closed),
]);
export type ControlResponse = Static<typeof ControlResponse>;

/** The message of a line, or null if it is not strict JSON of this schema. */
export function parseMessage<T extends TSchema>(schema: T, line: Uint8Array): Static<T> | null {
  if (!isUtf8(line)) return null;
  const scanned = scanJson(Buffer.from(line).toString('utf8'), DEPTH_MAX, 'exact');
  return scanned.ok ? asInstance(schema, scanned.value) : null;
}

/** `value` as an instance of `schema`, or null. */
export const asInstance = <T extends TSchema>(schema: T, value: unknown): Static<T> | null =>
  isConforming(schema, value) ? (value as Static<T>) : null;

/** The classes of errors that keep their code and message, each with its codes. */
const ERROR_CLASSES: readonly (readonly [codes: RegExp, Class: ErrorClass])[] = [
  [/^LEDGER_/, LedgerError],
  [/^POLICY_/, PolicyError],
  [/^USAGE$/, UsageError],
  [/^(?:UNSUPPORTED_PLATFORM|SANDBOX_UNUSABLE)$/, SandboxError],
  [/^(?!INVARIANT$)/, RunError],
];
type ErrorClass = new (options: { readonly code: never; readonly message: string }) => CodedError;

/** The wire form of an error. An error of another class stays in the log of its process. */
export const toWireError = (error: unknown): WireError =>
  error instanceof CodedError && ERROR_CLASSES.some(([, Class]) => error instanceof Class)
    ? { code: String(error.code), message: error.message }
    : { code: 'INVARIANT', message: 'the process that has this home failed to answer: see its log' };

/** The received error, of its original class. */
export function fromWireError({ code, message }: WireError): CodedError {
  const found = ERROR_CLASSES.find(([codes]) => codes.test(code));
  return found === undefined ? new InvariantError(message) : new found[1]({ code: code as never, message });
}
