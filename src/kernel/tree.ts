// A run tree: live actors that take one input at a time and return a decision. It uses no clock, no randomness and no
// I/O, so folding the same inputs always gives the same entries, commands and replies.
//
// Invariants:
//   K1. Entries have the order in which the machines emitted them; the first is the input.
//   K2. Only inputs of the closed vocabulary reach an actor, and only the addressed actor: `xstate.*` cannot enter.
//   K3. An input that the addressed run cannot take changes no state and is recorded as refused (C50).
//   K4. A machine error is a bug: `decide` throws, and the caller must drop the tree and fold it again.

import type { AnyStateMachine } from 'xstate';
import type { Command, Emission, RunTermination } from '../../machines/emission.js';
import { stepId, type AgentEvent, type ProposeEvent } from '../../machines/agent.js';
import type { Artifact } from '../core/contract/artifact-ref.js';
import type { ApprovalBook, ApprovalBallot } from '../core/contract/run/approval.js';
import type {
  Effect,
  GatherRequest,
  SandboxRequest,
  GatheredFacts,
  SandboxFacts,
} from '../core/contract/run/effect.js';
import {
  isOpeningInput,
  type OpeningInput,
  type RecordedInput,
  type ResolveInput,
  type FactsInput,
  type ProposalInput,
  type ReportInput,
  type ResultInput,
  type StartRunInput,
  type VoteInput,
} from '../core/contract/run/entry.js';
import {
  missingFeature,
  missingFeatureError,
  type RecordedByFeature,
} from '../core/contract/run/feature-vocabulary.js';
import { type RunContext, childRunId } from '../core/contract/run/run-context.js';
import { isRecordedInput } from '../core/contract/validators.js';
import { InvariantError } from '../core/errors.js';
import { authorizeOrchestrator } from '../core/policy/authorize-run.js';
import type { Policy } from '../core/policy/policy.js';
import { resolvedEvent } from '../core/run/audit-events.js';
import { proposalKey } from '../core/step/check-phases.js';
import type { Actors, ActorInit, ActorState, PersistedActor } from './interpreter/actors.js';
import { DEFAULT_INTERPRETATION } from './interpreter/default-interpreter.js';
import { DecisionBuilder, rootContext, recordAccess, recordLedgerEvent, recordRefusal } from './decision-builder.js';
import type { Decision, Timer, TreeInput } from './decision.js';
import type { Interpretation } from './interpreter/interpreter.js';
import {
  definitionsOf,
  machinesFor,
  pinnedArtifacts,
  policyOf,
  requireApprovals,
  rootMachineFor,
} from './pinned-policy.js';
import { configurationOf } from '../../machines/run.js';
import { compileMachine, tableDrivenActors } from './interpreter/table-driven-actors.js';
import { featureOf, installedFeature, type TreeAccess, type TreeFeature, type TreePart } from './tree-feature.js';
import type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';
import type { StepMemory } from '../../machines/step-memory.js';
import type { StartRunEvent } from '../../machines/high-risk-run.js';
import type { ReportEvent } from '../../machines/caller-runs/caller-run.js';
import type { MediatedEvent, ResultEvent } from '../../machines/mediated.js';
import type { OrchestratorEvent } from '../../machines/orchestrator.js';
import type { StepEvent } from '../../machines/step.js';
import { toCancelReason } from '../core/contract/free-text.js';
import { isJsonObject } from '../core/contract/json.js';
import { attachText } from '../core/step/concluded-step.js';
import { isPrefixValid, createPayloadPrefix } from '../core/contract/run/input.js';

export type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';

/** One tree. `decide` advances it in place. Create it new, or with `restoreTree`. */
export class Tree {
  readonly tree_id: string;
  readonly #builder: DecisionBuilder;
  readonly #interpretation: Interpretation;
  #openInput: OpeningInput | null = null;
  /** The feature that opened the tree; null for a run tree. */
  #rootFeature: TreeFeature | null = null;
  /** The parts of the features that take part in this tree, by their names. */
  readonly #parts = new Map<string, TreePart>();
  #policy: Policy | null = null;
  #actors: Actors | null = null;
  #failure: unknown = null;

  constructor(tree_id: string, interpretation: Interpretation = DEFAULT_INTERPRETATION) {
    this.tree_id = tree_id;
    this.#interpretation = interpretation;
    this.#builder = new DecisionBuilder(tree_id);
  }

