// A machine as tables. It is made from the XState machine itself, once, so that there is one definition of every run
// and XState's own interpreter can be held against this one, entry by entry.
//
// Machines keep to a part of XState: atomic, compound and final states, `on`, `always`, guards, entry and transition
// actions, assign, emit, sendTo, spawnChild, stopChild, enqueueActions. Whatever else a definition holds is refused
// here, when the chart is made, and not when a run comes upon it.

import type { AnyStateMachine, AnyStateNode } from 'xstate';
import { InvariantError } from '../../errors.js';
import { compileAction, type CompiledAction, type ActorEvent, type ActorMemory } from './compiled-action.js';

export type Guard = (memory: ActorMemory, event: ActorEvent) => boolean;

/** What a parent is sent when any of its children is done; the event says which. */
export const CHILD_DONE = 'xstate.done.actor.*';

/** How an event is called where it is shown. */
export const displayEvent = (event: string): string => (event === CHILD_DONE ? 'done' : event);

/** What an edge is called, in every chart of the same machine: of several for one event `place` tells which. */
export const edgeId = (source: readonly string[], event: string, index: number): string =>
  `${source.join('.')}|${displayEvent(event)}|${index}`;

/** A way from one state to another, or, without a target, something that is done in passing. */
export interface Edge {
  /** See `edgeId`. */
  readonly id: string;
  readonly guard: Guard | null;
  readonly actions: readonly CompiledAction[];
  /** The states that are entered, outermost first, down to the one where the machine rests; none without a target. */
  readonly enter: readonly MachineNode[];
  /** Nothing to do and nowhere to go: an event that is known only to be ignored counts as not taken. */
  readonly isNoOp: boolean;
}

export interface MachineNode {
  /** The keys from the root: `['running', 'ready']`. */
  readonly path: readonly string[];
  readonly parent: MachineNode | null;
  readonly entry: readonly CompiledAction[];
  readonly always: readonly Edge[];
  /** By the type of the event; `CHILD_DONE` stands for the ends of all children. */
  readonly on: ReadonlyMap<string, readonly Edge[]>;
  readonly output: OutputFunction | null;
  readonly final: boolean;
}

type OutputFunction = (args: {
  readonly context: ActorMemory;
  readonly event: ActorEvent & { readonly output?: unknown };
}) => unknown;

export interface CompiledMachine {
  readonly id: string;
  /** A new memory, for the actor to change. */
  readonly createMemory: (args: { readonly input: unknown }) => ActorMemory;
  /** What entering the machine enters. */
  readonly initial: readonly MachineNode[];
  readonly output: OutputFunction | null;
  /** The state that rests at this path. @throws InvariantError when there is none */
  nodeAt(path: readonly string[]): MachineNode;
  /** The chart of the children that are spawned by this key. @throws InvariantError when there is none */
  actor(src: string): CompiledMachine;
}

const compiledMachines = new WeakMap<AnyStateMachine, CompiledMachine>();

