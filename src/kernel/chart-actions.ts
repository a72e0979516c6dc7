// What a state or an edge does, out of XState's own action objects: they say their kind by `type`, and hold the
// functions that the machine gave them.

import type { AnyStateMachine } from 'xstate';
import type { Emission } from '../../machines/emission.js';
import { InvariantError } from '../errors.js';

/** Anything that an actor is sent. */
export interface ActorEvent {
  readonly type: string;
}
/** What an actor remembers: plain JSON. */
export type Memory = Record<string, unknown>;

/** What an action works on: the actor that does it. Everything but the memory takes effect after the macrostep. */
export interface Doer {
  readonly memory: Memory;
  assign(update: Memory): void;
  emit(emission: Emission): void;
  /** To a child by its id; null is the parent. */
  send(to: string | null, event: ActorEvent): void;
  spawn(src: string, id: string, input: unknown): void;
  stop(id: string): void;
}
export type Action = (doer: Doer, event: ActorEvent) => void;

/** The name by which XState knows the parent of an actor. */
const PARENT = '#_parent';

type Given<T> = T | ((args: { readonly context: Memory; readonly event: ActorEvent }, params: unknown) => T);

/** The members that the kinds of actions have, each its own. */
interface BuiltIn {
  readonly type: string;
  readonly assignment: Given<Memory>;
  readonly event: Given<never>;
  readonly to: Given<string>;
  readonly actorRef: Given<string>;
  readonly delay?: unknown;
  readonly collect: (args: object, params: unknown) => void;
}

/** @throws InvariantError for an action of another kind */
export function actionOf(machine: AnyStateMachine, action: unknown): Action {
  const named = typeof action === 'string' ? { type: action } : (action as { type: string; params?: unknown });
  const known = machine.implementations.actions as Record<string, BuiltIn | undefined>;
  const builtIn = known[named.type];
  const params = 'params' in named ? named.params : undefined;
  if (typeof action === 'function' || builtIn === undefined || typeof params === 'function')
    refuse(machine, named.type);
  return compiled(machine, named.type, builtIn, params);
}

function compiled(machine: AnyStateMachine, name: string, builtIn: BuiltIn, params: unknown): Action {
  switch (builtIn.type) {
    case 'xstate.assign':
      return assignment(builtIn.assignment, params);
    case 'xstate.emit':
      return (doer, event) => doer.emit(given(builtIn.event, doer, event, params));
    case 'xstate.sendTo':
      if (builtIn.delay !== undefined) refuse(machine, name);
      return (doer, event) => {
        const to = given(builtIn.to, doer, event, params);
        doer.send(to === PARENT ? null : to, given(builtIn.event, doer, event, params));
      };
    case 'xstate.stopChild':
      return (doer, event) => doer.stop(given(builtIn.actorRef, doer, event, params));
    case 'xstate.enqueueActions':
      return (doer, event) => {
        const queue = new Queue();
        builtIn.collect({ context: doer.memory, event, enqueue: queue }, params);
        for (const action of queue.actions) action(doer, event);
      };
    default:
      return refuse(machine, name);
  }
}

/** Both forms of `assign`: a function of the whole, or values and functions by member; all see the memory as it was. */
function assignment(update: Given<Memory>, params: unknown): Action {
  if (typeof update === 'function')
    return (doer, event) => doer.assign(update({ context: doer.memory, event }, params));
  const members = Object.entries(update as Record<string, Given<unknown>>);
  return (doer, event) => {
    const values: Memory = {};
    for (const [name, value] of members) values[name] = given(value, doer, event, params);
    doer.assign(values);
  };
}

const given = <T>(value: Given<T>, { memory }: Doer, event: ActorEvent, params: unknown): T =>
  typeof value === 'function'
    ? (value as (args: object, params: unknown) => T)({ context: memory, event }, params)
    : value;

/** What `enqueueActions` hands to a machine. The actions are done in their order, when all of them are named. */
class Queue {
  readonly actions: Action[] = [];

  assign(update: Given<Memory>): void {
    this.actions.push(assignment(update, undefined));
  }

  emit(emission: Given<Emission>): void {
    this.actions.push((doer, event) => doer.emit(given(emission, doer, event, undefined)));
  }

  sendTo(to: string, sent: Given<ActorEvent>): void {
    this.actions.push((doer, event) => doer.send(to, given(sent, doer, event, undefined)));
  }

  spawnChild(src: string, { id, input }: { readonly id: string; readonly input?: Given<unknown> }): void {
    this.actions.push((doer, event) => doer.spawn(src, id, given(input, doer, event, undefined)));
  }

  stopChild(id: string): void {
    this.actions.push((doer) => doer.stop(id));
  }
}

function refuse(machine: AnyStateMachine, name: string): never {
  throw new InvariantError(`action ${name} of ${machine.id} is of a kind that no chart has`);
}

/** What an actor still has to do outside its memory when a macrostep is over. */
export type Effect<Actor> =
  | { readonly kind: 'say'; readonly emission: Emission }
  | { readonly kind: 'send'; readonly actor: Actor; readonly event: ActorEvent }
  | { readonly kind: 'start' | 'stop'; readonly actor: Actor };
