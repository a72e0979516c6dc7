// A run tree: live actors that take one input at a time and answer with a decision. No clock, no chance, no I/O:
// folding the same inputs gives the same entries, commands and replies, always.
//
// Invariants:
//   K1. Entries leave in the order in which the machines said them; the first is the input.
//   K2. Only inputs of the closed vocabulary reach an actor, and only the actor they are for: `xstate.*` cannot enter.
//   K3. An input that the addressed run cannot take moves nothing and is recorded as refused (C50).
//   K4. A machine in error is a bug: `decide` throws, and the tree must be dropped and folded again.

import type { AnyStateMachine } from 'xstate';
import type { Command, Emission, Ending } from '../../machines/emission.js';
import { stepId } from '../../machines/agent.js';
import type { Artifact } from '../contract/artifact-ref.js';
import type { ApprovalBook } from '../contract/approval.js';
import type { OpenInput, OpenSessionInput, ResolveInput, SessionInput } from '../contract/entry.js';
import type { RunContext } from '../contract/run-context.js';
import type { SessionVouch } from '../contract/session-command.js';
import { isRecordedInput } from '../contract/validators.js';
import { InvariantError } from '../errors.js';
import { authorizeOrchestrator } from '../policy/lane-decision.js';
import type { Policy } from '../policy/policy.js';
import { resolvedEvent } from '../run/audit.js';
import { vouchFor, type Secrets } from '../session/proof.js';
import type { SessionState } from '../session/state.js';
import { proposalKey } from '../step/validate-schema.js';
import type { Actors, Beginning, Standing } from './actors.js';
import { approvalBookIn, sessionIn } from './memories.js';
import { DEFAULT_INTERPRETER } from './default-interpreter.js';
import { Hearing } from './hearing.js';
import type { Decision, Timer, TreeInput } from './input.js';
import type { Interpretation } from './interpreter.js';
import { rootContext } from './open.js';
import type { PersistedActor } from './persisted-actor.js';
import { machinesFor, policyOf } from './pinned.js';
import { tellAccess, tellRefusal } from './remarks.js';
import { commandEvent, eventFor, OPEN_SPEC, specIn } from './route.js';
import { configurationFor, isOfSession } from './session-inputs.js';
import { startActors } from './start-actors.js';
import { workOf } from './step-work.js';
import type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';
import { inspectedUnder } from './withheld-inspection.js';

export type { KnownRun, TreeSnapshot, UnsettledRun } from './tree-snapshot.js';

/** One tree, moved on in place by `decide`. New, or made by `restoreTree`. */
export class Tree {
  readonly tree_id: string;
  readonly #hearing: Hearing;
  readonly #interpretation: Interpretation;
  #open: OpenInput | OpenSessionInput | null = null;
  #policy: Policy | null = null;
  #actors: Actors | null = null;
  #failure: unknown = null;

  constructor(tree_id: string, interpretation: Interpretation = { interpreter: DEFAULT_INTERPRETER }) {
    this.tree_id = tree_id;
    this.#interpretation = interpretation;
    this.#hearing = new Hearing(tree_id);
  }

  /** How many entries the tree has, and the hash of its last one. */
  get head(): { readonly seq: number; readonly prev: string } {
    return this.#hearing.head;
  }

  /** Whether the root run has ended: nothing but refusals can follow. */
  get ended(): boolean {
    return this.#actors?.output !== undefined;
  }

  /** How the root run ended. @throws InvariantError while it has not */
  get ending(): Omit<Ending, 'run_id'> {
    const output = this.#actors?.output;
    if (output === undefined) throw new InvariantError(`run ${this.tree_id} has not ended`);
    return { state: output.state, reason: output.end.reason };
  }

  /** Commands whose results have not come in. */
  get pending(): readonly Command[] {
    return this.#hearing.pending;
  }

  get timers(): readonly Timer[] {
    return this.#hearing.timers;
  }

  /** The policy that the tree is judged by, once it is open. */
  get policy(): Policy | null {
    return this.#policy;
  }

  /** The orchestrator or agent run of this id, ended or not. */
  run(run_id: string): KnownRun | null {
    return this.#hearing.run(run_id);
  }

