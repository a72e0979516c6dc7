// Protocol of the control socket (D13): one JSON object per line. Each request has an id and gets one answer with the
// same id; answers may arrive in another order. A client that can connect has the rights of the owner of the home.
// Still, each message is parsed strictly and validated against its schema.

import { isUtf8 } from 'node:buffer';
import Type, { type Static, type TSchema } from 'typebox';
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
import { WireError } from './control-errors.js';
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
/** The contract folder that the caller requires, which must be the one in use; null if it requires none. */
const Contract = Nullable(Type.String({ maxLength: 8_192 }));
/** The trace context of the caller. */
const Trace = Type.Optional(Type.Object({ traceparent: Type.String({ maxLength: 256 }) }, closed));
const Scope = Type.Optional(Type.Record(Type.String(), Type.String()));

const StartAgent = Type.Object(
  {
    id: Id,
    op: Type.Literal('start_agent'),
    contract: Contract,
    options: Type.Object(
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
    ),
  },
  closed,
);
const Respond = Type.Object(
  {
    id: Id,
    op: Type.Literal('respond'),
    run_id: RunId,
    /** The raw bytes of the payload in base64. */
    payload: Type.String(),
    input_id: Type.Optional(Type.String({ minLength: 1, maxLength: 160 })),
    trace: Trace,
  },
  closed,
);
/** Remote runs belong to no connection: every client reaches them by their ids. */
const FindRemote = Type.Object({ id: Id, op: Type.Literal('find_remote'), run_id: RunId }, closed);
const FindKeyed = Type.Object(
  {
    id: Id,
    op: Type.Literal('find_keyed'),
    owner: Type.Object(
      {
        key: Text,
        actor: Type.Optional(Text),
        person: Type.Optional(Text),
        role: Type.Optional(Text),
        lane: Type.Optional(Text),
        case: Type.Optional(Text),
      },
      closed,
    ),
  },
  closed,
);
const FindInput = Type.Object(
  {
    id: Id,
    op: Type.Literal('find_input'),
    places: Type.Array(Type.Object({ run_id: RunId, inputId: Type.String({ minLength: 1, maxLength: 160 }) }, closed), {
      maxItems: INPUT_PLACES_MAX,
    }),
  },
  closed,
);
const SubmitRemote = Type.Object({ ...Respond.properties, op: Type.Literal('submit_remote') }, closed);
const EndRemote = Type.Object({ id: Id, op: Type.Literal('end_remote'), run_id: RunId }, closed);
const RunRequest = Type.Object({ id: Id, op: OneOf(['end', 'interrupt', 'finished']), run_id: RunId }, closed);
const Cancel = Type.Object({ id: Id, op: Type.Literal('cancel'), run_id: RunId, reason: Type.String() }, closed);
const Ping = Type.Object({ id: Id, op: Type.Literal('ping') }, closed);

/** The person who starts a promotion or an export, and the case. */
const starterFields = {
  actor: Text,
  role: Text,
  case: Type.Optional(Text),
  lane: Type.Optional(Text),
  scope: Scope,
  correlation: Type.Optional(Text),
};
/** The schema of the record's target is known only to the other process. */
const RecordObject = Type.Unsafe<JsonObject>(Type.Object({}, { additionalProperties: true }));
const Promote = Type.Object(
  {
    id: Id,
    op: Type.Literal('promote'),
    contract: Contract,
    options: Type.Object(
      {
        ...starterFields,
        ticket: Text,
        target: Text,
        mode: Type.Optional(OneOf(WRITE_MODES)),
        record: RecordObject,
        sources: Type.Optional(Type.Array(Sha256, { maxItems: 63 })),
        confidentiality: Type.Optional(
          Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length }),
        ),
      },
      closed,
    ),
  },
  closed,
);
const Export = Type.Object(
  {
    id: Id,
    op: Type.Literal('export'),
    contract: Contract,
    options: Type.Object(
      {
        ...starterFields,
        reason: Text,
        kind: Type.Optional(ExportBundle.properties.bundle_kind),
        /** Absolute, because the two processes may have different working directories. */
        destination: Type.String({ pattern: '^/', maxLength: 4_096 }),
        format: Type.Optional(OneOf(['folder', 'zip'])),
      },
      closed,
    ),
  },
  closed,
);
/** The pinned policy of the run's tree decides about ballots and resolutions. */
const Vote = Type.Object(
  {
    id: Id,
    op: Type.Literal('vote'),
    ballot: Type.Object(
      {
        run: RunId,
        digests: ApprovalBallot.properties.digests,
        decision: ApprovalBallot.properties.decision,
        actor: Text,
        role: Text,
      },
      closed,
    ),
  },
  closed,
);
const Resolve = Type.Object(
  {
    id: Id,
    op: Type.Literal('resolve'),
    resolution: Type.Object(
      {
        run: RunId,
        outcome: ResolveInput.properties.outcome,
        actor: Text,
        role: Text,
        note: Type.Optional(ResolveInput.properties.note),
      },
      closed,
    ),
  },
  closed,
);

