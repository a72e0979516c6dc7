import { createActor, type AnyActorRef, type AnyStateMachine, type InspectionEvent, type Snapshot } from 'xstate';
import type { Emission } from '../../machines/emission.js';
import type { RunOutput } from '../../machines/run.js';
import type { Actors, Beginning, Hear, Standing } from './actors.js';
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

function standingOf(actor: AnyActorRef | null): Standing | null {
  if (actor === null) return null;
  const { value, context } = snapshotOf(actor);
  return { path: pathOf(value), memory: context };
}

/** XState's own actors: slower, and what inspectors understand. `watch` is told all that XState tells an inspector. */
export function xstateActors(
  machine: AnyStateMachine,
  id: string,
  from: Beginning,
  hear: Hear,
  watch: (event: InspectionEvent) => void,
): Actors {
  const byId = new Map<string, AnyActorRef>();
  let failure: { readonly error: unknown } | null = null;
  const fail = (error: unknown): void => {
    failure ??= { error };
  };
  // XState throws what a listener throws in another turn, when the decision has long left without its entry.
  const listen = (emission: Emission): void => {
    try {
      hear(emission);
    } catch (error) {
      fail(error);
    }
  };
  /** Every actor of the tree is known by its id, and heard, from the moment it exists. */
  const adopt = (actor: AnyActorRef): void => {
    byId.set(actor.id, actor);
    actor.on('*', listen);
    const complete = (): void => {
      if (byId.get(actor.id) === actor) byId.delete(actor.id);
    };
    actor.subscribe({ complete, error: fail });
  };
  const inspect = (event: InspectionEvent): void => {
    if (event.type === '@xstate.actor') adopt(event.actorRef as AnyActorRef);
    watch(event);
  };
  const throwFailure = (): void => {
    if (failure !== null) throw failure.error;
  };
  const begin = 'input' in from ? { input: from.input } : { snapshot: from.persisted as unknown as Snapshot<unknown> };
  const root: AnyActorRef = createActor(machine, { id, inspect, ...begin } as object);
  root.start();
  throwFailure();
  const live = (actor: string): AnyActorRef | null => {
    const ref = byId.get(actor);
    return ref !== undefined && snapshotOf(ref).status === 'active' ? ref : null;
  };
  return {
    isLive: (actor) => live(actor) !== null,
    standing: (actor) => standingOf(live(actor)),
    take: (actor, event) => {
      const ref = live(actor);
      if (ref === null || !snapshotOf(ref).can(event)) return false;
      ref.send(event);
      throwFailure();
      return true;
    },
    get output() {
      return snapshotOf(root).output as RunOutput | undefined;
    },
    persisted: () => root.getPersistedSnapshot(),
  };
}
