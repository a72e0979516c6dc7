// The ledger's vocabulary. An entry is canonical JSON of {body, prev, seq, tree_id, type}; the body is nested, so
// that nothing in it can pass for an envelope field.

import Type, { type Static } from 'typebox';
import { ArtifactRef } from './artifact-ref.js';
import { AuditEvent } from './audit-event.js';
import { SandboxFacts } from './effect.js';
import { EXECUTION_CAUSES, FAULT_CODES, type ExecutionCause } from './fault.js';
import { OUTCOMES } from './phase.js';
import { Pin, PIN_PROBLEMS } from './pins.js';
import { EXPOSURES } from './response.js';
import { RUN_KINDS } from './run-state.js';
import {
  Actor,
  CaseId,
  closed,
  Identifier,
  Nullable,
  OneOf,
  PolicyVersions,
  RunId,
  Sha256,
  TaxonomyVersions,
  Timestamp,
} from './shapes.js';
import { StepTrace } from './step-trace.js';

export const INPUT_ID_CHARS_MAX = 160;
const InputId = Type.String({ minLength: 1, maxLength: INPUT_ID_CHARS_MAX });
const envelope = { input_id: InputId, time: Timestamp };
const Reason = Type.String({ maxLength: 160 });

const PolicyPin = Type.Union([
  Type.Object({ ...Pin.properties, artifact: ArtifactRef }, closed),
  Type.Object({ problem: OneOf(PIN_PROBLEMS), artifact: ArtifactRef }, closed),
]);

/** The first input of every tree: everything that its runs inherit, and the policy bytes they are judged by (D1). */
export const OpenInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('open'),
    run_id: RunId,
    correlation_id: Identifier,
    case_id: Nullable(CaseId),
    taxonomy_versions: Nullable(TaxonomyVersions),
    scope: Type.Record(Type.String({ maxLength: 120 }), Type.String({ maxLength: 400 })),
    policies: Type.Object({ lanes: PolicyPin, roles: PolicyPin, actions: PolicyPin }, closed),
    machines: ArtifactRef,
  },
  closed,
);
export type OpenInput = Static<typeof OpenInput>;

/** D3: an attached agent dies with its caller; a remote one lives on and ends by its idle timer. */
export const AGENT_LINKS = ['attached', 'remote'] as const;
export type AgentLink = (typeof AGENT_LINKS)[number];

export const StartAgentInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('start_agent'),
    /** The orchestrator run that shall be the parent. */
    run_id: RunId,
    actor: Actor,
    role_id: Identifier,
    lane_id: Identifier,
    /** The effective exposure: the policy's, or narrower where the caller asked for it (D6). */
    exposure: OneOf(EXPOSURES),
    link: OneOf(AGENT_LINKS),
    /** Milliseconds without a proposal after which a remote agent is cancelled; null for an attached one. */
    idle_ms: Nullable(Type.Integer({ minimum: 1 })),
  },
  closed,
);
export type StartAgentInput = Static<typeof StartAgentInput>;

/** What the store remembers of a proposal id inside one root run (C19). */
export const SeenProposal = Type.Object(
  {
    step_index: Type.Integer({ minimum: 1 }),
    run_id: RunId,
    payload_sha256: Sha256,
    /** How that step ended; null while it is still under way. */
    outcome: Nullable(OneOf(OUTCOMES)),
    error_code: Nullable(OneOf(FAULT_CODES)),
    /** Its response, as an artifact that this input brings; null where it is not to be given again. */
    response: Nullable(ArtifactRef),
  },
  closed,
);
export type SeenProposal = Static<typeof SeenProposal>;

export const ProposalInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('proposal'),
    run_id: RunId,
    payload: ArtifactRef,
    seen: Nullable(SeenProposal),
  },
  closed,
);
export type ProposalInput = Static<typeof ProposalInput>;

export const FactsInput = Type.Object(
  { ...envelope, kind: Type.Literal('facts'), run_id: RunId, facts: SandboxFacts },
  closed,
);
export type FactsInput = Static<typeof FactsInput>;

export const ResultInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('result'),
    /** The mediated run whose command this answers. */
    run_id: RunId,
    status: OneOf(['done', 'failed', 'unknown']),
    cause: Nullable(OneOf(Object.keys(EXECUTION_CAUSES) as readonly ExecutionCause[])),
    result: Nullable(ArtifactRef),
    /** D8: true when the outcome was found out after a crash and not reported by the executor. */
    settled: Type.Boolean(),
  },
  closed,
);
export type ResultInput = Static<typeof ResultInput>;

