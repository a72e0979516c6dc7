// The members of XState's objects that its public types do not have, or that its documentation does not promise. Only
// this file reads them, so that a new version of XState can break one file; its tests run against every supported
// version. It reads structures and imports no XState, so that the kernel and the adapters of inspectors can use it.

import { omitUndefined } from '../../omit-undefined.js';

/** The versions of XState that the tests of this file cover, as package.json requires them. */
export const SUPPORTED_XSTATE = '~5.33.3';

/** The id of an actor within its parent. The type of an inspection event's actor does not have it. */
export const actorIdOf = (actor: object): string => (actor as { readonly id: string }).id;

/** The parent of an actor, or undefined for a root actor. */
export const parentOf = <Actor extends object>(actor: Actor): Actor | undefined =>
  (actor as { readonly _parent?: Actor })._parent;

/** The members of the logic of a machine actor; other actors have none of them. */
export interface ActorLogic {
  readonly id?: unknown;
  readonly config?: unknown;
  readonly definition?: unknown;
}

/** The logic of an actor. */
export const logicOf = (actor: object): ActorLogic | undefined => (actor as { readonly logic?: ActorLogic }).logic;

/** The key under which the parent spawned the actor; a root actor has its own logic there. */
export const sourceOf = (actor: object): unknown => (actor as { readonly src?: unknown }).src;

/** Returns an actor's copy with the members under which inspectors look for parent and logic. */
export const withActorFields = <Copy extends object>(
  copy: Copy,
  { parent, logic }: { readonly parent: object | undefined; readonly logic: object | undefined },
): Copy => ({
  ...copy,
  ...omitUndefined({ logic, _parent: parent }),
});

/** The name of the member of an inspection event that lists the transitions taken. */
export const TRANSITIONS_FIELD = '_transitions';

/** The transitions of an inspection event; undefined for an event of another kind. */
export const transitionsOf = (event: object): unknown => (event as { readonly _transitions?: unknown })._transitions;

/** XState's name for an actor's parent as the target of `sendTo`. */
export const PARENT_TARGET = '#_parent';

/** A value, or the function that resolves it from context, event and parameters. */
export type ValueOrResolver<T, Args extends object> = T | ((args: Args, params: unknown) => T);

/** A built-in action of XState: the kind and the members that its creator was given. */
export type BuiltInAction<Args extends object> =
  | { readonly kind: 'assign'; readonly assignment: ValueOrResolver<Record<string, unknown>, Args> }
  | { readonly kind: 'emit'; readonly event: ValueOrResolver<never, Args> }
  | {
      readonly kind: 'sendTo';
      readonly to: ValueOrResolver<string, Args>;
      readonly event: ValueOrResolver<never, Args>;
      readonly delay: unknown;
    }
  | { readonly kind: 'stopChild'; readonly actorRef: ValueOrResolver<string, Args> }
  | { readonly kind: 'enqueueActions'; readonly collect: (args: object, params: unknown) => void };

/** The members of all kinds of built-in actions; each kind has some of them. */
interface ActionMembers {
  readonly type?: unknown;
  readonly assignment: never;
  readonly event: never;
  readonly to: never;
  readonly delay: unknown;
  readonly actorRef: never;
  readonly collect: never;
}

/** Reads an action of `machine.implementations.actions`. @returns null for any other kind of action */
export function builtInActionOf<Args extends object>(action: unknown): BuiltInAction<Args> | null {
  const known = action as ActionMembers;
  switch (known.type) {
    case 'xstate.assign':
      return { kind: 'assign', assignment: known.assignment };
    case 'xstate.emit':
      return { kind: 'emit', event: known.event };
    case 'xstate.sendTo':
      return { kind: 'sendTo', to: known.to, event: known.event, delay: known.delay };
    case 'xstate.stopChild':
      return { kind: 'stopChild', actorRef: known.actorRef };
    case 'xstate.enqueueActions':
      return { kind: 'enqueueActions', collect: known.collect };
    default:
      return null;
  }
}

/** The implementations that a machine was set up with, by name. */
export interface MachineImplementations {
  readonly actions: Readonly<Record<string, unknown>>;
  readonly guards: Readonly<Record<string, unknown>>;
  readonly actors: Readonly<Record<string, unknown>>;
}

export const implementationsOf = (machine: object): MachineImplementations =>
  (machine as { readonly implementations: MachineImplementations }).implementations;

/** Whether a guard is one of XState's combinators (`and`, `or`, `not`, `stateIn`) instead of a predicate. */
export const isGuardCombinator = (guard: object): boolean => 'check' in guard;
