// A run tree: live actors that take one input at a time and answer with a decision. No clock, no chance, no I/O:
// folding the same inputs gives the same entries, commands and replies, always.
//
// Invariants:
//   K1. Entries leave in the order in which the machines said them; the first is the input.
//   K2. Only inputs of the closed vocabulary reach an actor, and only the actor they are for: `xstate.*` cannot enter.
//   K3. An input that the addressed run cannot take moves nothing and is recorded as refused (C50).
//   K4. A machine in error is a bug: `decide` throws, and the tree must be dropped and folded again.

import type { AnyStateMachine } from 'xstate';
import type { Command, Emission, RunTermination } from '../../machines/emission.js';
import { stepId } from '../../machines/agent.js';
import type { Artifact } from '../contract/artifact-ref.js';
import type { ApprovalBook } from '../contract/run/approval.js';
import type { OpenInput, OpenSessionInput, ResolveInput, SessionInput } from '../contract/run/entry.js';
import type { RunContext } from '../contract/run/run-context.js';
import type { SessionVouch } from '../contract/session/session-command.js';
import { isRecordedInput } from '../contract/validators.js';
import { InvariantError } from '../errors.js';
import { authorizeOrchestrator } from '../policy/authorize-run.js';
import type { Policy } from '../policy/policy.js';
import { resolvedEvent } from '../run/audit-events.js';
import { createSessionVouch, type Secrets } from '../session/step-proof.js';
import type { SessionState } from '../session/session-state.js';
import { proposalKey } from '../step/validate-schema.js';
import type { Actors, ActorInit, ActorState } from './interpreter/actors.js';
import { readApprovalBook, readSession } from './context-readers.js';
import { DEFAULT_INTERPRETER } from './interpreter/default-interpreter.js';
import { DecisionBuilder } from './decision-builder.js';
import type { Decision, Timer, TreeInput } from './decision.js';
import type { Interpretation } from './interpreter/interpreter.js';
import { rootContext } from './root-context.js';
import type { PersistedActor } from './interpreter/persisted-actor.js';
import { machinesFor, policyOf } from './pinned-policy.js';
import { recordAccess, recordRefusal } from './record-refusal.js';
import { commandEvent, toMachineEvent, SPEC_MATERIAL_INDEX, parseSpecArtifact } from './machine-event.js';
import { configurationFor, isReservedForSession } from './session-inputs.js';
import { startActors } from './interpreter/start-actors.js';
import { collectStepWork } from './step-work.js';
import type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';
import { redactInspection } from './interpreter/redact-inspection.js';

export type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';

/** One tree, moved on in place by `decide`. New, or made by `restoreTree`. */
export class Tree {
  readonly tree_id: string;
  readonly #builder: DecisionBuilder;
  readonly #interpretation: Interpretation;
  #openInput: OpenInput | OpenSessionInput | null = null;
  #policy: Policy | null = null;
  #actors: Actors | null = null;
  #failure: unknown = null;

  constructor(tree_id: string, interpretation: Interpretation = { interpreter: DEFAULT_INTERPRETER }) {
    this.tree_id = tree_id;
    this.#interpretation = interpretation;
    this.#builder = new DecisionBuilder(tree_id);
  }

  /** How many entries the tree has, and the hash of its last one. */
  get head(): { readonly seq: number; readonly prev: string } {
    return this.#builder.head;
  }

  /** Whether the root run has ended: nothing but refusals can follow. */
  get hasEnded(): boolean {
    return this.#actors?.output !== undefined;
  }

  /** How the root run ended. @throws InvariantError while it has not */
  get ending(): Omit<RunTermination, 'run_id'> {
    const output = this.#actors?.output;
    if (output === undefined) throw new InvariantError(`run ${this.tree_id} has not ended`);
    return { state: output.state, reason: output.end.reason };
  }

  /** Commands whose results have not come in. */
  get pending(): readonly Command[] {
    return this.#builder.pending;
  }

  get timers(): readonly Timer[] {
    return this.#builder.timers;
  }

  /** The policy that the tree is judged by, once it is open. */
  get policy(): Policy | null {
    return this.#policy;
  }

