// A machine as tables. It is made from the XState machine itself, once, so that there is one definition of every run
// and XState's own interpreter can be held against this one, entry by entry.
//
// Machines keep to a part of XState: atomic, compound and final states, `on`, `always`, guards, entry and transition
// actions, assign, emit, sendTo, spawnChild, stopChild, enqueueActions. Whatever else a definition holds is refused
// here, when the chart is made, and not when a run comes upon it.

import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { InvariantError } from '../errors.js';
import { actionOf, type Action, type ActorEvent, type Memory } from './chart-actions.js';

export type Guard = (memory: Memory, event: ActorEvent) => boolean;

/** What a parent is sent when any of its children is done; the event says which. */
export const CHILD_DONE = 'xstate.done.actor.*';

/** How an event is called where it is shown. */
export const shownEvent = (event: string): string => (event === CHILD_DONE ? 'done' : event);

/** What an edge is called, in every chart of the same machine: of several for one event `place` tells which. */
export const edgeId = (source: readonly string[], event: string, place: number): string =>
  `${source.join('.')}|${shownEvent(event)}|${place}`;

/** A way from one state to another, or, without a target, something that is done in passing. */
export interface Edge {
  /** See `edgeId`. */
  readonly id: string;
  readonly guard: Guard | null;
  readonly actions: readonly Action[];
  /** The states that are entered, outermost first, down to the one where the machine rests; none without a target. */
  readonly enter: readonly Node[];
  /** Nothing to do and nowhere to go: an event that is known only to be ignored counts as not taken. */
  readonly idle: boolean;
}

export interface Node {
  /** The keys from the root: `['running', 'ready']`. */
  readonly path: readonly string[];
  readonly parent: Node | null;
  readonly entry: readonly Action[];
  readonly always: readonly Edge[];
  /** By the type of the event; `CHILD_DONE` stands for the ends of all children. */
  readonly on: ReadonlyMap<string, readonly Edge[]>;
  readonly output: Output | null;
  readonly final: boolean;
}

type Output = (args: {
  readonly context: Memory;
  readonly event: ActorEvent & { readonly output?: unknown };
}) => unknown;

export interface Chart {
  readonly id: string;
  /** A new memory, for the actor to change. */
  readonly memory: (args: { readonly input: unknown }) => Memory;
  /** What entering the machine enters. */
  readonly initial: readonly Node[];
  readonly output: Output | null;
  /** The state that rests at this path. @throws InvariantError when there is none */
  restingAt(path: readonly string[]): Node;
  /** The chart of the children that are spawned by this key. @throws InvariantError when there is none */
  actor(src: string): Chart;
}

const charts = new WeakMap<AnyStateMachine, Chart>();