/** The caller has no more proposals: the agent run is completed as `end_of_input` (D5). */
export const EndInput = Type.Object({ ...envelope, kind: Type.Literal('end'), run_id: RunId }, closed);
export const CancelInput = Type.Object(
  { ...envelope, kind: Type.Literal('cancel'), run_id: RunId, reason: Reason },
  closed,
);
/** D3: the process that an attached agent belonged to is gone. */
export const InterruptInput = Type.Object({ ...envelope, kind: Type.Literal('interrupt'), run_id: RunId }, closed);
export const WakeInput = Type.Object({ ...envelope, kind: Type.Literal('wake'), run_id: RunId }, closed);
export const INPUT_SCHEMAS = {
  open: OpenInput,
  start_agent: StartAgentInput,
  proposal: ProposalInput,
  facts: FactsInput,
  result: ResultInput,
  end: EndInput,
  cancel: CancelInput,
  interrupt: InterruptInput,
  wake: WakeInput,
} as const;
export type InputKind = keyof typeof INPUT_SCHEMAS;

export const RecordedInput = Type.Union([
  OpenInput,
  StartAgentInput,
  ProposalInput,
  FactsInput,
  ResultInput,
  EndInput,
  CancelInput,
  InterruptInput,
  WakeInput,
]);
export type RecordedInput = Static<typeof RecordedInput>;

/** The birth of a run: its context. Everything later in its life is an audit event. */
export const RunCreated = Type.Object(
  {
    run_id: RunId,
    run_kind: OneOf(RUN_KINDS),
    root_run_id: RunId,
    parent_run_id: Nullable(RunId),
    correlation_id: Identifier,
    contract_version: Type.Literal('v1'),
    policy_versions: PolicyVersions,
    taxonomy_versions: Nullable(TaxonomyVersions),
    case_id: Nullable(CaseId),
    actor: Actor,
    role_id: Identifier,
    lane_id: Nullable(Identifier),
    scope: Type.Record(Type.String({ maxLength: 120 }), Type.String({ maxLength: 400 })),
    created_at_utc: Timestamp,
    /** What this run was asked to do: the tool or table, and the hash of the canonical request (S4-60). */
    request: Nullable(Type.Object({ name: Type.String({ maxLength: 200 }), hash_sha256: Sha256 }, closed)),
    /** Of agent runs only. */
    exposure: Nullable(OneOf(EXPOSURES)),
    link: Nullable(OneOf(AGENT_LINKS)),
  },
  closed,
);
export type RunCreated = Static<typeof RunCreated>;

export const ENTRY_BODIES = {
  input: RecordedInput,
  run_created: RunCreated,
  audit_event: AuditEvent,
  step_trace: StepTrace,
} as const;
export type EntryType = keyof typeof ENTRY_BODIES;
export const ENTRY_TYPES = Object.keys(ENTRY_BODIES) as readonly EntryType[];
export type EntryBody<T extends EntryType> = Static<(typeof ENTRY_BODIES)[T]>;

/** The `prev` of a tree's first entry. */
export const NO_PREV = '0'.repeat(64);

export type Entry = {
  readonly [T in EntryType]: {
    readonly type: T;
    readonly tree_id: string;
    /** From 0 in every tree, without a gap. */
    readonly seq: number;
    /** Leaf hash of the tree's previous entry. */
    readonly prev: string;
    readonly body: EntryBody<T>;
  };
}[EntryType];

/** An entry with the exact text that is stored and hashed. */
export interface SealedEntry {
  readonly entry: Entry;
  /** Canonical JSON of `entry`. */
  readonly text: string;
  /** RFC 6962 leaf hash: SHA-256(0x00 || text). */
  readonly leaf_hash: string;
}

/** An accepted proposal id; unique per root run (C19). `proposal_id` is lower case. */
export interface ProposalMark {
  readonly root_run_id: string;
  readonly proposal_id: string;
  readonly run_id: string;
  readonly step_index: number;
  readonly payload_sha256: string;
  /** Where the proposal's input stands in its tree: its trace is a few entries further on. */
  readonly seq: number;
}
