import type { AnyStateMachine } from 'xstate';
import type { Emission } from '../../../machines/emission.js';
import type { RunOutput } from '../../../machines/run.js';

/** Any event that an actor can receive. */
export interface ActorEvent {
  readonly type: string;
}

/**
 * The live actors of one run tree, by id. Two interpreters implement this: the table-driven one (`tableDrivenActors`),
 * and XState's own (`xstateActors`), which inspectors understand. Both emit the same in the same order; tests compare
 * them.
 * @see table-driven-actors.ts and xstate-actors.ts
 */
export interface Actors {
  /** Whether the actor of this id exists and has not ended. */
  isLive(id: string): boolean;
  /**
   * Sends an event to a live actor and runs it to completion before it returns.
   * @returns false if the actor is not live or cannot take the event; then no state changed
   * @throws the error of a machine; the actors are unusable afterwards
   */
  send(id: string, event: ActorEvent): boolean;
  /** State and context of a live actor; null if there is no live actor of this id. */
  stateOf(id: string): ActorState | null;
  /** The output of the root run; undefined until it ends. */
  readonly output: RunOutput | undefined;
  /** Plain JSON in XState's format. Each interpreter can restore what the other persisted. */
  getPersistedSnapshot(): unknown;
  /** Rejects further events and releases resources. The other members stay readable and no longer change. */
  stop(): void;
}

/** The state of an actor, as state keys from the root, and its context. */
export interface ActorState {
  readonly path: readonly string[];
  readonly memory: Readonly<Record<string, unknown>>;
}

/**
 * Receives the emissions of all machines, in the order in which the machines emit them.
 * @see Tree, which records them with `DecisionBuilder.record`
 */
export type EmissionListener = (emission: Emission) => void;

/** How an actor starts: with an input, or from a persisted state. */
export type ActorInit = { readonly input: unknown } | { readonly persisted: PersistedActor };

/** The machine and id of a tree's root actor, and how it starts. */
export interface RootActor {
  readonly machine: AnyStateMachine;
  readonly id: string;
  readonly from: ActorInit;
}

/** An actor that is about to act: its machine, its context so far, and the current event. */
export interface ObservedActor {
  readonly machine: string;
  readonly memory: ActorMemory;
  readonly event: ActorEvent;
}

/**
 * Is notified of what actors are about to do. It must change nothing, and must not retain the context, which changes.
 */
export interface TransitionObserver {
  onEvent(actor: ObservedActor): void;
  /** Called before the child exists, so before anything that the child does. */
  onSpawn(parent: ObservedActor, child: { readonly src: string; readonly id: string; readonly input: unknown }): void;
  /** Called after each transition with the actor, the edge (`edgeId`) and the resulting state. */
  onTransition?(actor: string, edge: string, statePath: readonly string[]): void;
}

/** The context of an actor: plain JSON. */
export type ActorMemory = Record<string, unknown>;

/** An actor in XState's persisted format. */
export interface PersistedActor {
  readonly status: 'active' | 'done' | 'stopped' | 'error';
  readonly output?: unknown;
  readonly value: StateValue;
  readonly context: ActorMemory;
  readonly children: Readonly<Record<string, { readonly src: string; readonly snapshot: PersistedActor }>>;
}
export type StateValue = string | { readonly [key: string]: StateValue };

/** Converts a state path to XState's state value: `['running', 'ready']` becomes `{ running: 'ready' }`. */
export const toStateValue = (path: readonly string[]): StateValue =>
  path.slice(0, -1).reduceRight<StateValue>((value, key) => ({ [key]: value }), path.at(-1) ?? '');

export function toStatePath(value: StateValue): readonly string[] {
  if (typeof value === 'string') return [value];
  return Object.entries(value).flatMap(([key, rest]) => [key, ...toStatePath(rest)]);
}
