// Compiles XState's action objects. Their `type` names the kind of action, and they carry the functions that the
// machine definition supplied.

import type { AnyStateMachine } from 'xstate';
import type { Emission } from '../../../machines/emission.js';
import {
  builtInActionOf,
  implementationsOf,
  PARENT_TARGET,
  type BuiltInAction,
  type ValueOrResolver,
} from '../../core/contract/inspection/xstate-fields.js';
import { InvariantError } from '../../core/errors.js';

/** Any event that an actor can receive. */
export interface ActorEvent {
  readonly type: string;
}
/** The context of an actor: plain JSON. */
export type ActorMemory = Record<string, unknown>;

/** The actor that executes an action. Everything except the context takes effect after the macrostep. */
export interface ActionContext {
  readonly memory: ActorMemory;
  assign(update: ActorMemory): void;
  emit(emission: Emission): void;
  /** Sends to a child by its id, or to the parent if `to` is null. */
  send(to: string | null, event: ActorEvent): void;
  spawn(src: string, id: string, input: unknown): void;
  stop(id: string): void;
}
export type CompiledAction = (actor: ActionContext, event: ActorEvent) => void;

interface ResolverArgs {
  readonly context: ActorMemory;
  readonly event: ActorEvent;
}
type ActionValue<T> = ValueOrResolver<T, ResolverArgs>;

/** @throws InvariantError for an unsupported kind of action */
export function compileAction(machine: AnyStateMachine, action: unknown): CompiledAction {
  const named = typeof action === 'string' ? { type: action } : (action as { type: string; params?: unknown });
  const known = implementationsOf(machine).actions[named.type];
  const params = 'params' in named ? named.params : undefined;
  if (typeof action === 'function' || known === undefined || typeof params === 'function')
    throwUnsupportedAction(machine, named.type);
  return compileBuiltIn(machine, named.type, builtInActionOf<ResolverArgs>(known), params);
}

function compileBuiltIn(
  machine: AnyStateMachine,
  name: string,
  builtIn: BuiltInAction<ResolverArgs> | null,
  params: unknown,
): CompiledAction {
  switch (builtIn?.kind) {
    case 'assign':
      return compileAssignment(builtIn.assignment, params);
    case 'emit':
      return (actor, event) => actor.emit(resolveValue(builtIn.event, actor, event, params));
    case 'sendTo':
      if (builtIn.delay !== undefined) throwUnsupportedAction(machine, name);
      return (actor, event) => {
        const to = resolveValue(builtIn.to, actor, event, params);
        actor.send(to === PARENT_TARGET ? null : to, resolveValue(builtIn.event, actor, event, params));
      };
    case 'stopChild':
      return (actor, event) => actor.stop(resolveValue(builtIn.actorRef, actor, event, params));
    case 'enqueueActions':
      return (actor, event) => {
        const queue = new ActionQueue();
        builtIn.collect({ context: actor.memory, event, enqueue: queue }, params);
        for (const action of queue.actions) action(actor, event);
      };
    case undefined:
      return throwUnsupportedAction(machine, name);
  }
}

/**
 * Supports both forms of `assign`: one function for all members, or a value or function per member. Each function sees
 * the context as it was before the action.
 */
function compileAssignment(update: ActionValue<ActorMemory>, params: unknown): CompiledAction {
  if (typeof update === 'function')
    return (actor, event) => actor.assign(update({ context: actor.memory, event }, params));
  const members = Object.entries(update as Record<string, ActionValue<unknown>>);
  return (actor, event) => {
    const values: ActorMemory = {};
    for (const [name, value] of members) values[name] = resolveValue(value, actor, event, params);
    actor.assign(values);
  };
}

const resolveValue = <T>(value: ActionValue<T>, { memory }: ActionContext, event: ActorEvent, params: unknown): T =>
  typeof value === 'function'
    ? (value as (args: object, params: unknown) => T)({ context: memory, event }, params)
    : value;

/** The `enqueue` object of `enqueueActions`. The queued actions run in order after the callback returns. */
class ActionQueue {
  readonly actions: CompiledAction[] = [];

  assign(update: ActionValue<ActorMemory>): void {
    this.actions.push(compileAssignment(update, undefined));
  }

  emit(emission: ActionValue<Emission>): void {
    this.actions.push((actor, event) => actor.emit(resolveValue(emission, actor, event, undefined)));
  }

  sendTo(to: string, sentEvent: ActionValue<ActorEvent>): void {
    this.actions.push((actor, event) => actor.send(to, resolveValue(sentEvent, actor, event, undefined)));
  }

  spawnChild(src: string, { id, input }: { readonly id: string; readonly input?: ActionValue<unknown> }): void {
    this.actions.push((actor, event) => actor.spawn(src, id, resolveValue(input, actor, event, undefined)));
  }

  stopChild(id: string): void {
    this.actions.push((actor) => actor.stop(id));
  }
}

function throwUnsupportedAction(machine: AnyStateMachine, name: string): never {
  throw new InvariantError(`action ${name} of ${machine.id} is not supported by compiled machines`);
}

/** A side effect that an actor runs when the macrostep is over. */
export type DeferredAction<Actor> =
  | { readonly kind: 'say'; readonly emission: Emission }
  | { readonly kind: 'send'; readonly actor: Actor; readonly event: ActorEvent }
  | { readonly kind: 'start' | 'stop'; readonly actor: Actor };