/** The contract matters, because it decides. */
const Decide = Type.Object(
  {
    id: Id,
    op: Type.Literal('decide'),
    contract: Contract,
    request: Type.Object(
      {
        tool: Text,
        input: RecordObject,
        actor: Text,
        role: Text,
        lane: Type.Optional(Text),
        case: Type.Optional(Text),
        key: Type.Optional(Text),
      },
      closed,
    ),
  },
  closed,
);

/** The caller reports what it has executed itself. */
const Report = Type.Object(
  {
    id: Id,
    op: Type.Literal('report'),
    report: Type.Object(
      { run: RunId, status: OneOf(['done', 'failed', 'unknown']), result: Type.Optional(RecordObject) },
      closed,
    ),
  },
  closed,
);

/** Shows a person what a run requests of them, and records the reading. */
const ReadRequest = Type.Object(
  {
    id: Id,
    op: Type.Literal('read_request'),
    reading: Type.Object({ run: RunId, digest: Sha256, actor: Text, role: Text }, closed),
  },
  closed,
);

const Erase = Type.Object(
  { id: Id, op: Type.Literal('erase'), erasure: Type.Object({ case: Text, ...OPERATOR_FIELDS }, closed) },
  closed,
);

/** Any request. Features have the schemas of those that they answer. */
export const RequestEnvelope = Type.Object({ id: Id, op: Type.String() }, { additionalProperties: true });
export type RequestEnvelope = Static<typeof RequestEnvelope>;

/** A request that the platform answers. */
export const ControlRequest = Type.Union([
  StartAgent,
  Respond,
  FindRemote,
  FindKeyed,
  FindInput,
  SubmitRemote,
  EndRemote,
  RunRequest,
  Cancel,
  Ping,
  Promote,
  Export,
  Vote,
  Resolve,
  Decide,
  Report,
  ReadRequest,
  Erase,
]);
export type ControlRequest = Static<typeof ControlRequest>;
/** Options of an agent run in another process: attached to the connection, or remote. */
export type ControlAgentOptions = Static<typeof StartAgent>['options'];

export const EndingResult = Type.Object(
  { run_id: RunId, state: OneOf(TERMINAL_STATES), reason: Type.String({ maxLength: 200 }) },
  closed,
);
/** `ending` is set if the run has already ended: policy denied the agent, or this step was its last. */
export const StartAgentResult = Type.Object(
  { run_id: RunId, root_run_id: RunId, correlation_id: Type.String(), ending: Nullable(EndingResult) },
  closed,
);
/** The same for a promotion or export, with the request that people must approve first. */
export const StartHighRiskResult = Type.Object({ ...StartAgentResult.properties, digest: Nullable(Sha256) }, closed);
const VoteRule = Type.String({ maxLength: 120 });
const Reminder = Type.Optional(Type.Literal(true));
/** The result of a ballot, per digest. */
export const VoteResult = Type.Object(
  {
    results: Type.Array(
      Type.Object({ digest: Sha256, counted: Type.Boolean(), rule_id: VoteRule, reminder: Reminder }, closed),
    ),
  },
  closed,
);
export const RespondResult = Type.Object({ response: Type.String(), ending: Nullable(EndingResult) }, closed);
export const FindRemoteResult = Type.Object(
  {
    found: Nullable(
      Type.Object(
        {
          run_id: RunId,
          actor: Type.String(),
          role: Type.String(),
          lane: Nullable(Type.String()),
          case: Nullable(Type.String()),
          ended: Nullable(Type.Object({ state: OneOf(TERMINAL_STATES), reason: Type.String() }, closed)),
        },
        closed,
      ),
    ),
  },
  closed,
);
/** The run of a key, and how it ended. */
export const FindKeyedResult = Type.Object(
  { found: Nullable(Type.Object({ run_id: RunId, ending: Nullable(EndingResult) }, closed)) },
  closed,
);
export const FindInputResult = Type.Object(
  { found: Nullable(Type.Object({ run_id: RunId, sha256: Sha256 }, closed)) },
  closed,
);
/** The response as JSON text. */
export const SubmitRemoteResult = Type.Object({ response: Type.String() }, closed);
/** A recorded decision. */
export const DecideResult = Type.Object(
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
/** The request that a person may approve; null if they may not see it. */
export const ReadRequestResult = Type.Object(
  { request: Nullable(Type.Object({ action: Type.String(), args: RecordObject }, closed)) },
  closed,
);
/** What an erasure removed. */
export const EraseResult = Type.Object(
  {
    contents: Type.Integer({ minimum: 0 }),
    bytes: Type.Integer({ minimum: 0 }),
    archived: Type.Optional(Type.Literal(true)),
  },
  closed,
);
export const EmptyResult = Type.Object({}, closed);

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

/** The bytes of a payload, or null where the text is not their base64. */
export function decodePayload(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : null;
}
