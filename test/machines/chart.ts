// Machines as charts: every transition of a definition, and a machine that runs alone.

import {
  createActor,
  createMachine,
  spawnChild,
  type Actor,
  type AnyActorRef,
  type AnyStateMachine,
  type AnyStateNode,
  type InputFrom,
} from 'xstate';
import type { Emission } from '../../machines/emission.js';
import { implementationsOf } from '../../src/core/contract/inspection/xstate-fields.js';
import { compileAction } from '../../src/kernel/interpreter/table-driven-actors.js';
import type { ActorEvent, ActorMemory } from '../../src/kernel/interpreter/actors.js';
import { machinesFor, policyOf } from '../../src/kernel/pinned-policy.js';
import { SHIPPED } from '../fixtures/tree.js';

/** The machines of the shipped policy. */
export const machines = machinesFor(policyOf(SHIPPED));

export interface Edge {
  readonly from: string;
  readonly event: string;
  readonly guard: string | null;
  readonly to: string;
}

/** Every node of a chart except the root. */
export function nodesOf(machine: AnyStateMachine): AnyStateNode[] {
  const below = (node: AnyStateNode): AnyStateNode[] => [node, ...Object.values(node.states).flatMap(below)];
  return Object.values(machine.root.states).flatMap(below);
}

/** Every transition of a chart, resolved: events and `always`, each guarded branch separately. */
export function edgesOf(machine: AnyStateMachine): Edge[] {
  return [machine.root, ...nodesOf(machine)].flatMap((node) =>
    [...node.transitions.values()]
      .flat()
      .concat(node.always ?? [])
      .flatMap(({ eventType, guard, target }) =>
        (target ?? [node]).map((to) => ({
          from: node.path.join('.'),
          event: String(eventType),
          guard: guard === undefined ? null : guardText(guard),
          to: to.path.join('.'),
        })),
      ),
  );
}

export function guardText(guard: unknown): string {
  if (typeof guard === 'string') return guard;
  if (typeof guard !== 'object' || guard === null || !('type' in guard)) throw new Error('a guard without a name');
  const { type, params } = guard as { type: string; params?: { state?: string } };
  return params?.state === undefined ? type : `${type}:${params.state}`;
}

/** `always` is an event without a name. */
export const edgeText = ({ from, event, guard, to }: Edge): string =>
  `${from} -${event}${guard === null ? '' : `[${guard}]`}-> ${to}`;

/** The transitions between top-level states, as `from>to`, sorted. */
export function topEdges(machine: AnyStateMachine): string[] {
  const top = (path: string): string => path.split('.')[0]!;
  const crossing = edgesOf(machine).filter(({ from, to }) => top(from) !== top(to));
  return [...new Set(crossing.map(({ from, to }) => `${top(from)}>${top(to)}`))].sort();
}

/**
 * Starts a machine below an empty parent, and records what it and its children emit, what it sends its parent, its
 * states, and its errors.
 */
export function recordMachine<M extends AnyStateMachine>(machine: M, id: string, input: InputFrom<M>) {
  const emissions: Emission[] = [];
  const messages: string[] = [];
  const states: string[] = [];
  const errors: unknown[] = [];
  const parent = createActor(createMachine({ entry: spawnChild(machine as AnyStateMachine, { id, input }) }), {
    id: 'parent',
    inspect: (event) => {
      const actor = event.actorRef as AnyActorRef;
      if (event.type === '@xstate.actor') {
        actor.on('*', (emission: Emission) => emissions.push(emission));
        actor.subscribe({ error: (error: unknown) => errors.push(error) });
      }
      if (event.type === '@xstate.microstep' && actor.id === id) states.push(stateText(event.snapshot));
      if (event.type === '@xstate.event' && actor.id === 'parent') messages.push(event.event.type);
    },
  });
  parent.start();
  const actor = (parent.getSnapshot().children as Record<string, unknown>)[id] as Actor<M>;
  return { actor, said: emissions, told: messages, states, errors };
}

/** `running.ready`, `completed`, ... */
export function stateText(snapshot: unknown): string {
  const flat = (value: unknown): string[] =>
    typeof value === 'string'
      ? [value]
      : Object.entries(value as object).flatMap(([key, rest]) => [key, ...flat(rest)]);
  return flat((snapshot as { value: unknown }).value).join('.');
}

export const topState = (actor: { getSnapshot(): unknown }): string => stateText(actor.getSnapshot()).split('.')[0]!;

/** The effects of one action. `context` has the members that it assigned. */
export interface ActionEffects {
  readonly context: ActorMemory;
  readonly emissions: readonly Emission[];
  /** The recipient is a child's id, or null for the parent. */
  readonly sent: readonly (readonly [to: string | null, event: ActorEvent])[];
  readonly spawned: readonly (readonly [src: string, id: string, input: unknown])[];
  readonly stopped: readonly string[];
}

/** Executes one action of a machine by its name, with any event. */
export function runAction(
  machine: AnyStateMachine,
  name: string,
  context: object,
  event: { readonly type: string },
): ActionEffects {
  const assigned: ActorMemory = {};
  const emissions: Emission[] = [];
  const sent: [string | null, ActorEvent][] = [];
  const spawned: [string, string, unknown][] = [];
  const stopped: string[] = [];
  compileAction(machine, name)(
    {
      memory: context as ActorMemory,
      assign: (update) => void Object.assign(assigned, update),
      emit: (emission) => void emissions.push(emission),
      send: (to, message) => void sent.push([to, message]),
      spawn: (src, id, input) => void spawned.push([src, id, input]),
      stop: (id) => void stopped.push(id),
    },
    event,
  );
  return { context: assigned, emissions, sent, spawned, stopped };
}

/** An object without one of its members. */
export const without = (object: object, name: string): object =>
  Object.fromEntries(Object.entries(object).filter(([member]) => member !== name));

/** The effects of an action that does nothing. */
export const NO_EFFECTS: ActionEffects = { context: {}, emissions: [], sent: [], spawned: [], stopped: [] };

/** Evaluates one guard of a machine by its name, with any event. */
export function testGuard(
  machine: AnyStateMachine,
  name: string,
  context: object,
  event: { readonly type: string },
): boolean {
  const guard = implementationsOf(machine).guards[name] as (args: object, params: object) => boolean;
  return guard({ context, event }, {});
}