/** @throws InvariantError when the definition holds what a chart cannot */
export function compileMachine(machine: AnyStateMachine): CompiledMachine {
  const known = compiledMachines.get(machine);
  if (known !== undefined) return known;
  const chart = buildCompiledMachine(machine);
  compiledMachines.set(machine, chart);
  return chart;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function buildCompiledMachine(machine: AnyStateMachine): CompiledMachine {
  const nodes = new Map<AnyStateNode, Mutable<MachineNode>>();
  // All of them first, because edges point to any of them.
  const add = (state: AnyStateNode, parent: MachineNode | null): void => {
    const node = newNode(machine, state, parent);
    nodes.set(state, node);
    for (const child of Object.values(state.states)) add(child as AnyStateNode, node);
  };
  add(machine.root, null);
  const nodeOf = (state: AnyStateNode): MachineNode => requireDefined(nodes.get(state), `state ${state.id}`);
  for (const [state, node] of nodes) compileEdges(machine, state, node, nodeOf);
  const byPath = new Map([...nodes].map(([state, node]) => [node.path.join('.'), state] as const));
  const actors = machine.implementations.actors as Record<string, AnyStateMachine | undefined>;
  return {
    id: machine.id,
    createMemory: memoryFactory(machine.config.context),
    initial: [machine.root, ...initialDescendants(machine.root)].map(nodeOf),
    output: (machine.root.output as OutputFunction | undefined) ?? null,
    nodeAt: (path) => nodeOf(requireDefined(byPath.get(path.join('.')), `state ${path.join('.')} of ${machine.id}`)),
    actor: (src) => compileMachine(requireDefined(actors[src], `actor ${src} of ${machine.id}`)),
  };
}

function memoryFactory(context: unknown): CompiledMachine['createMemory'] {
  if (typeof context === 'function') return context as CompiledMachine['createMemory'];
  return () => ({ ...(context as ActorMemory | undefined) });
}

function newNode(machine: AnyStateMachine, state: AnyStateNode, parent: MachineNode | null): Mutable<MachineNode> {
  const { type, invoke, exit, after, history } = state;
  const isSupportedType = type === 'atomic' || type === 'compound' || type === 'final';
  if (!isSupportedType || history !== false || invoke.length > 0 || exit.length > 0 || after.length > 0)
    throwUnsupportedState(state);
  if (type === 'final' && state.parent !== machine.root) throwUnsupportedState(state);
  return {
    path: state.path,
    parent,
    entry: state.entry.map((action) => compileAction(machine, action)),
    always: [],
    on: new Map(),
    output: (state.output as OutputFunction | undefined) ?? null,
    final: type === 'final',
  };
}

/** Draws the edges that leave a state. */
function compileEdges(
  machine: AnyStateMachine,
  state: AnyStateNode,
  node: Mutable<MachineNode>,
  nodeOf: (s: AnyStateNode) => MachineNode,
): void {
  const edgesOf = (transitions: readonly AnyTransition[], event: string): Edge[] =>
    transitions.map((transition, index) => ({
      id: edgeId(state.path, event, index),
      ...compileEdge(machine, state, transition, nodeOf),
    }));
  const on = new Map<string, Edge[]>();
  for (const [descriptor, transitions] of state.transitions) {
    // Of XState's own events, and of wildcards, a chart knows one.
    if (descriptor !== CHILD_DONE && /[*]|^xstate\./.test(descriptor)) throwUnsupportedState(state);
    on.set(descriptor, edgesOf(transitions, descriptor));
  }
  node.on = on;
  node.always = edgesOf(state.always ?? [], 'always');
  // One without a target would be taken for ever.
  if (node.always.some(({ enter }) => enter.length === 0)) throwUnsupportedState(state);
}

type AnyTransition = NonNullable<AnyStateNode['always']>[number];

function compileEdge(
  machine: AnyStateMachine,
  source: AnyStateNode,
  { target, guard, actions, reenter }: AnyTransition,
  nodeOf: (state: AnyStateNode) => MachineNode,
): Omit<Edge, 'id'> {
  const to = target?.[0] as AnyStateNode | undefined;
  if (reenter || to === source || (target !== undefined && target.length > 1)) throwUnsupportedState(source);
  const compiledActions = actions.map((action) => compileAction(machine, action));
  return {
    guard: guard === undefined ? null : compileGuard(machine, guard),
    actions: compiledActions,
    enter: to === undefined ? [] : entryPath(source, to).map(nodeOf),
    isNoOp: to === undefined && compiledActions.length === 0,
  };
}

/** From below what source and target have in common, down to where the target rests. */
function entryPath(source: AnyStateNode, target: AnyStateNode): readonly AnyStateNode[] {
  const ancestors = new Set<AnyStateNode>();
  for (let state: AnyStateNode | undefined = source; state !== undefined; state = state.parent) ancestors.add(state);
  const enteredStates: AnyStateNode[] = [];
  for (let state: AnyStateNode | undefined = target; state !== undefined; state = state.parent) {
    if (ancestors.has(state)) break;
    enteredStates.unshift(state);
  }
  // A target that lies above its source would be left and entered again.
  if (enteredStates.length === 0) throwUnsupportedState(source);
  return [...enteredStates, ...initialDescendants(target)];
}

/** The states that are entered by default below this one. */
function initialDescendants(state: AnyStateNode): readonly AnyStateNode[] {
  if (state.type !== 'compound') return [];
  const next = state.initial.target[0] as AnyStateNode;
  if (state.initial.actions.length > 0) throwUnsupportedState(state);
  return [next, ...initialDescendants(next)];
}

function compileGuard(machine: AnyStateMachine, guard: unknown): Guard {
  const name = typeof guard === 'string' ? guard : (guard as { readonly type: string }).type;
  const params = typeof guard === 'string' ? undefined : (guard as { readonly params?: unknown }).params;
  const guards = machine.implementations.guards as Record<string, unknown>;
  const predicate = guards[name];
  if (typeof predicate !== 'function' || 'check' in predicate || typeof params === 'function') {
    throw new InvariantError(`guard ${name} of ${machine.id} is of a kind that no chart has`);
  }
  return (context, event) =>
    Boolean((predicate as (args: object, params: unknown) => unknown)({ context, event }, params));
}

function requireDefined<T>(value: T | undefined, description: string): T {
  if (value === undefined) throw new InvariantError(`there is no ${description}`);
  return value;
}

function throwUnsupportedState(state: AnyStateNode): never {
  throw new InvariantError(`state ${state.id} is of a kind that no chart has`);
}
