import type { Emission } from '../../../machines/emission.js';
import type { RunOutput } from '../../../machines/run.js';
import type { ActorEvent, ActorMemory } from './compiled-action.js';
import type { PersistedActor } from './persisted-actor.js';

/**
 * The live actors of one run tree, by their ids. Two make them live: our tables (`chartActors`), and XState itself
 * (`xstateActors`), which inspectors understand. Both say the same in the same order: tests hold one against the other.
 */
export interface Actors {
  /** Whether there is an actor of this id that has not ended. */
  isLive(id: string): boolean;
  /**
   * Sends an event to an actor, if that is live and can take it: it is all done when this returns.
   * @returns false when nothing moved @throws what a machine threw; the actors are broken then
   */
  send(id: string, event: ActorEvent): boolean;
  /** A live actor, to look at; null where there is none. */
  stateOf(id: string): ActorState | null;
  /** How the root run ended; undefined while it has not. */
  readonly output: RunOutput | undefined;
  /** Plain JSON, in XState's form: either can go on from what the other has put down. */
  getPersistedSnapshot(): unknown;
  /** Takes no more events and releases resources. Everything else can still be read, and does not change. */
  stop(): void;
}

/** Where an actor stands, as the keys of its state from the root on, and what it remembers. */
export interface ActorState {
  readonly path: readonly string[];
  readonly memory: Readonly<Record<string, unknown>>;
}

/** Told what the machines say, in the order in which they say it. */
export type EmissionListener = (emission: Emission) => void;

/** Where an actor begins. */
export type ActorInit = { readonly input: unknown } | { readonly persisted: PersistedActor };

/** An actor that is about to do something: its machine, what it remembers until then, and the event it is taking. */
export interface ObservedActor {
  readonly machine: string;
  readonly memory: ActorMemory;
  readonly event: ActorEvent;
}

/** Told what actors are about to do, with all that they go by. It changes nothing, and keeps no memory: that moves. */
export interface TransitionObserver {
  onEvent(actor: ObservedActor): void;
  /** Told before the child is there, and so before anything that the child does. */
  onSpawn(parent: ObservedActor, child: { readonly src: string; readonly id: string; readonly input: unknown }): void;
  /** Told after each transition: of which actor, by which edge (`edgeId`), and where the machine rests then. */
  onTransition?(actor: string, edge: string, statePath: readonly string[]): void;
}
