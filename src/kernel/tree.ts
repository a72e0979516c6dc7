// A run tree: a live XState actor tree that takes one input at a time and answers with a decision. No clock, no
// chance, no I/O: folding the same inputs gives the same entries, commands and replies, always.
//
// Invariants:
//   K1. Entries leave in the order in which the machines said them; the first is the input.
//   K2. Only inputs of the closed vocabulary reach an actor, and only the actor they are for: `xstate.*` cannot enter.
//   K3. An input that the addressed run cannot take moves nothing and is recorded as refused (C50).
//   K4. A machine in error is a bug: `decide` throws, and the tree must be dropped and folded again.

import { createActor, type AnyActorRef, type InspectionEvent, type Snapshot } from 'xstate';
import type { Command, Emission, Ending } from '../../machines/emission.js';
import { stepId } from '../../machines/agent.js';
import type { RunOutput } from '../../machines/run.js';
import type { Artifact } from '../contract/artifact-ref.js';
import type { OpenInput } from '../contract/entry.js';
import type { RunContext } from '../contract/run-context.js';
import { isRecordedInput } from '../contract/validators.js';
import { InvariantError } from '../errors.js';
import { authorizeOrchestrator } from '../policy/lane-decision.js';
import type { Policy } from '../policy/policy.js';
import { illegalTransitionEvent } from '../run/audit.js';
import { proposalKey } from '../step/validate-schema.js';
import { Hearing } from './hearing.js';
import type { Decision, Timer, TreeInput } from './input.js';
import { rootContext } from './open.js';
import { machinesFor, policyOf } from './pinned.js';
import { eventFor } from './route.js';
import type { KnownRun, TreeSnapshot } from './tree-snapshot.js';

export type { KnownRun, TreeSnapshot } from './tree-snapshot.js';

/** What the kernel reads of any machine's snapshot. */
interface AnyMachineSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly output: unknown;
  can(event: { readonly type: string }): boolean;
}

const snapshotOf = (actor: AnyActorRef): AnyMachineSnapshot => actor.getSnapshot() as AnyMachineSnapshot;

/** One tree, moved on in place by `decide`. New, or made by `restoreTree`. */
export class Tree {
  readonly tree_id: string;
  readonly #hearing: Hearing;
  readonly #watch: (event: InspectionEvent) => void;
  #open: OpenInput | null = null;
  #policy: Policy | null = null;
  #root: AnyActorRef | null = null;
  readonly #actors = new Map<string, AnyActorRef>();
  #failure: unknown = null;

  /** `watch` is told everything that XState tells an inspector; it changes nothing. */
  constructor(tree_id: string, watch: (event: InspectionEvent) => void = () => undefined) {
    this.tree_id = tree_id;
    this.#watch = watch;
    this.#hearing = new Hearing(tree_id);
  }

  /** How many entries the tree has, and the hash of its last one. */
  get head(): { readonly seq: number; readonly prev: string } {
    return this.#hearing.head;
  }

  /** Whether the root run has ended: nothing but refusals can follow. */
  get ended(): boolean {
    return this.#root !== null && snapshotOf(this.#root).status === 'done';
  }

  /** How the root run ended. @throws InvariantError while it has not */
  get ending(): Omit<Ending, 'run_id'> {
    const output = this.#root === null ? undefined : (snapshotOf(this.#root).output as RunOutput | undefined);
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
    const actor = this.#actors.get(run_id);
    return actor !== undefined && snapshotOf(actor).status === 'active';
  }