  /** The id by which a payload would be remembered, or null for one that is no proposal (C19). */
  proposalKey(payload: Uint8Array): string | null {
    return this.#policy === null ? null : proposalKey(payload, this.#policy);
  }

  /** Every orchestrator and agent run, in the order in which they were created. */
  get runs(): readonly KnownRun[] {
    return this.#hearing.runs;
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
    this.#hearing.begin(recorded, input.materials);
    const refused = !this.#apply(input);
    if (refused) tellRefusal(this.#hearing, this.tree_id, recorded, this.#ofSession);
    return this.#hearing.end(refused);
  }

  snapshot(): TreeSnapshot {
    if (this.#actors === null || this.#open === null)
      throw new InvariantError('a tree that is not open has no snapshot');
    return {
      tree_id: this.tree_id,
      ...this.head,
      open: this.#open,
      runs: this.runs,
      pending: this.pending,
      timers: this.timers,
      unsettled: this.#hearing.unsettled,
      mediated: this.#hearing.mediated,
      ...(this.#open.kind === 'open_session' ? { touched: this.#hearing.touched.persisted() } : {}),
      machine: this.#actors.persisted(),
    };
  }

  /** Takes up a snapshot. The policy's bytes are those of the tree's `open`. */
  restore(snapshot: TreeSnapshot, policies: readonly Artifact[]): void {
    this.#open = snapshot.open;
    this.#policy = policyOf(policies);
    this.#start(rootContext(snapshot.open), { persisted: snapshot.machine as PersistedActor });
    this.#hearing.restore(snapshot);
  }

  /** The tree leaves memory: XState's actors are stopped. It can still be read, and decides nothing more. */
  stop(): void {
    this.#actors?.stop();
  }

  #apply(input: TreeInput): boolean {
    const { recorded } = input;
    if (recorded.kind === 'open') return this.#openRoot(recorded, input.materials);
    if (recorded.kind === 'open_session') return this.#openSession(recorded, input.materials);
    if (recorded.kind === 'session') return this.#command(recorded, input.materials);
    if (recorded.kind === 'resolve') return this.#resolve(recorded);
    if (recorded.kind === 'access') return tellAccess(this.#hearing, this.tree_id, recorded, this.#ofSession);
    // The runs of an activation are the session's to start: it counts them, and waits for them by their ids.
    const named = this.run(recorded.run_id);
    if (this.#open?.kind === 'open_session' && isOfSession(recorded, named, this.#policy)) return false;
    const address = recorded.kind === 'facts' ? stepId(recorded.run_id) : recorded.run_id;
    if (!this.isLive(address)) return false;
    const event = eventFor(input, this.#policy);
    const asked = recorded.kind === 'facts' || recorded.kind === 'result' ? this.#hearing.asked(recorded.run_id) : null;
    // Before the machines move: the run ends by this.
    if (recorded.kind === 'result' && asked?.kind === 'perform') {
      if (recorded.status === 'unknown') this.#hearing.noteUnknown(asked);
      if (recorded.status === 'done') this.#hearing.noteDone(asked);
    }
    const taken = this.#unbroken(() => this.#actors?.take(address, event) === true);
    if (taken && asked !== null) this.#hearing.answered(asked);
    return taken;
  }

  /** D8: the run's own state does not move; its agent, if it still works, may make the same request again. */
  #resolve(recorded: ResolveInput): boolean {
    const run = this.#hearing.settle(recorded.run_id);
    if (run === null) return false;
    this.#hearing.hear({ type: 'audit_event', body: resolvedEvent(run.context, recorded) });
    const event = { type: 'RESOLVED', request_hash: run.request_hash };
    for (const { run_id, run_kind } of this.runs.map(({ context }) => context)) {
      if (run_kind === 'agent' && recorded.run_id.startsWith(`${run_id}.`) && this.isLive(run_id))
        this.#unbroken(() => this.#actors?.take(run_id, event));
    }
    return true;
  }

  /** Runs of which nobody knows whether their effect happened. */
  get unsettled(): readonly UnsettledRun[] {
    return this.#hearing.unsettled;
  }

  /** The promotion and export runs that have not ended. */
  get awaiting(): readonly RunContext[] {
    return this.#hearing.mediated.filter(({ run_kind }) => run_kind === 'promotion' || run_kind === 'export');
  }

  /** What the run of this id, if it is live, has asked people to approve, with their answers (D7). */
  approvals(run_id: string): ApprovalBook | null {
    return approvalBookIn(this.standing(run_id)?.memory);
  }

  /** The live run or step of this id, to look at. */
  standing(id: string): Standing | null {
    return this.#actors?.standing(id) ?? null;
  }

  #openRoot(open: OpenInput, materials: readonly Artifact[]): boolean {
    if (this.#open !== null || open.run_id !== this.tree_id) return false;
    this.#open = open;
    this.#policy = policyOf(materials);
    const run = rootContext(open);
    const event = { type: 'AUTHORIZE', verdict: authorizeOrchestrator(run), overlay: null, digest: null };
    this.#start(run, { input: { run, inputs: configurationFor(open, this.#policy) } });
    return this.#unbroken(() => this.#actors?.take(run.run_id, event) === true);
  }

  /** The case that the tree works on. */
  get case_id(): string | null {
    return this.#open?.case_id ?? null;
  }

  /** The session that this tree is of; null for a run tree. */
  get session(): SessionState | null {
    return sessionIn(this.standing(this.tree_id)?.memory ?? this.#actors?.output);
  }

  /** What must be vouched for when this command comes in next; a tree that is no session refuses it anyway. */
  vouch(command: string, secrets: Secrets): SessionVouch {
    return vouchFor(this.tree_id, this.session, command, secrets);
  }

  #openSession(open: OpenSessionInput, materials: readonly Artifact[]): boolean {
    if (this.#open !== null || open.run_id !== this.tree_id) return false;
    const spec = specIn(materials[OPEN_SPEC]);
    this.#open = open;
    this.#policy = policyOf(materials);
    this.#start(rootContext(open), {
      input: { base: rootContext(open), open, spec, inputs: configurationFor(open, this.#policy) },
    });
    return true;
  }

  #command(recorded: SessionInput, materials: readonly Artifact[]): boolean {
    const session = this.session;
    const policy = this.#policy;
    if (session === null || recorded.run_id !== this.tree_id || policy === null) return false;
    const { touched } = this.#hearing;
    const work = workOf(session, { policy, touched, isLive: (run_id) => this.isLive(run_id) });
    const event = commandEvent(recorded, materials, work);
    const taken = this.#unbroken(() => this.#actors?.take(this.tree_id, event) === true);
    // Of a step that was reported nobody asks any more what its runs have changed.
    touched.keep(this.session?.outstanding?.run_ids ?? []);
    return taken;
  }

  #start({ run_id }: RunContext, from: Beginning): void {
    if (this.#policy === null) throw new InvariantError('a tree starts with its policy');
    const machines = machinesFor(this.#policy);
    const how = inspectedUnder(this.#interpretation, this.#policy);
    const ofSession = this.#open?.kind === 'open_session';
    if (ofSession) this.#hearing.touched.begin();
    const machine: AnyStateMachine = ofSession ? machines.session : machines.orchestrator;
    const hear = (emission: Emission): void => {
      this.#hearing.hear(emission);
    };
    this.#actors = this.#unbroken(() => startActors(how, { machine, id: run_id, from }, hear));
  }

  /** K4: what a machine has thrown, it throws for ever. */
  #unbroken<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      this.#failure = error;
      this.stop();
      throw new InvariantError('a machine failed', error);
    }
  }

  /** The context that is told of a session, which is no run; null for a run tree. */
  get #ofSession(): RunContext | null {
    return this.#open?.kind === 'open_session' ? rootContext(this.#open) : null;
  }
}

/** Goes on from a snapshot. `policies` are the artifacts of the tree's `open`: lanes, roles, actions. */
export function restoreTree(snapshot: TreeSnapshot, policies: readonly Artifact[], how?: Interpretation): Tree {
  const tree = new Tree(snapshot.tree_id, how);
  tree.restore(snapshot, policies);
  return tree;
}
