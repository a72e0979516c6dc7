// What is said on the control socket (D13): one JSON object a line. Every request has an id and gets one answer with
// the same id; answers may come in another order than their requests. Whoever can connect may do what the owner of the
// home may, yet nothing that comes over the socket is believed before it has been read strictly and held against a
// schema.

import { isUtf8 } from 'node:buffer';
import Type, { type Static, type TSchema } from 'typebox';
import { ApprovalBallot } from '../../contract/run/approval.js';
import { BudgetLimits } from '../../contract/run/budget.js';
import { AGENT_LINKS, ResolveInput } from '../../contract/run/entry.js';
import { ExportBundle } from '../../contract/evidence/export-bundle.js';
import type { JsonObject } from '../../contract/json.js';
import { CONFIDENTIALITY_FLAGS } from '../../contract/policy/labels.js';
import { WRITE_MODES } from '../../contract/policy/lanes.js';
import { EXPOSURES } from '../../contract/run/response.js';
import { TERMINAL_STATES } from '../../contract/run/run-state.js';
import { closed, Nullable, OneOf, RunId, Sha256, TaxonomyVersions } from '../../contract/shapes.js';
import { isConforming } from '../../contract/validators.js';
import { scanJson } from '../../step/json-scanner.js';
import { WireError } from './control-errors.js';
import { PAYLOAD_BYTES_CEILING } from '../agents/payload-bytes.js';
import { SessionRequest } from '../sessions/session-request.js';

/** A request holds one payload in base64, and little else. */
export const REQUEST_BYTES_MAX = Math.ceil(PAYLOAD_BYTES_CEILING / 3) * 4 + 65_536;
/** An answer holds one response, whose content may have been escaped twice. */
export const RESPONSE_BYTES_MAX = 4 * PAYLOAD_BYTES_CEILING;
/** A record may hold what a payload may. */
const DEPTH_MAX = 40;

const Id = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });
const Text = Type.String({ maxLength: 400 });
/** The contract folder that the caller asked for, which must be the one in use; null where it did not ask. */
const Contract = Nullable(Type.String({ maxLength: 8_192 }));
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
        taxonomy: Type.Optional(TaxonomyVersions),
        exposure: Type.Optional(OneOf(EXPOSURES)),
        link: Type.Optional(OneOf(AGENT_LINKS)),
        idleMs: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
        budget: Type.Optional(BudgetLimits),
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
    /** The raw payload in base64: its bytes as they are. */
    payload: Type.String(),
    input_id: Type.Optional(Type.String({ minLength: 1, maxLength: 160 })),
  },
  closed,
);
/** Remote runs are nobody's: whoever may connect reaches them by their ids. */
const FindRemote = Type.Object({ id: Id, op: Type.Literal('find_remote'), run_id: RunId }, closed);
const SubmitRemote = Type.Object({ ...Respond.properties, op: Type.Literal('submit_remote') }, closed);
const EndRemote = Type.Object({ id: Id, op: Type.Literal('end_remote'), run_id: RunId }, closed);
const RunRequest = Type.Object({ id: Id, op: OneOf(['end', 'interrupt', 'finished']), run_id: RunId }, closed);
const Cancel = Type.Object({ id: Id, op: Type.Literal('cancel'), run_id: RunId, reason: Type.String() }, closed);
const Ping = Type.Object({ id: Id, op: Type.Literal('ping') }, closed);

/** Who starts a promotion or an export, and where. */
const starterFields = {
  actor: Text,
  role: Text,
  case: Text,
  lane: Type.Optional(Text),
  scope: Scope,
  correlation: Type.Optional(Text),
};
/** What a record must be is in the schema of its target, which only the other process has. */
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
        /** Absolute: the two processes need not stand in one folder. */
        destination: Type.String({ pattern: '^/', maxLength: 4_096 }),
        format: Type.Optional(OneOf(['folder', 'zip'])),
      },
      closed,
    ),
  },
  closed,
);
/** A ballot and a resolution are judged by the policy that the run's own tree has pinned. */
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

/** A person sees what a run asks of them; the reading is recorded. */
const ReadRequest = Type.Object(
  {
    id: Id,
    op: Type.Literal('read_request'),
    reading: Type.Object({ run: RunId, digest: Sha256, actor: Text, role: Text }, closed),
  },
  closed,
);

const Erase = Type.Object(
  { id: Id, op: Type.Literal('erase'), erasure: Type.Object({ case: Text, actor: Text }, closed) },
  closed,
);

/** A session's policy is that of its tree; the contract matters where a spec is judged by it. */
const SessionEnvelope = Type.Object(
  { id: Id, op: Type.Literal('session'), contract: Contract, question: SessionRequest },
  closed,
);

export const ControlRequest = Type.Union([
  StartAgent,
  Respond,
  FindRemote,
  SubmitRemote,
  EndRemote,
  RunRequest,
  Cancel,
  Ping,
  Promote,
  Export,
  Vote,
  Resolve,
  ReadRequest,
  Erase,
  SessionEnvelope,
]);
export type ControlRequest = Static<typeof ControlRequest>;
/** The options of an agent that works through another process: attached to the connection, or remote. */
export type ControlAgentOptions = Static<typeof StartAgent>['options'];

export const EndingResult = Type.Object(
  { run_id: RunId, state: OneOf(TERMINAL_STATES), reason: Type.String({ maxLength: 200 }) },
  closed,
);
/** `ending` says that the run has ended already: an agent that policy denied, a step that was its last. */
export const StartAgentResult = Type.Object(
  { run_id: RunId, root_run_id: RunId, correlation_id: Type.String(), ending: Nullable(EndingResult) },
  closed,
);
/** The same of a promotion or export, with what people have to approve first. */
export const StartHighRiskResult = Type.Object({ ...StartAgentResult.properties, digest: Nullable(Sha256) }, closed);
/** What became of a ballot, digest by digest. */
export const VoteResult = Type.Object(
  {
    results: Type.Array(
      Type.Object({ digest: Sha256, counted: Type.Boolean(), rule_id: Type.String({ maxLength: 120 }) }, closed),
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
/** The response as JSON text. */
export const SubmitRemoteResult = Type.Object({ response: Type.String() }, closed);
/** What a person is asked to approve; null where they may not see it. */
export const ReadRequestResult = Type.Object(
  { request: Nullable(Type.Object({ action: Type.String(), args: RecordObject }, closed)) },
  closed,
);
/** What an erasure has taken away. */
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
  /** The id is null where the request could not be read; then the connection is closed. */
  Type.Object({ id: Nullable(Id), ok: Type.Literal(false), error: WireError }, closed),
]);
export type ControlResponse = Static<typeof ControlResponse>;

/** The message in a line, or null when it is none. */
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