  /**
   * Takes one input. @returns what it caused; the caller commits it before it acts on it
   * @throws InvariantError when a machine breaks, or, with the tree unmoved, for what is no input
   * @throws PolicyError POLICY_INVALID when an `open` brings a policy that cannot be parsed
   */
  decide(input: TreeInput): Decision {
    const { recorded } = input;
    if (!isRecordedInput(recorded)) throw new InvariantError('an input that the ledger could not hold');
    this.#hearing.begin(recorded);
    const refused = !this.#apply(input);
    if (this.#failure !== null) throw new InvariantError('a machine failed', this.#failure);
    if (refused) this.#refuse(recorded.run_id, recorded.kind);
    return { ...this.#hearing.heard, artifacts: input.materials, refused };
  }

  snapshot(): TreeSnapshot {
    if (this.#root === null || this.#open === null) throw new InvariantError('a tree that is not open has no snapshot');
    return {
      tree_id: this.tree_id,
      ...this.head,
      open: this.#open,
      runs: this.runs,
      pending: this.pending,
      timers: this.timers,
      machine: this.#root.getPersistedSnapshot(),
    };
  }

  /** Takes up a snapshot. The policy's bytes are those of the tree's `open`. */
  restore(snapshot: TreeSnapshot, policies: readonly Artifact[]): void {
    this.#hearing.restore(snapshot);
    this.#open = snapshot.open;
    this.#policy = policyOf(policies);
    this.#start(rootContext(snapshot.open), snapshot.machine as Snapshot<unknown>);
  }

  #apply(input: TreeInput): boolean {
    const { recorded } = input;
    if (recorded.kind === 'open') return this.#openRoot(recorded, input.materials);
    const address = recorded.kind === 'facts' ? stepId(recorded.run_id) : recorded.run_id;
    const actor = this.#actors.get(address);
    const event = eventFor(input);
    if (actor === undefined) return false;
    const snapshot = snapshotOf(actor);
    if (snapshot.status !== 'active' || !snapshot.can(event)) return false;
    if (recorded.kind === 'facts' || recorded.kind === 'result') this.#hearing.answered(recorded.run_id);
    actor.send(event);
    return true;
  }

  #openRoot(open: OpenInput, materials: readonly Artifact[]): boolean {
    if (this.#open !== null || open.run_id !== this.tree_id) return false;
    this.#open = open;
    this.#policy = policyOf(materials);
    const run = rootContext(open);
    this.#start(run, undefined);
    this.#root?.send({ type: 'AUTHORIZE', verdict: authorizeOrchestrator(run) });
    return true;
  }

  #start(run: RunContext, snapshot: Snapshot<unknown> | undefined): void {
    if (this.#policy === null) throw new InvariantError('a tree starts with its policy');
    const { orchestrator } = machinesFor(this.#policy);
    const inspect = (event: InspectionEvent): void => {
      if (event.type === '@xstate.actor') this.#adopt(event.actorRef as AnyActorRef);
      this.#watch(event);
    };
    const options = { id: run.run_id, input: { run }, inspect };
    const root = createActor(orchestrator, snapshot === undefined ? options : { ...options, snapshot });
    this.#root = root;
    root.start();
  }

  /** Every actor of the tree is known by its id, and heard, from the moment it exists. */
  #adopt(actor: AnyActorRef): void {
    this.#actors.set(actor.id, actor);
    actor.on('*', (emission: Emission) => this.#hear(emission));
    actor.subscribe({
      complete: () => {
        if (this.#actors.get(actor.id) === actor) this.#actors.delete(actor.id);
      },
      error: (error: unknown) => {
        this.#failure ??= error;
      },
    });
  }

  /** XState throws what a listener throws in another turn, when the decision has long left without its entry. */
  #hear(emission: Emission): void {
    try {
      this.#hearing.hear(emission);
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #refuse(run_id: string, kind: string): void {
    const run = (this.run(run_id) ?? this.run(this.tree_id))?.context;
    if (run === undefined) throw new InvariantError('the first input of a tree must be `open`');
    this.#hearing.hear({ type: 'audit_event', body: illegalTransitionEvent(run, run_id, kind) });
  }
}

/** Goes on from a snapshot. `policies` are the artifacts of the tree's `open`: lanes, roles, actions. */
export function restoreTree(snapshot: TreeSnapshot, policies: readonly Artifact[]): Tree {
  const tree = new Tree(snapshot.tree_id);
  tree.restore(snapshot, policies);
  return tree;
}
