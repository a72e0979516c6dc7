import { createActor, type AnyActorRef, type AnyStateMachine, type InspectionEvent, type Snapshot } from 'xstate';
import type { Emission } from '../../machines/emission.js';
import type { RunOutput } from '../../machines/run.js';
import { InvariantError } from '../errors.js';
import type { Actors, Beginning, Hear, Standing } from './actors.js';
import type { InspectionListener } from './interpreter.js';
import { pathOf, type StateValue } from './persisted-actor.js';

/** What the kernel reads of any machine's snapshot. */
interface AnyMachineSnapshot {
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  readonly output: unknown;
  readonly value: StateValue;
  readonly context: Readonly<Record<string, unknown>>;
  can(event: { readonly type: string }): boolean;
}

const snapshotOf = (actor: AnyActorRef): AnyMachineSnapshot => actor.getSnapshot() as AnyMachineSnapshot;

const isActive = (actor: AnyActorRef): boolean => snapshotOf(actor).status === 'active';

function standingOf(actor: AnyActorRef): Standing {
  const { value, context } = snapshotOf(actor);
  return { path: pathOf(value), memory: context };
}

/** What a stopped tree still answers with. */
interface LastState {
  readonly standings: ReadonlyMap<string, Standing>;
  /** Null for a tree that broke: it has no snapshot. */
  readonly persisted: unknown;
}

/** XState's own actors: slower than the tables, and what inspectors understand. */
export function xstateActors(
  machine: AnyStateMachine,
  id: string,
  from: Beginning,
  hear: Hear,
  inspect?: InspectionListener,
): Actors {
  const known = new KnownActors(hear, inspect);
  const begin = 'input' in from ? { input: from.input } : { snapshot: from.persisted as unknown as Snapshot<unknown> };
  const root: AnyActorRef = createActor(machine, { id, inspect: known.receive, ...begin } as object);
  let last: LastState | null = null;
  const stop = (): void => {
    if (last !== null) return;
    const standings = new Map([...known.active].map((actor) => [actor.id, standingOf(actor)]));
    last = { standings, persisted: known.failure === null ? root.getPersistedSnapshot() : null };
    known.stopAll(root);
  };
  const throwFailure = (): void => {
    if (known.failure !== null) throw known.failure.error;
  };
  root.start();
  if (known.failure !== null) stop();
  throwFailure();
  return {
    isLive: (actor) => (last === null ? known.live(actor) !== null : last.standings.has(actor)),
    standing: (actor) => {
      if (last !== null) return last.standings.get(actor) ?? null;
      const ref = known.live(actor);
      return ref === null ? null : standingOf(ref);
    },
    take: (actor, event) => {
      if (last !== null) throw new InvariantError(`the actors of ${id} are stopped`);
      const ref = known.live(actor);
      if (ref === null || !snapshotOf(ref).can(event)) return false;
      ref.send(event);
      throwFailure();
      return true;
    },
    get output() {
      return snapshotOf(root).output as RunOutput | undefined;
    },
    persisted: () => (last === null ? root.getPersistedSnapshot() : last.persisted),
    stop,
  };
}

/** The actors of one tree by their ids, from the moment each exists, and what broke first in one of them. */
class KnownActors {
  readonly #byId = new Map<string, AnyActorRef>();
  readonly #hear: Hear;
  readonly #inspect: InspectionListener | undefined;
  failure: { readonly error: unknown } | null = null;

  constructor(hear: Hear, inspect: InspectionListener | undefined) {
    this.#hear = hear;
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

  live(id: string): AnyActorRef | null {
    const actor = this.#byId.get(id);
    return actor !== undefined && isActive(actor) ? actor : null;
  }

  /** A root stops its children, except those that it left behind when it broke. */
  stopAll(root: AnyActorRef): void {
    root.stop();
    for (const orphan of this.active) orphan.send({ type: 'xstate.stop' });
    this.#byId.clear();
  }

  #add(actor: AnyActorRef): void {
    this.#byId.set(actor.id, actor);
    actor.on('*', this.#listen);
    const complete = (): void => {
      if (this.#byId.get(actor.id) === actor) this.#byId.delete(actor.id);
    };
    // An actor whose errors have no listener has them thrown by XState in another turn: nothing could catch them there.
    actor.subscribe({ complete, error: this.#fail });
  }

  /** XState throws an error of a listener in a later turn, after the decision was returned without its entry. */
  readonly #listen = (emission: Emission): void => {
    try {
      this.#hear(emission);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #fail = (error: unknown): void => {
    this.failure ??= { error };
  };
}