  /** The orchestrator or agent run of this id, ended or not. */
  run(run_id: string): KnownRun | null {
    return this.#builder.run(run_id);
  }

  /** The id by which a payload would be remembered, or null for one that is no proposal (C19). */
  proposalKey(payload: Uint8Array): string | null {
    return this.#policy === null ? null : proposalKey(payload, this.#policy);
  }

  /** Every orchestrator and agent run, in the order in which they were created. */
  get runs(): readonly KnownRun[] {
    return this.#builder.runs;
  }

  /** Whether this run, or step, could take inputs now. */
  isLive(run_id: string): boolean {
    return this.#actors?.isLive(run_id) === true;
  }

  /**
   * Takes one input. @returns what it caused; the caller commits it before it acts on it
   * @throws InvariantError when a machine breaks, or, with the tree unmoved, for what is no input
   * @throws PolicyError POLICY_INVALID when an `open` brings a policy that cannot be parsed
   */
  decide(input: TreeInput): Decision {
    const { recorded } = input;
    if (this.#failure !== null) throw new InvariantError('a machine failed before', this.#failure);
    if (input.checked !== true && !isRecordedInput(recorded))
      throw new InvariantError('an input that the ledger could not hold');
    this.#builder.begin(recorded, input.materials);
    const refused = !this.#apply(input);
    if (refused) recordRefusal(this.#builder, this.tree_id, recorded, this.#sessionContext);
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
      ...(this.#openInput.kind === 'open_session' ? { touched: this.#builder.touchedFiles.toSnapshot() } : {}),
      machine: this.#actors.getPersistedSnapshot(),
    };
  }

  /** Takes up a snapshot. The policy's bytes are those of the tree's `open`. */
  restore(snapshot: TreeSnapshot, policies: readonly Artifact[]): void {
    this.#openInput = snapshot.open;
    this.#policy = policyOf(policies);
    this.#start(rootContext(snapshot.open), { persisted: snapshot.machine as PersistedActor });
    this.#builder.restore(snapshot);
  }

  /** The tree leaves memory: XState's actors are stopped. It can still be read, and decides nothing more. */
  stop(): void {
    this.#actors?.stop();
  }

  #apply(input: TreeInput): boolean {
    const { recorded } = input;
    if (recorded.kind === 'open') return this.#openRoot(recorded, input.materials);
    if (recorded.kind === 'open_session') return this.#openSession(recorded, input.materials);
    if (recorded.kind === 'session') return this.#applyCommand(recorded, input.materials);
    if (recorded.kind === 'resolve') return this.#resolve(recorded);
    if (recorded.kind === 'access') return recordAccess(this.#builder, this.tree_id, recorded, this.#sessionContext);
    // The runs of an activation are the session's to start: it counts them, and waits for them by their ids.
    const knownRun = this.run(recorded.run_id);
    if (this.#openInput?.kind === 'open_session' && isReservedForSession(recorded, knownRun, this.#policy))
      return false;
    const address = recorded.kind === 'facts' ? stepId(recorded.run_id) : recorded.run_id;
    if (!this.isLive(address)) return false;
    const event = toMachineEvent(input, this.#policy);
    const pendingCommand =
      recorded.kind === 'facts' || recorded.kind === 'result' ? this.#builder.pendingCommand(recorded.run_id) : null;
    // Before the machines move: the run ends by this.
    if (recorded.kind === 'result' && pendingCommand?.kind === 'perform') {
      if (recorded.status === 'unknown') this.#builder.noteUnknown(pendingCommand);
      if (recorded.status === 'done') this.#builder.noteDone(pendingCommand);
    }
    const isAccepted = this.#runGuarded(() => this.#actors?.send(address, event) === true);
    if (isAccepted && pendingCommand !== null) this.#builder.removePending(pendingCommand);
    return isAccepted;
  }

  /** D8: the run's own state does not move; its agent, if it still works, may make the same request again. */
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

  /** Runs of which nobody knows whether their effect happened. */
  get unsettled(): readonly UnsettledRun[] {
    return this.#builder.unsettled;
  }

  /** The promotion and export runs that have not ended. */
  get pendingHighRiskRuns(): readonly RunContext[] {
    return this.#builder.mediated.filter(({ run_kind }) => run_kind === 'promotion' || run_kind === 'export');
  }

  /** What the run of this id, if it is live, has asked people to approve, with their answers (D7). */
  approvals(run_id: string): ApprovalBook | null {
    return readApprovalBook(this.actorState(run_id)?.memory);
  }

  /** The live run or step of this id, to look at. */
  actorState(id: string): ActorState | null {
    return this.#actors?.stateOf(id) ?? null;
  }

  #openRoot(open: OpenInput, materials: readonly Artifact[]): boolean {
    if (this.#openInput !== null || open.run_id !== this.tree_id) return false;
    this.#openInput = open;
    this.#policy = policyOf(materials);
    const run = rootContext(open);
    const event = { type: 'AUTHORIZE', verdict: authorizeOrchestrator(run), overlay: null, digest: null };
    this.#start(run, { input: { run, inputs: configurationFor(open, this.#policy) } });
    return this.#runGuarded(() => this.#actors?.send(run.run_id, event) === true);
  }

  /** The case that the tree works on. */
  get case_id(): string | null {
    return this.#openInput?.case_id ?? null;
  }

  /** The session that this tree is of; null for a run tree. */
  get session(): SessionState | null {
    return readSession(this.actorState(this.tree_id)?.memory ?? this.#actors?.output);
  }

  /** What must be vouched for when this command comes in next; a tree that is no session refuses it anyway. */
  vouch(command: string, secrets: Secrets): SessionVouch {
    return createSessionVouch(this.tree_id, this.session, command, secrets);
  }

  #openSession(open: OpenSessionInput, materials: readonly Artifact[]): boolean {
    if (this.#openInput !== null || open.run_id !== this.tree_id) return false;
    const spec = parseSpecArtifact(materials[SPEC_MATERIAL_INDEX]);
    this.#openInput = open;
    this.#policy = policyOf(materials);
    this.#start(rootContext(open), {
      input: { base: rootContext(open), open, spec, inputs: configurationFor(open, this.#policy) },
    });
    return true;
  }

  #applyCommand(recorded: SessionInput, materials: readonly Artifact[]): boolean {
    const session = this.session;
    const policy = this.#policy;
    if (session === null || recorded.run_id !== this.tree_id || policy === null) return false;
    const { touchedFiles } = this.#builder;
    const work = collectStepWork(session, { policy, touched: touchedFiles, isLive: (run_id) => this.isLive(run_id) });
    const event = commandEvent(recorded, materials, work);
    const isAccepted = this.#runGuarded(() => this.#actors?.send(this.tree_id, event) === true);
    // Of a step that was reported nobody asks any more what its runs have changed.
    touchedFiles.retainRuns(this.session?.outstanding?.run_ids ?? []);
    return isAccepted;
  }

  #start({ run_id }: RunContext, from: ActorInit): void {
    if (this.#policy === null) throw new InvariantError('a tree starts with its policy');
    const machines = machinesFor(this.#policy);
    const interpretation = redactInspection(this.#interpretation, this.#policy);
    const isSession = this.#openInput?.kind === 'open_session';
    if (isSession) this.#builder.touchedFiles.startTracking();
    const machine: AnyStateMachine = isSession ? machines.session : machines.orchestrator;
    const onEmission = (emission: Emission): void => {
      this.#builder.record(emission);
    };
    this.#actors = this.#runGuarded(() => startActors(interpretation, { machine, id: run_id, from }, onEmission));
  }

  /** K4: what a machine has thrown, it throws for ever. */
  #runGuarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#failure = error;
      this.stop();
      throw new InvariantError('a machine failed', error);
    }
  }

  /** The context that is told of a session, which is no run; null for a run tree. */
  get #sessionContext(): RunContext | null {
    return this.#openInput?.kind === 'open_session' ? rootContext(this.#openInput) : null;
  }
}

/** Goes on from a snapshot. `policies` are the artifacts of the tree's `open`: lanes, roles, actions. */
export function restoreTree(
  snapshot: TreeSnapshot,
  policies: readonly Artifact[],
  interpretation?: Interpretation,
): Tree {
  const tree = new Tree(snapshot.tree_id, interpretation);
  tree.restore(snapshot, policies);
  return tree;
}
