// The inputs of the kernel, as the ledger records them: a closed vocabulary, each with its time and its facts.

import Type, { type Static, type TSchema } from 'typebox';
import { ApprovalBallot } from './approval.js';
import { ArtifactRef, artifactRef, type Artifact } from '../artifact-ref.js';
import { BudgetLimits } from './budget.js';
import { Label } from '../policy/labels.js';
import { OverlayFact } from '../policy/overlay.js';
import { namedActorProperties } from '../person.js';
import { EXPOSURES } from './response.js';
import { COUNTERS_MAX, CounterFact } from './counter-fact.js';
import { DECISION_ANSWERS_MAX, DecisionFact } from '../policy/decision-points.js';
import { SandboxAmount, SandboxFacts } from './effect.js';
import { EXECUTION_CAUSES, type ExecutionCause, FAULT_CODES } from '../fault.js';
import { ReportOrigin } from './report-origin.js';
import {
  Actor,
  CaseId,
  closed,
  Identifier,
  Nullable,
  OneOf,
  RunId,
  Sha256,
  TaxonomyVersions,
  Timestamp,
} from '../shapes.js';
import { lostEntries } from '../evidence/lost-entries.js';
import { featureInputKind, missingFeatureError, type RecordedByFeature } from './feature-vocabulary.js';
import { optionalValues, Pin, PIN_PROBLEMS } from '../policy/pins.js';
import { OUTCOMES } from './phase.js';

/** The key that signs the log. The entry follows the key history, which counts. */
const LedgerKeyRotation = Type.Object(
  {
    purpose: Type.Literal('ledger'),
    /** The number of rotations of this key, this one included. */
    number: Type.Integer({ minimum: 1, maximum: 9_999 }),
    /** Both public keys: `name+hash+base64`. */
    old_key: Type.String({ minLength: 1, maxLength: 400 }),
    new_key: Type.String({ minLength: 1, maxLength: 400 }),
    /** The note that both keys have signed (src/core/ledger/proof/key-history.ts). */
    note: Type.String({ minLength: 1, maxLength: 2_048 }),
  },
  closed,
);

/** The key that encrypts the contents of a case. The entry follows the note of the replacement, which counts. */
const CaseKeyRotation = Type.Object(
  {
    purpose: Type.Literal('case'),
    case_id: CaseId,
    /** The number of the replaced key. The next number replaces it. */
    key_no: Type.Integer({ minimum: 1, maximum: 9_999 }),
    /** The contents that the case had then. */
    contents: Type.Integer({ minimum: 0 }),
  },
  closed,
);

const PolicyPin = Type.Union([
  Type.Object({ ...Pin.properties, artifact: ArtifactRef }, closed),
  Type.Object({ problem: OneOf(PIN_PROBLEMS), artifact: ArtifactRef }, closed),
]);

/** The policy files by which the runs of a tree are judged (D1). */
const PinnedPolicies = Type.Object(
  {
    lanes: PolicyPin,
    roles: PolicyPin,
    actions: PolicyPin,
    conditions: Type.Optional(PolicyPin),
    counters: Type.Optional(PolicyPin),
  },
  closed,
);

/** What the store knows of a proposal id within one root run (C19). */
export const SeenProposal = Type.Object(
  {
    step_index: Type.Integer({ minimum: 1 }),
    run_id: RunId,
    payload_sha256: Sha256,
    /** The outcome of that step; null while it is in flight. */
    outcome: Nullable(OneOf(OUTCOMES)),
    error_code: Nullable(OneOf(FAULT_CODES)),
    /** Its response, as an artifact that comes with this input; null if it must not be returned again. */
    response: Nullable(ArtifactRef),
  },
  closed,
);
export type SeenProposal = Static<typeof SeenProposal>;

export const INPUT_ID_CHARS_MAX = 160;
const InputId = Type.String({ minLength: 1, maxLength: INPUT_ID_CHARS_MAX });
/** The fields of every input. */
export const envelope = { input_id: InputId, time: Timestamp };
const Reason = Type.String({ maxLength: 160 });
/** Free text that belongs to the input: an artifact of the case, erased with it (C90). */
const noteProperties = { note_ref: Type.Optional(ArtifactRef) };