  /** The number of entries, and the hash of the last one. */
  get head(): { readonly seq: number; readonly prev: string } {
    return this.#builder.head;
  }

  /** Whether the root run has ended. Every later input is refused. */
  get hasEnded(): boolean {
    return this.#actors?.output !== undefined;
  }

  /** How the root run ended. @throws InvariantError while it has not */
  get ending(): Omit<RunTermination, 'run_id'> {
    const output = this.#actors?.output;
    if (output === undefined) throw new InvariantError(`run ${this.tree_id} has not ended`);
    return { state: output.state, reason: output.end.reason };
  }

  /** Commands without a result. */
  get pending(): readonly Command[] {
    return this.#builder.pending;
  }

  get timers(): readonly Timer[] {
    return this.#builder.timers;
  }

  /** The tree's policy; null until it is open. */
  get policy(): Policy | null {
    return this.#policy;
  }

  /** The orchestrator or agent run of this id, including ended runs; null if unknown. */
  run(run_id: string): KnownRun | null {
    return this.#builder.run(run_id);
  }

  /** The deduplication id of a payload, or null if it is not a proposal (C19). */
  proposalKey(payload: Uint8Array): string | null {
    return this.#policy === null ? null : proposalKey(payload, this.#policy);
  }

  /** Every orchestrator and agent run, in the order of creation. */
  get runs(): readonly KnownRun[] {
    return this.#builder.runs;
  }

  /** Whether this run or step can take inputs now. */
  isLive(run_id: string): boolean {
    return this.#actors?.isLive(run_id) === true;
  }