/** @throws InvariantError when the definition holds what a chart cannot */
export function chartOf(machine: AnyStateMachine): Chart {
  const known = charts.get(machine);
  if (known !== undefined) return known;
  const chart = draw(machine);
  charts.set(machine, chart);
  return chart;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function draw(machine: AnyStateMachine): Chart {
  const nodes = new Map<AnyStateNode, Mutable<Node>>();
  // All of them first, because edges point to any of them.
  const add = (state: AnyStateNode, parent: Node | null): void => {
    const node = newNode(machine, state, parent);
    nodes.set(state, node);
    for (const child of Object.values(state.states)) add(child as AnyStateNode, node);
  };
  add(machine.root, null);
  const nodeOf = (state: AnyStateNode): Node => known(nodes.get(state), `state ${state.id}`);
  for (const [state, node] of nodes) connect(machine, state, node, nodeOf);
  const byPath = new Map([...nodes].map(([state, node]) => [node.path.join('.'), state] as const));
  const actors = machine.implementations.actors as Record<string, AnyStateMachine | undefined>;
  return {
    id: machine.id,
    memory: memoryOf(machine.config.context),
    initial: [machine.root, ...descent(machine.root)].map(nodeOf),
    output: (machine.root.output as Output | undefined) ?? null,
    restingAt: (path) => nodeOf(known(byPath.get(path.join('.')), `state ${path.join('.')} of ${machine.id}`)),
    actor: (src) => chartOf(known(actors[src], `actor ${src} of ${machine.id}`)),
  };
}

function memoryOf(context: unknown): Chart['memory'] {
  if (typeof context === 'function') return context as Chart['memory'];
  return () => ({ ...(context as Memory | undefined) });
}

function newNode(machine: AnyStateMachine, state: AnyStateNode, parent: Node | null): Mutable<Node> {
  const { type, invoke, exit, after, history } = state;
  const plain = type === 'atomic' || type === 'compound' || type === 'final';
  if (!plain || history !== false || invoke.length > 0 || exit.length > 0 || after.length > 0) refuse(state);
  if (type === 'final' && state.parent !== machine.root) refuse(state);
  return {
    path: state.path,
    parent,
    entry: state.entry.map((action) => actionOf(machine, action)),
    always: [],
    on: new Map(),
    output: (state.output as Output | undefined) ?? null,
    final: type === 'final',
  };
}

/** Draws the edges that leave a state. */
function connect(
  machine: AnyStateMachine,
  state: AnyStateNode,
  node: Mutable<Node>,
  nodeOf: (s: AnyStateNode) => Node,
): void {
  const edgesOf = (transitions: readonly AnyTransition[], event: string): Edge[] =>
    transitions.map((transition, place) => ({
      id: edgeId(state.path, event, place),
      ...edgeOf(machine, state, transition, nodeOf),
    }));
  const on = new Map<string, Edge[]>();
  for (const [descriptor, transitions] of state.transitions) {
    // Of XState's own events, and of wildcards, a chart knows one.
    if (descriptor !== CHILD_DONE && /[*]|^xstate\./.test(descriptor)) refuse(state);
    on.set(descriptor, edgesOf(transitions, descriptor));
  }
  node.on = on;
  node.always = edgesOf(state.always ?? [], 'always');
  // One without a target would be taken for ever.
  if (node.always.some(({ enter }) => enter.length === 0)) refuse(state);
}

type AnyTransition = NonNullable<AnyStateNode['always']>[number];

function edgeOf(
  machine: AnyStateMachine,
  source: AnyStateNode,
  { target, guard, actions, reenter }: AnyTransition,
  nodeOf: (state: AnyStateNode) => Node,
): Omit<Edge, 'id'> {
  const to = target?.[0] as AnyStateNode | undefined;
  if (reenter || to === source || (target !== undefined && target.length > 1)) refuse(source);
  const compiled = actions.map((action) => actionOf(machine, action));
  return {
    guard: guard === undefined ? null : guardOf(machine, guard),
    actions: compiled,
    enter: to === undefined ? [] : entered(source, to).map(nodeOf),
    idle: to === undefined && compiled.length === 0,
  };
}

/** From below what source and target have in common, down to where the target rests. */
function entered(source: AnyStateNode, target: AnyStateNode): readonly AnyStateNode[] {
  const above = new Set<AnyStateNode>();
  for (let state: AnyStateNode | undefined = source; state !== undefined; state = state.parent) above.add(state);
  const way: AnyStateNode[] = [];
  for (let state: AnyStateNode | undefined = target; state !== undefined; state = state.parent) {
    if (above.has(state)) break;
    way.unshift(state);
  }
  // A target that lies above its source would be left and entered again.
  if (way.length === 0) refuse(source);
  return [...way, ...descent(target)];
}

/** The states that are entered by default below this one. */
function descent(state: AnyStateNode): readonly AnyStateNode[] {
  if (state.type !== 'compound') return [];
  const next = state.initial.target[0] as AnyStateNode;
  if (state.initial.actions.length > 0) refuse(state);
  return [next, ...descent(next)];
}

function guardOf(machine: AnyStateMachine, guard: unknown): Guard {
  const name = typeof guard === 'string' ? guard : (guard as { readonly type: string }).type;
  const params = typeof guard === 'string' ? undefined : (guard as { readonly params?: unknown }).params;
  const guards = machine.implementations.guards as Record<string, unknown>;
  const judge = guards[name];
  if (typeof judge !== 'function' || 'check' in judge || typeof params === 'function') {
    throw new InvariantError(`guard ${name} of ${machine.id} is of a kind that no chart has`);
  }
  return (context, event) => Boolean((judge as (args: object, params: unknown) => unknown)({ context, event }, params));
}

function known<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new InvariantError(`there is no ${what}`);
  return value;
}

function refuse(state: AnyStateNode): never {
  throw new InvariantError(`state ${state.id} is of a kind that no chart has`);
}