/** The first input of a run tree: what its runs inherit, and the policy bytes that judge them (D1). */
export const OpenInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('open'),
    run_id: RunId,
    correlation_id: Identifier,
    case_id: Nullable(CaseId),
    taxonomy_versions: Nullable(TaxonomyVersions),
    scope: Type.Record(Type.String({ maxLength: 120 }), Type.String({ maxLength: 400 })),
    policies: PinnedPolicies,
    machines: ArtifactRef,
    /** Scope values that are not identifiers; the scope holds their hashes (C90). */
    notes: Type.Optional(Type.Array(ArtifactRef, { maxItems: 32 })),
  },
  closed,
);
export type OpenInput = Static<typeof OpenInput>;

/** D3: an attached agent ends with its caller; a remote one survives it and ends by its idle timeout. */
export const AGENT_LINKS = ['attached', 'remote'] as const;
export type AgentLink = (typeof AGENT_LINKS)[number];

export const StartAgentInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('start_agent'),
    /** The parent, an orchestrator run. */
    run_id: RunId,
    ...namedActorProperties,
    role_id: Identifier,
    lane_id: Identifier,
    /** The effective exposure: the policy's, or the narrower one that the caller asked for (D6). */
    exposure: OneOf(EXPOSURES),
    link: OneOf(AGENT_LINKS),
    /** Milliseconds without a proposal after which a remote agent is cancelled; null for an attached one. */
    idle_ms: Nullable(Type.Integer({ minimum: 1 })),
    /** The agent's budget, if its caller gives it less than the tree has. */
    budget: Nullable(BudgetLimits),
    /** Prompts and configurations at the start of the agent (S4-59). */
    given: Type.Optional(Type.Array(ArtifactRef, { maxItems: 16 })),
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type StartAgentInput = Static<typeof StartAgentInput>;

export const ProposalInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('proposal'),
    run_id: RunId,
    payload: ArtifactRef,
    /**
     * C80: the first bytes of a payload over the limit, stored instead of the payload. Absent: the payload is whole.
     */
    prefix: Type.Optional(ArtifactRef),
    seen: Nullable(SeenProposal),
    /** Tokens that the agent has used since its last proposal, as its caller reports. */
    tokens: Nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    /** The prompt of this proposal, if the caller records it (S4-59). */
    prompt: Type.Optional(ArtifactRef),
    /** The emergency overlay when the proposal arrived (D1). */
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type ProposalInput = Static<typeof ProposalInput>;

export const FactsInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('facts'),
    run_id: RunId,
    facts: SandboxFacts,
    /** C82: what earlier decisions of the case may still add to its usage. Absent: nothing. */
    reserved: Type.Optional(SandboxAmount),
    /** The counters on which the decision depends, or that count the step. Absent: none. */
    counters: Type.Optional(Type.Array(CounterFact, { minItems: 1, maxItems: COUNTERS_MAX })),
    /** What decision points answered. Absent: none was asked. */
    decisions: Type.Optional(Type.Array(DecisionFact, { minItems: 1, maxItems: DECISION_ANSWERS_MAX })),
  },
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
    /** C94: the words of a tool about its failure. Absent unless the exposure of the run is `explained`. */
    explanation: Type.Optional(ArtifactRef),
    /** D8: true if the outcome was found out after a crash and not reported by the executor. */
    settled: Type.Boolean(),
  },
  closed,
);
export type ResultInput = Static<typeof ResultInput>;

/**
 * What the caller of an agent says of an action that it has executed itself, after the decision (U-08). Nothing proves
 * it.
 */
export const ReportInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('report'),
    /** The mediated run of the action. */
    run_id: RunId,
    status: OneOf(['done', 'failed', 'unknown']),
    /** A JSON object; null if the caller reports none. */
    result: Nullable(ArtifactRef),
    ...ReportOrigin.properties,
  },
  closed,
);
export type ReportInput = Static<typeof ReportInput>;

/** The caller has no more proposals: the agent run is completed as `end_of_input` (D5). */
export const EndInput = Type.Object({ ...envelope, kind: Type.Literal('end'), run_id: RunId }, closed);
export const CancelInput = Type.Object(
  { ...envelope, kind: Type.Literal('cancel'), run_id: RunId, reason: Reason, ...noteProperties },
  closed,
);
/** D3: the process that an attached agent belonged to is gone. */
export const InterruptInput = Type.Object({ ...envelope, kind: Type.Literal('interrupt'), run_id: RunId }, closed);
export const WakeInput = Type.Object(
  { ...envelope, kind: Type.Literal('wake'), run_id: RunId, overlay: Nullable(OverlayFact) },
  closed,
);