  /**
   * Decides one input. @returns what it caused; the caller must commit it before acting on it
   * @throws InvariantError if a machine fails, or, with the tree unchanged, if the input is invalid
   * @throws PolicyError POLICY_INVALID if an `open` brings a policy that cannot be parsed
   */
  decide(input: TreeInput): Decision {
    const { recorded } = input;
    if (this.#failure !== null) throw new InvariantError('a machine failed before', this.#failure);
    if (input.checked !== true && !isRecordedInput(recorded))
      throw new InvariantError('the input does not match the schema of recorded inputs');
    this.#builder.begin(recorded, input.materials);
    const refused = !this.#apply(input);
    if (refused) recordRefusal(this.#builder, this.tree_id, recorded, this.#ownContext);
    return this.#builder.finish(refused);
  }

  snapshot(): TreeSnapshot {
    if (this.#actors === null || this.#openInput === null)
      throw new InvariantError('a tree that is not open has no snapshot');
    return {
      tree_id: this.tree_id,
      ...this.head,
      open: this.#openInput,
      runs: this.runs,
      pending: this.pending,
      timers: this.timers,
      unsettled: this.#builder.unsettled,
      mediated: this.#builder.mediated,
      ...this.#partSnapshots(),
      machine: this.#actors.getPersistedSnapshot(),
    };
  }

  /** Restores a snapshot. `policies` are the artifacts of the tree's `open`. */
  restore(snapshot: TreeSnapshot, policies: readonly Artifact[]): void {
    this.#setOpening(snapshot.open, policies);
    this.#start(rootContext(snapshot.open), { persisted: snapshot.machine as PersistedActor });
    this.#builder.restore(snapshot);
    for (const [name, stored] of Object.entries(snapshot.parts ?? {}))
      this.#partOf(requireFeature(name)).restore?.(stored);
  }

  /** Stops the actors and releases them from memory. The tree stays readable and decides nothing more. */
  stop(): void {
    this.#actors?.stop();
  }

  #apply(input: TreeInput): boolean {
    const { recorded } = input;
    if (isOpeningInput(recorded)) return this.#open(recorded, input.materials);
    const feature = 'feature' in recorded ? featureOf(recorded) : null;
    if (feature !== null) return this.#partOf(feature).decide(recorded as RecordedByFeature, input.materials);
    if (recorded.kind === 'resolve') return this.#resolve(recorded);
    if (recorded.kind === 'restore' || recorded.kind === 'rotate_key')
      return recordLedgerEvent(this.#builder, this.tree_id, recorded);
    if (recorded.kind === 'access') return recordAccess(this.#builder, this.tree_id, recorded, this.#ownContext);
    if (this.#isReserved(recorded)) return false;
    const address = recorded.kind === 'facts' ? stepId(recorded.run_id) : recorded.run_id;
    if (!this.isLive(address)) return false;
    if (recorded.kind === 'vote') requireApprovals();
    const event = toMachineEvent(input, this.#policy);
    const pendingCommand =
      recorded.kind === 'facts' || recorded.kind === 'result' ? this.#builder.pendingCommand(recorded.run_id) : null;
    // This must precede the event, which ends the run.
    if (recorded.kind === 'result' && pendingCommand?.kind === 'perform') {
      if (recorded.status === 'unknown') this.#builder.noteUnknown(pendingCommand);
      if (recorded.status === 'done') this.#noteDone(pendingCommand.effect);
    }
    const isAccepted = this.#runGuarded(() => this.#actors?.send(address, event) === true);
    if (isAccepted && pendingCommand !== null) this.#builder.removePending(pendingCommand);
    return isAccepted;
  }

  /** D8: the run's own state does not change. If its agent is still live, it may make the same request again. */
  #resolve(recorded: ResolveInput): boolean {
    const run = this.#builder.settle(recorded.run_id);
    if (run === null) return false;
    this.#builder.record({ type: 'audit_event', body: resolvedEvent(run.context, recorded) });
    const event = { type: 'RESOLVED', request_hash: run.request_hash };
    for (const { run_id, run_kind } of this.runs.map(({ context }) => context)) {
      if (run_kind === 'agent' && recorded.run_id.startsWith(`${run_id}.`) && this.isLive(run_id))
        this.#runGuarded(() => this.#actors?.send(run_id, event));
    }
    return true;
  }

  /** Runs whose effect has an unknown outcome. */
  get unsettled(): readonly UnsettledRun[] {
    return this.#builder.unsettled;
  }

  /** The runs that people have started and that have not ended: promotions, exports and acts of operators. */
  get pendingHighRiskRuns(): readonly RunContext[] {
    return this.#builder.mediated.filter(isStartedByPerson);
  }

  /** The approval requests of a live run, with their ballots (D7); null if the run has none. */
  approvals(run_id: string): ApprovalBook | null {
    return readApprovalBook(this.actorState(run_id)?.memory);
  }

  /** State and context of a live run or step; null if it is not live. */
  actorState(id: string): ActorState | null {
    return this.#actors?.stateOf(id) ?? null;
  }

  /** The case of the tree. */
  get case_id(): string | null {
    return this.#openInput?.case_id ?? null;
  }

  /** The input that opened the tree; null until it is open. */
  get opening(): OpeningInput | null {
    return this.#openInput;
  }

  /** The feature that opened the tree; null for a run tree. */
  get rootFeature(): TreeFeature | null {
    return this.#rootFeature;
  }

  /** The context of the root machine, or its output once it has ended. */
  get rootMemory(): unknown {
    return this.actorState(this.tree_id)?.memory ?? this.#actors?.output;
  }

  /** The text of the machine definitions of this version under the policy of the tree. */
  get definitions(): string {
    if (this.#policy === null) throw new InvariantError('a tree that is not open has no definitions');
    return definitionsOf(this.#policy, this.#rootFeature?.root);
  }

  #open(open: OpeningInput, materials: readonly Artifact[]): boolean {
    if (this.#openInput !== null || open.run_id !== this.tree_id) return false;
    const run = rootContext(open);
    const root = featureOf(open)?.root;
    const input =
      root === undefined
        ? { run, inputs: configurationOf(open) }
        : root.inputOf(open as never, run, materials.slice(pinnedArtifacts(open, materials).length));
    this.#setOpening(open, materials);
    this.#start(run, { input });
    if (root !== undefined) return true;
    const event = { type: 'AUTHORIZE', verdict: authorizeOrchestrator(run), overlay: null, digest: null };
    return this.#runGuarded(() => this.#actors?.send(run.run_id, event) === true);
  }

  #setOpening(open: OpeningInput, materials: readonly Artifact[]): void {
    const missing = missingFeature(open);
    if (missing !== null) throw missingFeatureError(missing);
    this.#openInput = open;
    this.#policy = policyOf(pinnedArtifacts(open, materials));
    this.#rootFeature = featureOf(open);
    if (this.#rootFeature !== null) this.#partOf(this.#rootFeature);
  }

  #start({ run_id }: RunContext, from: ActorInit): void {
    const policy = this.#policy;
    if (policy === null) throw new InvariantError('a tree starts with its policy');
    const machine: AnyStateMachine =
      this.#rootFeature === null ? machinesFor(policy).orchestrator : rootMachineFor(policy, this.#rootFeature);
    const onEmission = (emission: Emission): void => {
      this.#builder.record(emission);
    };
    const interpretation = this.#interpretation;
    this.#actors = this.#runGuarded(() =>
      interpretation.interpreter === 'xstate'
        ? interpretation.start({ machine, id: run_id, from }, policy, onEmission)
        : tableDrivenActors(compileMachine(machine), run_id, from, onEmission, interpretation.observer),
    );
  }

  /** Whether the feature that opened the tree keeps this input for itself. */
  #isReserved(recorded: RecordedInput): boolean {
    if (this.#rootFeature === null) return false;
    return this.#partOf(this.#rootFeature).isReserved?.(recorded, this.run(recorded.run_id)) === true;
  }

  #noteDone(effect: Effect): void {
    this.#builder.noteDone(effect);
    for (const part of this.#parts.values()) part.onEffectDone?.(effect);
  }

  #partOf(feature: TreeFeature): TreePart {
    const known = this.#parts.get(feature.feature) ?? feature.createPart(this.#access);
    this.#parts.set(feature.feature, known);
    return known;
  }

  /** The state of the parts that have one. */
  #partSnapshots(): Pick<TreeSnapshot, 'parts'> {
    const parts = [...this.#parts].flatMap(([name, part]) => {
      const stored = part.snapshot?.() ?? null;
      return stored === null ? [] : [[name, stored] as const];
    });
    return parts.length === 0 ? {} : { parts: Object.fromEntries(parts) };
  }

  /** What the parts of features use of this tree. */
  get #access(): TreeAccess {
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the getters of the object read this tree
    const tree = this;
    return {
      tree_id: tree.tree_id,
      get opening() {
        return tree.opening;
      },
      get policy() {
        return tree.policy;
      },
      get rootMemory() {
        return tree.rootMemory;
      },
      run: (run_id) => tree.run(run_id),
      isLive: (run_id) => tree.isLive(run_id),
      send: (run_id, event) => tree.#runGuarded(() => tree.#actors?.send(run_id, event) === true),
      record: (emission) => {
        tree.#builder.record(emission);
      },
    };
  }

  /** K4: after a machine error, every later decision throws. */
  #runGuarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#failure = error;
      this.stop();
      throw new InvariantError('a machine failed', error);
    }
  }

  /** The context for audit events of a tree whose root is no run; null for a run tree. */
  get #ownContext(): RunContext | null {
    return this.#rootFeature !== null && this.#openInput !== null ? rootContext(this.#openInput) : null;
  }
}

