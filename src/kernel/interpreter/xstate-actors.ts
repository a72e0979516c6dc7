import { createActor, type AnyActorRef, type AnyStateMachine, type InspectionEvent, type Snapshot } from 'xstate';
import type { Emission } from '../../../machines/emission.js';
import type { RunOutput } from '../../../machines/run.js';
import { InvariantError } from '../../core/errors.js';
import {
  type Actors,
  type ActorInit,
  type EmissionListener,
  type ActorState,
  toStatePath,
  type StateValue,
} from './actors.js';
import { redactInspection } from './inert-inspector.js';
import type { InspectionListener, Interpretation } from './interpreter.js';

/** The members of any machine's snapshot that the kernel reads. */
interface AnyMachineSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly output: unknown;
  readonly value: StateValue;
  readonly context: Readonly<Record<string, unknown>>;
  can(event: { readonly type: string }): boolean;
}

const snapshotOf = (actor: AnyActorRef): AnyMachineSnapshot => actor.getSnapshot() as AnyMachineSnapshot;

const isActive = (actor: AnyActorRef): boolean => snapshotOf(actor).status === 'active';

function actorStateOf(actor: AnyActorRef): ActorState {
  const { value, context } = snapshotOf(actor);
  return { path: toStatePath(value), memory: context };
}

/** What stays readable after a tree has stopped. */
interface LastState {
  readonly states: ReadonlyMap<string, ActorState>;
  /** Null after a machine error: a broken tree has no snapshot. */
  readonly persisted: unknown;
}

/**
 * A tree on XState's own actors.
 * @param inspect receives their events, with hashes in place of content if a lane of the policy withholds it (C83)
 */
export const xstateInterpretation = (inspect?: InspectionListener): Interpretation => ({
  interpreter: 'xstate',
  start: ({ machine, id, from }, policy, onEmission) =>
    xstateActors(machine, id, from, onEmission, inspect === undefined ? undefined : redactInspection(inspect, policy)),
});

/** Runs a tree on XState's own actors: slower than the table-driven interpreter, but inspectors understand it. */
export function xstateActors(
  machine: AnyStateMachine,
  id: string,
  from: ActorInit,
  onEmission: EmissionListener,
  inspect?: InspectionListener,
): Actors {
  const known = new KnownActors(onEmission, inspect);
  const begin = 'input' in from ? { input: from.input } : { snapshot: from.persisted as unknown as Snapshot<unknown> };
  const root: AnyActorRef = createActor(machine, { id, inspect: known.receive, ...begin } as object);
  let last: LastState | null = null;
  const stop = (): void => {
    if (last !== null) return;
    const states = new Map([...known.active].map((actor) => [actor.id, actorStateOf(actor)]));
    last = { states, persisted: known.failure === null ? root.getPersistedSnapshot() : null };
    known.stopAll(root);
  };
  const throwFailure = (): void => {
    if (known.failure !== null) throw known.failure.error;
  };
  root.start();
  if (known.failure !== null) stop();
  throwFailure();
  return {
    isLive: (actor) => (last === null ? known.findLive(actor) !== null : last.states.has(actor)),
    stateOf: (actor) => {
      if (last !== null) return last.states.get(actor) ?? null;
      const ref = known.findLive(actor);
      return ref === null ? null : actorStateOf(ref);
    },
    send: (actor, event) => {
      if (last !== null) throw new InvariantError(`the actors of ${id} are stopped`);
      const ref = known.findLive(actor);
      if (ref === null || !snapshotOf(ref).can(event)) return false;
      ref.send(event);
      throwFailure();
      return true;
    },
    get output() {
      return snapshotOf(root).output as RunOutput | undefined;
    },
    getPersistedSnapshot: () => (last === null ? root.getPersistedSnapshot() : last.persisted),
    stop,
  };
}

/** The actors of one tree by id, from their creation on, and the first error in any of them. */
class KnownActors {
  readonly #byId = new Map<string, AnyActorRef>();
  readonly #onEmission: EmissionListener;
  readonly #inspect: InspectionListener | undefined;
  failure: { readonly error: unknown } | null = null;

  constructor(onEmission: EmissionListener, inspect: InspectionListener | undefined) {
    this.#onEmission = onEmission;
    this.#inspect = inspect;
  }

  /** For `createActor(machine, { inspect })`. */
  readonly receive = (event: InspectionEvent): void => {
    if (event.type === '@xstate.actor') this.#add(event.actorRef as AnyActorRef);
    this.#inspect?.(event);
  };

  get active(): readonly AnyActorRef[] {
    return [...this.#byId.values()].filter(isActive);
  }

  findLive(id: string): AnyActorRef | null {
    const actor = this.#byId.get(id);
    return actor !== undefined && isActive(actor) ? actor : null;
  }

  /** A root stops its children, except those that it left behind when it failed. */
  stopAll(root: AnyActorRef): void {
    root.stop();
    for (const orphan of this.active) orphan.send({ type: 'xstate.stop' });
    this.#byId.clear();
  }

  #add(actor: AnyActorRef): void {
    this.#byId.set(actor.id, actor);
    actor.on('*', this.#forwardEmission);
    const complete = (): void => {
      if (this.#byId.get(actor.id) === actor) this.#byId.delete(actor.id);
    };
    // Without an error listener, XState throws an actor's error in a later turn, where no caller can catch it.
    actor.subscribe({ complete, error: this.#fail });
  }

  /** XState throws a listener's error in a later turn, after the decision has been returned without its entry. */
  readonly #forwardEmission = (emission: Emission): void => {
    try {
      this.#onEmission(emission);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #fail = (error: unknown): void => {
    this.failure ??= { error };
  };
}