/** The two kinds of runs that people start (S4 §10). */
export const HIGH_RISK_KINDS = ['promotion', 'export'] as const;
export type HighRiskKind = (typeof HIGH_RISK_KINDS)[number];
/** The kinds of runs that people start: the acts of operators are `tool_gateway` runs. */
const STARTED_KINDS = [...HIGH_RISK_KINDS, 'tool_gateway'] as const;

export const StartRunInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('start_run'),
    /** The parent, an orchestrator run. */
    run_id: RunId,
    run_kind: OneOf(STARTED_KINDS),
    ...namedActorProperties,
    role_id: Identifier,
    lane_id: Identifier,
    /** The request, as JSON `{action, args}`: an artifact that comes with this input. */
    request: ArtifactRef,
    /** The sources of the promotion or export. */
    inputs: Type.Array(ArtifactRef, { maxItems: 64 }),
    /** Facts that the platform has gathered about the records to be carried over. */
    facts: Type.Object(
      { artifact_flags: Type.Array(Type.String({ maxLength: 80 }), { maxItems: 64 }), label: Label },
      closed,
    ),
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type StartRunInput = Static<typeof StartRunInput>;

/** A person's answer to requests of one run (D7). */
export const VoteInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('vote'),
    /** The agent, promotion or export run that made the requests. */
    run_id: RunId,
    digests: ApprovalBallot.properties.digests,
    decision: ApprovalBallot.properties.decision,
    approver: ApprovalBallot.properties.approver,
    overlay: Nullable(OverlayFact),
  },
  closed,
);
export type VoteInput = Static<typeof VoteInput>;

/** D8: an operator has found out the outcome of an action whose outcome was unknown. */
export const ResolveInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('resolve'),
    /** The mediated run whose outcome is unknown. */
    run_id: RunId,
    outcome: OneOf(['done', 'not_executed']),
    actor: Actor,
    role_id: Identifier,
    /** Empty in every new input: the operator's words are in the note (C90). */
    note: Type.String({ maxLength: 400 }),
    ...noteProperties,
  },
  closed,
);
export type ResolveInput = Static<typeof ResolveInput>;

/** Records that a caller gets content of `run_id`: an artifact that came with its entry `entry`. */
export const AccessInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('access'),
    run_id: RunId,
    entry: Type.Integer({ minimum: 0 }),
    artifact_kind: Type.String({ minLength: 2, maxLength: 80 }),
    hash_sha256: Sha256,
    actor: Actor,
    role_id: Identifier,
  },
  closed,
);
export type AccessInput = Static<typeof AccessInput>;

/**
 * The ledger was restored from a backup or has lost entries in a failover, or an operator has acknowledged that.
 * Effects of the lost entries may have happened, so nothing is executed in between.
 */
export const RestoreInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('restore'),
    run_id: RunId,
    event: OneOf(['restored', 'acknowledged']),
    ...lostEntries,
    actor: Actor,
    role_id: Identifier,
  },
  closed,
);
export type RestoreInput = Static<typeof RestoreInput>;

/** A key was replaced. */
export const RotateKeyInput = Type.Object(
  {
    ...envelope,
    kind: Type.Literal('rotate_key'),
    run_id: RunId,
    rotation: Type.Union([LedgerKeyRotation, CaseKeyRotation]),
    actor: Actor,
    role_id: Identifier,
  },
  closed,
);
export type RotateKeyInput = Static<typeof RotateKeyInput>;

/** The inputs of core. */
type CoreInput =
  | OpenInput
  | StartAgentInput
  | ProposalInput
  | FactsInput
  | ResultInput
  | Static<typeof EndInput>
  | Static<typeof CancelInput>
  | Static<typeof InterruptInput>
  | Static<typeof WakeInput>
  | StartRunInput
  | VoteInput
  | ResolveInput
  | AccessInput
  | RestoreInput
  | ReportInput
  | RotateKeyInput;
/** The inputs of features by their kinds: each feature merges its own into this interface. */
export interface FeatureInputs {}

/** An input as the ledger records it. Folding the inputs of a tree gives its state. */
export type RecordedInput = CoreInput | FeatureInputs[keyof FeatureInputs];
export type InputKind = RecordedInput['kind'];

/** The schema of each kind. Their types are those above: the declarations of the package would repeat them all here. */
export const INPUT_SCHEMAS: { readonly [Kind in CoreInput['kind']]: TSchema } = {
  open: OpenInput,
  start_agent: StartAgentInput,
  proposal: ProposalInput,
  facts: FactsInput,
  result: ResultInput,
  end: EndInput,
  cancel: CancelInput,
  interrupt: InterruptInput,
  wake: WakeInput,
  start_run: StartRunInput,
  vote: VoteInput,
  resolve: ResolveInput,
  access: AccessInput,
  restore: RestoreInput,
  report: ReportInput,
  rotate_key: RotateKeyInput,
};