/** @throws LedgerError LEDGER_UNSUPPORTED if the feature is not installed */
function requireFeature(name: string): TreeFeature {
  const feature = installedFeature(name);
  if (feature === null) throw missingFeatureError(name);
  return feature;
}

const isStartedByPerson = ({ run_kind, parent_run_id, root_run_id }: RunContext): boolean =>
  run_kind === 'promotion' || run_kind === 'export' || (run_kind === 'tool_gateway' && parent_run_id === root_run_id);

// Maps the closed vocabulary of inputs to machine events (K2). A proposal over the limit of its policy becomes one with
// a prefix of its payload (C80).

/** The machine event for an input. `open` has none: it starts the tree. */
function toMachineEvent(
  { recorded, materials }: TreeInput,
  policy: Policy | null,
): AgentEvent | OrchestratorEvent | StepEvent | MediatedEvent {
  switch (recorded.kind) {
    case 'open':
      throw new InvariantError('`open` starts a tree, so it has no machine event');
    case 'start_agent':
      return { ...recorded, type: 'START_AGENT' };
    case 'proposal':
      return proposeEvent(recorded, materials, policy);
    case 'facts':
      return { type: 'FACTS', facts: withOtherFacts(factsWithReservations(recorded), recorded) };
    case 'result':
      return resultEvent(recorded, materials);
    case 'report':
      return reportEvent(recorded, materials);
    case 'end':
      return { type: 'END' };
    case 'cancel':
      return { type: 'CANCEL', reason: toCancelReason(recorded.reason) };
    case 'interrupt':
      return { type: 'INTERRUPT' };
    case 'wake':
      return { type: 'WAKE', time: recorded.time, overlay: recorded.overlay };
    case 'start_run':
      return startRunEvent(recorded, materials);
    case 'vote':
      return { type: 'VOTE', ballot: ballotOf(recorded), overlay: recorded.overlay };
    case 'resolve':
    case 'access':
    case 'restore':
    case 'rotate_key':
      throw new InvariantError(`\`${recorded.kind}\` changes no run, so it has no machine event`);
    default:
      throw new InvariantError('an input of a feature has no machine event: its feature decides it');
  }
}

