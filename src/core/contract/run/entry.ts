// The ledger's vocabulary. An entry is canonical JSON of {body, prev, seq, tree_id, type}. The body is nested, so
// nothing in it can be mistaken for a field of the envelope.

import Type, { type Static, type TSchema } from 'typebox';
import { AuditEvent } from './audit-event.js';
import { Limits } from './budget.js';
import { Label } from '../policy/labels.js';
import { EXPOSURES } from './response.js';
import { RUN_KINDS } from './run-context.js';
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
} from '../shapes.js';
import { StepTrace } from './step-trace.js';
import { featureEntrySchema, featureEntryTypes } from './feature-vocabulary.js';
import { AGENT_LINKS, INPUT_SCHEMAS, type RecordedInput } from './input.js';

export {
  AccessInput,
  RestoreInput,
  RotateKeyInput,
  AGENT_LINKS,
  CancelInput,
  EndInput,
  FactsInput,
  HIGH_RISK_KINDS,
  INPUT_ID_CHARS_MAX,
  INPUT_SCHEMAS,
  InterruptInput,
  OpenInput,
  ProposalInput,
  ReportInput,
  ResolveInput,
  ResultInput,
  SeenProposal,
  StartAgentInput,
  StartRunInput,
  VoteInput,
  WakeInput,
  type AgentLink,
  type HighRiskKind,
  inputSchema,
  type FeatureInputs,
  type InputKind,
  type RecordedInput,
} from './input.js';
export { isOpeningInput, type OpeningInput } from './input.js';

/** The creation of a run: its context. All later changes are audit events. */
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
    /** The request of this run: the tool or table, and the hash of the canonical request (S4-60). */
    request: Nullable(Type.Object({ name: Type.String({ maxLength: 200 }), hash_sha256: Sha256 }, closed)),
    /** Only for agent runs. */
    exposure: Nullable(OneOf(EXPOSURES)),
    link: Nullable(OneOf(AGENT_LINKS)),
    /** The budget of an agent run; null for other runs. */
    budget: Nullable(Limits),
    /** For mediated runs: the label of everything that their agent had read when they were created. */
    label: Nullable(Label),
    /** S4-66 to S4-69: the run that this one retries; null for a first attempt. */
    retry: Nullable(
      Type.Object(
        {
          count: Type.Integer({ minimum: 1 }),
          reason: Type.String({ maxLength: 80 }),
          /** The previous attempt; `parent_run_id` is the first one. */
          of: RunId,
          /** The run on whose behalf it acts, which started the first attempt too. */
          logical_parent_run_id: RunId,
        },
        closed,
      ),
    ),
    /** The caller of the agent executes the action and reports its outcome (U-08). Absent: the platform does. */
    executor: Type.Optional(Type.Literal('caller')),
  },
  closed,
);
export type RunCreated = Static<typeof RunCreated>;

/** The bodies of the entries of core, by type. */
interface CoreEntryBodies {
  readonly input: RecordedInput;
  readonly run_created: RunCreated;
  readonly audit_event: AuditEvent;
  readonly step_trace: StepTrace;
}
/** The bodies of the entries of features, by type: each feature merges its own into this interface. */
export interface FeatureEntries {}
/** The body of each type of entry. */
export type EntryBodies = CoreEntryBodies & FeatureEntries;
/** The types of entries: those of core, and those that features add. */
export type EntryType = keyof EntryBodies;
export type EntryBody<T extends EntryType> = EntryBodies[T];

const ENTRY_BODIES: { readonly [T in keyof CoreEntryBodies]: TSchema } = {
  input: Type.Union(Object.values(INPUT_SCHEMAS)),
  run_created: RunCreated,
  audit_event: AuditEvent,
  step_trace: StepTrace,
};

/** The schema of the body of an entry of this type: of core, or of a feature that is installed. */
export const entrySchema = (type: string): TSchema | null =>
  Object.hasOwn(ENTRY_BODIES, type) ? ENTRY_BODIES[type as keyof CoreEntryBodies] : featureEntrySchema(type);

/** The types of ledger entries: those of core, and of the features that are installed. */
export const entryTypes = (): readonly EntryType[] =>
  [...Object.keys(ENTRY_BODIES), ...featureEntryTypes()] as readonly EntryType[];

/** The `prev` of a tree's first entry. */
export const NO_PREV = '0'.repeat(64);

/** A ledger entry. Its canonical JSON is hashed, so it has exactly these keys. */
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
  /** The sequence number of the proposal's input in its tree; its trace follows a few entries later. */
  readonly seq: number;
}