/** The schema of an input of this kind: of core, or of a feature that is installed. */
export const inputSchema = (kind: string): TSchema | null =>
  Object.hasOwn(INPUT_SCHEMAS, kind)
    ? INPUT_SCHEMAS[kind as CoreInput['kind']]
    : (featureInputKind(kind)?.schema ?? null);

/** The inputs that open a tree. Each pins the policies of its tree; no other input has policies. */
export type OpeningInput = OpenInput | Extract<RecordedInput, { readonly policies: object }>;

/** Whether an input opens a tree. It is then the first entry of that tree and names its case and policies. */
export const isOpeningInput = <T extends { readonly kind: InputKind }>(
  input: T,
): input is Extract<T, { readonly kind: OpeningInput['kind'] }> => 'policies' in input;

/** The references of an input whose content comes with the input, in the order of its materials. */
export function referencesOf(input: RecordedInput): readonly ArtifactRef[] {
  switch (input.kind) {
    case 'open':
      return [...pinReferences(input), ...(input.notes ?? [])];
    case 'end':
    case 'interrupt':
    case 'wake':
    case 'facts':
    case 'vote':
    case 'access':
    case 'restore':
    case 'rotate_key':
      return [];
    case 'start_agent':
      return input.given ?? [];
    case 'proposal':
      return [storedPayloadRef(input), ...optionalRef(input.prompt), ...optionalRef(input.seen?.response)];
    case 'start_run':
      return [input.request];
    case 'report':
      return optionalRef(input.result);
    case 'result':
      return [...optionalRef(input.result), ...optionalRef(input.explanation)];
    case 'cancel':
    case 'resolve':
      return optionalRef(input.note_ref);
    default:
      return featureReferences(input);
  }
}

function featureReferences(input: RecordedInput & RecordedByFeature): readonly ArtifactRef[] {
  const kind = featureInputKind(input.kind);
  if (kind === null) throw missingFeatureError(input.feature);
  const own = kind.references(input);
  return isOpeningInput(input) ? [...pinReferences(input), ...own, ...(input.notes ?? [])] : own;
}

/** References to the policies and machine definitions, which are the first materials of an opening input. */
export const pinReferences = ({
  policies: { lanes, roles, actions, ...optional },
  machines,
}: OpeningInput): readonly ArtifactRef[] => [
  lanes.artifact,
  roles.artifact,
  actions.artifact,
  machines,
  ...optionalValues(optional).map(({ artifact }) => artifact),
];

const optionalRef = (ref: ArtifactRef | null | undefined): readonly ArtifactRef[] => (ref == null ? [] : [ref]);

// C80: a payload over the limit of its policy is rejected whatever it contains, and storing it whole would let an agent
// fill the disk with rejected payloads. The ledger stores its hash, its length and its first bytes.

/** Number of bytes that are stored of a payload over the limit. */
export const PAYLOAD_PREFIX_BYTES = 1_024;

/** The prefix of a payload, as the artifact that is stored in its place. */
export const createPayloadPrefix = ({ case_id, bytes }: Artifact): Artifact => ({
  kind: 'raw_payload_prefix',
  case_id,
  bytes: bytes.slice(0, PAYLOAD_PREFIX_BYTES),
});

/** The payload artifact of a proposal input: the whole payload, or its prefix. */
const storedPayloadRef = ({ payload, prefix }: ProposalInput): ArtifactRef => prefix ?? payload;

/**
 * Whether the prefix of an input is valid under `limit`: only a payload over the limit has one, of the length that the
 * rule defines.
 */
export function isPrefixValid({ payload, prefix }: ProposalInput, limit: number): boolean {
  if (prefix === undefined) return true;
  const { artifact_kind, byte_size, case_id } = prefix;
  return (
    artifact_kind === 'raw_payload_prefix' &&
    case_id === payload.case_id &&
    (payload.byte_size ?? 0) > limit &&
    byte_size === Math.min(PAYLOAD_PREFIX_BYTES, payload.byte_size ?? 0)
  );
}

/** The input's `prefix` member: absent if the payload is stored whole. */
export const prefixMember = (prefix: Artifact | null): { readonly prefix?: ArtifactRef } =>
  prefix === null ? {} : { prefix: artifactRef(prefix) };