function proposeEvent(recorded: ProposalInput, materials: readonly Artifact[], policy: Policy | null): ProposeEvent {
  const [payload] = materials;
  if (payload === undefined) throw new InvariantError('a proposal must bring its payload');
  if (recorded.prefix !== undefined && !canHavePrefix(recorded, policy))
    throw new InvariantError('a payload within the limit must be complete');
  const { input_id, time, seen, prompt = null } = recorded;
  // The response follows the payload and, if present, the prompt.
  const response = materials[prompt === null ? 1 : 2];
  return {
    type: 'PROPOSE',
    input_id,
    time,
    payload: recorded.payload,
    raw: recorded.prefix === undefined ? payload.bytes : null,
    seen,
    recorded_response: response === undefined ? null : decoder.decode(response.bytes),
    tokens: recorded.tokens,
    prompt,
    overlay: recorded.overlay,
  };
}

/** C82: a quota counts reserved bytes and files as used. */
function factsWithReservations({ facts, reserved }: FactsInput): SandboxFacts {
  if (reserved === undefined) return facts;
  const { paths, usage } = facts;
  if (usage === null) return facts;
  return { paths, usage: { bytes: usage.bytes + reserved.bytes, files: usage.files + reserved.files } };
}

/** The facts with what was read of counters and decision points. */
function withOtherFacts(facts: SandboxFacts, { counters, decisions }: FactsInput): GatheredFacts {
  if (counters === undefined && decisions === undefined) return facts;
  return { ...facts, ...(counters && { counters }), ...(decisions && { decisions }) };
}

function resultEvent(recorded: ResultInput, materials: readonly Artifact[]): ResultEvent {
  const { status, cause, explanation, time } = recorded;
  const material = recorded.result === null ? undefined : materials[0];
  const words = explanation === undefined ? undefined : materials.at(-1);
  if (explanation !== undefined && words !== undefined && status === 'failed') {
    const explanation_ref = attachText(explanation, decoder.decode(words.bytes));
    return { type: 'RESULT', status, cause, result: null, result_ref: recorded.result, explanation_ref, time };
  }
  if (material === undefined) {
    if (status === 'done') throw new InvariantError('a result that is done must bring its content');
    return { type: 'RESULT', status, cause, result: null, result_ref: null, time };
  }
  // The engine's own text, hashed in the ledger; no agent wrote it.
  const result: unknown = JSON.parse(decoder.decode(material.bytes));
  if (!isJsonObject(result)) throw new InvariantError('a result must be a JSON object');
  if (status !== 'done') return { type: 'RESULT', status, cause, result: null, result_ref: recorded.result, time };
  return { type: 'RESULT', status, cause, result, result_ref: recorded.result, time };
}

function reportEvent(recorded: ReportInput, [material]: readonly Artifact[]): ReportEvent {
  const { status, result: result_ref, actor, match, time } = recorded;
  const result: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  if (result !== null && !isJsonObject(result)) throw new InvariantError('a reported result must be a JSON object');
  return { type: 'REPORT', status, result, result_ref, reported: { actor, match }, time };
}

function startRunEvent(recorded: StartRunInput, [material]: readonly Artifact[]): StartRunEvent {
  const { run_kind, actor, person, role_id, lane_id, request, inputs, facts, overlay, time } = recorded;
  const parsed: unknown = material === undefined ? null : JSON.parse(decoder.decode(material.bytes));
  const { action, args } = isJsonObject(parsed) ? parsed : {};
  if (typeof action !== 'string' || !isJsonObject(args)) throw new InvariantError('a run is started without a request');
  return {
    type: 'START_RUN',
    run_kind,
    actor,
    person,
    role_id,
    lane_id,
    act: { action, args },
    request,
    inputs,
    facts,
    overlay,
    time,
  };
}

/** The timestamp is the recorded one; the approver's own claim does not count. */
const ballotOf = ({ digests, decision, approver, run_id, time }: VoteInput): ApprovalBallot => ({
  digests,
  decision,
  approver,
  at: time,
  for_run: run_id,
});

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

type PayloadPolicy = Pick<Policy, 'limits'> | null;

/**
 * C80. @returns the prefix that a tree under `policy` stores in place of this payload; null if it stores the whole
 *      payload
 */
export function storedPrefix(payload: Artifact | undefined, policy: PayloadPolicy): Artifact | null {
  if (policy === null || payload === undefined) return null;
  return payload.bytes.byteLength > policy.limits.payload_bytes_max ? createPayloadPrefix(payload) : null;
}

/** Whether a proposal may carry a prefix in place of its payload. */
const canHavePrefix = (proposal: ProposalInput, policy: PayloadPolicy): boolean =>
  policy !== null && isPrefixValid(proposal, policy.limits.payload_bytes_max);

// Restores trees, and reads what waits in them.

/** The approval book of a run: an agent run has its own, a mediated run has the one that belongs to its request. */
function readApprovalBook(memory: unknown): ApprovalBook | null {
  const { approvals, approval } = (memory ?? {}) as {
    readonly approvals?: ApprovalBook;
    readonly approval?: { readonly book: ApprovalBook } | null;
  };
  return approvals ?? approval?.book ?? null;
}

/** Continues a tree from a snapshot. `policies` are the artifacts of the tree's `open`: lanes, roles, actions. */
export function restoreTree(
  snapshot: TreeSnapshot,
  policies: readonly Artifact[],
  interpretation?: Interpretation,
): Tree {
  const tree = new Tree(snapshot.tree_id, interpretation);
  tree.restore(snapshot, policies);
  return tree;
}

type DecidedChange = Pick<Effect, 'action' | 'args' | 'before' | 'case_id' | 'idempotency_key'>;

/**
 * The changes that a tree has decided to make to a sandbox: effects without a result, and changes that a step will
 * retry.
 */
export function listDecidedChanges(tree: Tree): readonly DecidedChange[] {
  const pending = tree.pending.flatMap((command) =>
    command.kind === 'perform' && !command.in_commit ? [command.effect] : [],
  );
  return [...pending, ...tree.timers.flatMap(({ run_id }) => changeAwaitingRetry(tree, run_id))];
}

/** Whether a step of the tree waits to retry a change. */
export const isAwaitingRetry = (tree: Tree): boolean =>
  (tree.policy?.retries.max ?? 0) > 0 && tree.timers.some(({ run_id }) => changeAwaitingRetry(tree, run_id).length > 0);

/** Whether a step of this agent run has begun and not ended: it waits for facts, a result or a retry. */
export const isMidStep = (tree: Tree, agent_run_id: string): boolean => tree.isLive(stepId(agent_run_id));

/** The pending sandbox query of an agent run, if its quota counts the reservations of others (C82); null otherwise. */
export function findPendingGather(tree: Tree, agent_run_id: string): SandboxRequest | null {
  const request = findFactsRequest(tree, agent_run_id);
  return request === null || request.case_id === null ? null : { ...request, case_id: request.case_id };
}

/** The facts for which a step of this agent run waits. */
export function findFactsRequest(tree: Tree, agent_run_id: string): GatherRequest | null {
  const pendingCommand = tree.pending.find(({ kind, run_id }) => kind === 'gather' && run_id === agent_run_id);
  return pendingCommand?.kind === 'gather' ? pendingCommand.request : null;
}

function changeAwaitingRetry(tree: Tree, agent_run_id: string): readonly DecidedChange[] {
  const memory = tree.actorState(stepId(agent_run_id))?.memory as Partial<StepMemory> | undefined;
  const { next_attempt, action, authorization, agent, mediated_runs } = memory ?? {};
  if (next_attempt == null || action == null || authorization?.args == null || agent === undefined) return [];
  const first = childRunId(agent_run_id, (mediated_runs ?? 0) + 1);
  const { args, before } = authorization;
  return [{ action, args, before, case_id: agent.case_id, idempotency_key: childRunId(first, 1) }];
}
