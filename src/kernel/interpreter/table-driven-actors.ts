// The interpreter of the hot path. It implements the subset of XState that our machines use, in the same order, and
// skips the rest: a step takes twenty transitions, and XState would add some 20 µs to each.
//
// The order of execution is part of every recorded history:
//   T1. An actor processes one event at a time; events sent to it meanwhile are queued.
//   T2. Actions change the context at once. Their emissions, sends, spawns and stops happen after the macrostep, in
//       order.
//   T3. A child is in its initial state as soon as it is spawned; its entry effects happen when it is started.
//   T4. An actor that is done first completes all of that; then it notifies its parent.

import type { Emission } from '../../../machines/emission.js';
import type { RunOutput } from '../../../machines/run.js';
import { InvariantError } from '../../core/errors.js';
import {
  type ObservedActor,
  type Actors,
  type ActorInit,
  type EmissionListener,
  type TransitionObserver,
  type ActorState,
  type ActorEvent,
  type ActorMemory,
  toStatePath,
  toStateValue,
  type PersistedActor,
} from './actors.js';
import type { AnyStateMachine, AnyStateNode } from 'xstate';
import {
  implementationsOf,
  isGuardCombinator,
  builtInActionOf,
  PARENT_TARGET,
  type BuiltInAction,
  type ValueOrResolver,
} from '../../core/contract/inspection/xstate-fields.js';

/** State shared by all actors of one tree. */
interface ActorSystem {
  readonly byId: Map<string, TableDrivenActor>;
  readonly onEmission: EmissionListener;
  readonly observer: TransitionObserver | undefined;
}

/** Starts the actors of a tree: from its root's input, or from a persisted state. */
export function tableDrivenActors(
  chart: CompiledMachine,
  id: string,
  from: ActorInit,
  onEmission: EmissionListener,
  observer?: TransitionObserver,
): Actors {
  const system: ActorSystem = { byId: new Map(), onEmission, observer };
  const root = new TableDrivenActor(system, { chart, id, src: '', parent: null, from });
  if ('input' in from) root.start();
  return {
    isLive: (actor) => system.byId.get(actor)?.isActive === true,
    send: (actor, event) => system.byId.get(actor)?.receive(event) ?? false,
    stateOf: (actor) => system.byId.get(actor)?.state ?? null,
    get output() {
      return root.output as RunOutput | undefined;
    },
    getPersistedSnapshot: () => root.getPersistedSnapshot(),
    stop: () => undefined,
  };
}

interface SpawnOptions {
  readonly chart: CompiledMachine;
  readonly id: string;
  /** The key by which the parent's machine names this machine. */
  readonly src: string;
  readonly parent: TableDrivenActor | null;
  readonly from: ActorInit;
}

/** A side effect that an actor runs when the macrostep is over. */
type DeferredAction =
  | { readonly kind: 'say'; readonly emission: Emission }
  | { readonly kind: 'send'; readonly actor: TableDrivenActor; readonly event: ActorEvent }
  | { readonly kind: 'start' | 'stop'; readonly actor: TableDrivenActor };

const INIT_EVENT: ActorEvent = { type: 'xstate.init' };

class TableDrivenActor implements ActionContext, ObservedActor {
  readonly machine: string;
  readonly #system: ActorSystem;
  readonly #options: Omit<SpawnOptions, 'from'>;
  readonly #children = new Map<string, TableDrivenActor>();
  #memory: ActorMemory;
  #node: MachineNode | null = null;
  event: ActorEvent = INIT_EVENT;
  #status: 'active' | 'done' | 'stopped' = 'active';
  #output: unknown = undefined;
  /** True while it processes an event, and before it is started. */
  #busy = true;
  readonly #queue: ActorEvent[] = [];
  /** Side effects that run at the end of the current macrostep. */
  #deferred: DeferredAction[] = [];

  constructor(system: ActorSystem, options: SpawnOptions) {
    const { chart, id, from } = options;
    this.#system = system;
    this.#options = options;
    this.machine = chart.id;
    system.byId.set(id, this);
    if ('persisted' in from) {
      this.#memory = { ...from.persisted.context };
      this.#restore(from.persisted);
    } else {
      this.#memory = chart.createMemory({ input: from.input });
      this.#enter(chart.initial, INIT_EVENT);
      this.#runAlways(INIT_EVENT);
    }
  }

  get memory(): ActorMemory {
    return this.#memory;
  }

  get state(): ActorState | null {
    return this.#node === null ? null : { path: this.#node.path, memory: this.#memory };
  }

  get isActive(): boolean {
    return this.#status === 'active';
  }

  get output(): unknown {
    return this.#output;
  }

  start(): void {
    if (this.#status === 'stopped') return;
    this.#runDeferred();
    this.#drain();
  }

  /** Processes an event from outside an idle actor. @returns false, with no state changed, if it cannot be taken now */
  receive(event: ActorEvent): boolean {
    if (this.#status !== 'active' || this.#busy) return false;
    const edge = this.#findEdge(event);
    if (edge === null || edge.isNoOp) return false;
    this.#busy = true;
    this.#step(edge, event);
    this.#drain();
    return true;
  }

  getPersistedSnapshot(): PersistedActor {
    const children = [...this.#children].map(
      ([id, child]) =>
        [id, { snapshot: child.getPersistedSnapshot(), src: child.#options.src, syncSnapshot: false }] as const,
    );
    return {
      status: this.#status,
      output: this.#output,
      value: toStateValue(this.#currentNode.path),
      ...{ historyValue: {} },
      context: { ...this.#memory },
      children: Object.fromEntries(children),
    };
  }

  assign(update: ActorMemory): void {
    Object.assign(this.#memory, update);
  }

  emit(emission: Emission): void {
    this.#deferred.push({ kind: 'say', emission });
  }

  send(to: string | null, event: ActorEvent): void {
    const actor = to === null ? this.#options.parent : this.#children.get(to);
    if (actor == null)
      throw new InvariantError(`${this.#options.id} has no ${to ?? 'parent'} to send ${event.type} to`);
    this.#deferred.push({ kind: 'send', actor, event });
  }

  /** @param src a key of `actors` in `setup` of the machine. `createMachines` in machines/index.ts sets them. */
  spawn(src: string, id: string, input: unknown): void {
    this.#system.observer?.onSpawn(this, { src, id, input });
    const chart = this.#options.chart.actor(src);
    const child = new TableDrivenActor(this.#system, { chart, id, src, parent: this, from: { input } });
    this.#children.set(id, child);
    this.#deferred.push({ kind: 'start', actor: child });
  }

  stop(id: string): void {
    const child = this.#children.get(id);
    if (child === undefined) return;
    this.#children.delete(id);
    this.#deferred.push({ kind: 'stop', actor: child });
  }

  get #currentNode(): MachineNode {
    if (this.#node === null) throw new InvariantError(`actor ${this.#options.id} has no state`);
    return this.#node;
  }

  #restore({ status, output, value, children }: PersistedActor): void {
    if (status === 'error') throw new InvariantError('an actor in the error state cannot be restored');
    this.#status = status;
    this.#output = output;
    this.#node = this.#options.chart.nodeAt(toStatePath(value));
    for (const [id, { src, snapshot }] of Object.entries(children)) {
      const chart = this.#options.chart.actor(src);
      const child = new TableDrivenActor(this.#system, { chart, id, src, parent: this, from: { persisted: snapshot } });
      this.#children.set(id, child);
    }
    this.#busy = false;
  }

  #deliver(event: ActorEvent): void {
    if (this.#status !== 'active') return;
    this.#queue.push(event);
    if (!this.#busy) this.#drain();
  }

  #drain(): void {
    this.#busy = true;
    for (let event = this.#queue.shift(); event !== undefined; event = this.#queue.shift()) {
      this.#step(this.#findEdge(event), event);
    }
    this.#busy = false;
  }

  /** Runs one macrostep. */
  #step(edge: Edge | null, event: ActorEvent): void {
    this.event = event;
    this.#system.observer?.onEvent(this);
    if (edge !== null) this.#takeTransition(edge, event);
    this.#runAlways(event);
    this.#runDeferred();
  }

  /** Follows eventless edges until none is enabled. */
  #runAlways(event: ActorEvent): void {
    while (this.#status === 'active') {
      const edge = this.#findEnabledAlways(event);
      if (edge === null) return;
      this.#takeTransition(edge, event);
    }
  }

  /** The innermost state has priority. */
  #findEnabledAlways(event: ActorEvent): Edge | null {
    for (let node = this.#node; node !== null; node = node.parent) {
      const edge = this.#findEnabled(node.always, event);
      if (edge !== null) return edge;
    }
    return null;
  }

  /** The actions are those of `setup` in the files of `machines`; the chart has compiled them. */
  #takeTransition({ id, actions, enter }: Edge, event: ActorEvent): void {
    for (const action of actions) action(this, event);
    this.#enter(enter, event);
    this.#system.observer?.onTransition?.(this.#options.id, id, this.#currentNode.path);
  }

  #enter(nodes: readonly MachineNode[], event: ActorEvent): void {
    for (const node of nodes) {
      this.#node = node;
      for (const action of node.entry) action(this, event);
      if (node.final) this.#complete(node, event);
    }
  }

  #complete(node: MachineNode, event: ActorEvent): void {
    const { chart } = this.#options;
    const output = node.output?.({ context: this.#memory, event });
    this.#status = 'done';
    this.#output = chart.output?.({ context: this.#memory, event: { type: `xstate.done.state.${chart.id}`, output } });
  }

  #runDeferred(): void {
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const deferredAction of deferred) this.#runDeferredAction(deferredAction);
    if (this.#status !== 'done') return;
    for (const child of this.#children.values()) child.#halt();
    this.#unregister();
    const { id, parent } = this.#options;
    if (parent === null) return;
    parent.#deliver({ type: CHILD_DONE, output: this.#output, actorId: id } as ActorEvent);
  }

  #runDeferredAction(deferredAction: DeferredAction): void {
    switch (deferredAction.kind) {
      case 'say':
        this.#system.onEmission(deferredAction.emission);
        break;
      case 'send':
        deferredAction.actor.#deliver(deferredAction.event);
        break;
      case 'start':
        deferredAction.actor.start();
        break;
      case 'stop':
        deferredAction.actor.#halt();
    }
  }

  /** Stops this actor and its children on request of its parent, without notifying it. */
  #halt(): void {
    if (this.#status !== 'active') return;
    this.#status = 'stopped';
    for (const child of this.#children.values()) child.#halt();
    this.#unregister();
  }

  #unregister(): void {
    const { id } = this.#options;
    this.#queue.length = 0;
    if (this.#system.byId.get(id) === this) this.#system.byId.delete(id);
  }

  /** The innermost state has priority. */
  #findEdge(event: ActorEvent): Edge | null {
    for (let node = this.#node; node !== null; node = node.parent) {
      const edge = this.#findEnabled(node.on.get(event.type) ?? NO_EDGES, event);
      if (edge !== null) return edge;
    }
    return null;
  }

  /** The first of these edges whose guard holds. */
  #findEnabled(edges: readonly Edge[], event: ActorEvent): Edge | null {
    for (const edge of edges) if (edge.guard === null || edge.guard(this.#memory, event)) return edge;
    return null;
  }
}

const NO_EDGES: readonly Edge[] = [];

// Machines compiled to tables. The XState machine is the only definition of a run: it is compiled once, so tests can
// compare XState's interpreter with the table-driven one, entry by entry.
//
// Machines use a subset of XState: atomic, compound and final states, `on`, `always`, guards, entry and transition
// actions, assign, emit, sendTo, spawnChild, stopChild, enqueueActions. Compilation rejects anything else, so that no
// run fails on it later.

type Guard = (memory: ActorMemory, event: ActorEvent) => boolean;

/** The event that a parent receives when any child is done. The event's data names the child. */
const CHILD_DONE = 'xstate.done.actor.*';

/** The name of an event as shown to people. */
export const displayEvent = (event: string): string => (event === CHILD_DONE ? 'done' : event);

/** The id of an edge, the same for every compilation of one machine. `index` separates several edges for one event. */
export const edgeId = (source: readonly string[], event: string, index: number): string =>
  `${source.join('.')}|${displayEvent(event)}|${index}`;

/** A transition to another state, or a targetless transition that only executes actions. */
export interface Edge {
  /** As returned by `edgeId`. */
  readonly id: string;
  readonly guard: Guard | null;
  readonly actions: readonly CompiledAction[];
  /** The states to enter, outermost first, down to the resulting leaf state; empty for a targetless transition. */
  readonly enter: readonly MachineNode[];
  /** No actions and no target: the definition lists the event only to ignore it, so it counts as rejected. */
  readonly isNoOp: boolean;
}

interface MachineNode {
  /** The keys from the root: `['running', 'ready']`. */
  readonly path: readonly string[];
  readonly parent: MachineNode | null;
  readonly entry: readonly CompiledAction[];
  readonly always: readonly Edge[];
  /** Keyed by event type. `CHILD_DONE` stands for the completion of any child. */
  readonly on: ReadonlyMap<string, readonly Edge[]>;
  readonly output: OutputFunction | null;
  readonly final: boolean;
}

type OutputFunction = (args: {
  readonly context: ActorMemory;
  readonly event: ActorEvent & { readonly output?: unknown };
}) => unknown;

interface CompiledMachine {
  readonly id: string;
  /** Returns a new context that the actor may change in place. */
  readonly createMemory: (args: { readonly input: unknown }) => ActorMemory;
  /** The states that are entered when the machine starts. */
  readonly initial: readonly MachineNode[];
  readonly output: OutputFunction | null;
  /** Returns the leaf state at this path. @throws InvariantError if it does not exist */
  nodeAt(path: readonly string[]): MachineNode;
  /** Returns the compiled machine that this key spawns. @throws InvariantError if it does not exist */
  actor(src: string): CompiledMachine;
}

const compiledMachines = new WeakMap<AnyStateMachine, CompiledMachine>();

/** @throws InvariantError if the definition uses an unsupported feature */
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
  // Create all nodes first, because an edge can target any of them.
  const add = (state: AnyStateNode, parent: MachineNode | null): void => {
    const node = newNode(machine, state, parent);
    nodes.set(state, node);
    for (const child of Object.values(state.states)) add(child as AnyStateNode, node);
  };
  add(machine.root, null);
  const nodeOf = (state: AnyStateNode): MachineNode => requireDefined(nodes.get(state), `state ${state.id}`);
  for (const [state, node] of nodes) compileEdges(machine, state, node, nodeOf);
  const byPath = new Map([...nodes].map(([state, node]) => [node.path.join('.'), state] as const));
  const actors = implementationsOf(machine).actors as Record<string, AnyStateMachine | undefined>;
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

/** Compiles the edges that leave a state. */
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
    // The only XState event or wildcard that a compiled machine supports is `CHILD_DONE`.
    if (descriptor !== CHILD_DONE && /[*]|^xstate\./.test(descriptor)) throwUnsupportedState(state);
    on.set(descriptor, edgesOf(transitions, descriptor));
  }
  node.on = on;
  node.always = edgesOf(state.always ?? [], 'always');
  // A targetless `always` edge would loop forever.
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

/** The path from below the common ancestor of source and target down to the target's initial leaf. */
function entryPath(source: AnyStateNode, target: AnyStateNode): readonly AnyStateNode[] {
  const ancestors = new Set<AnyStateNode>();
  for (let state: AnyStateNode | undefined = source; state !== undefined; state = state.parent) ancestors.add(state);
  const enteredStates: AnyStateNode[] = [];
  for (let state: AnyStateNode | undefined = target; state !== undefined; state = state.parent) {
    if (ancestors.has(state)) break;
    enteredStates.unshift(state);
  }
  // A target above its source would have to be exited and re-entered, which is not supported.
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
  const predicate = implementationsOf(machine).guards[name];
  if (typeof predicate !== 'function' || isGuardCombinator(predicate) || typeof params === 'function') {
    throw new InvariantError(`guard ${name} of ${machine.id} is not supported by compiled machines`);
  }
  return (context, event) =>
    Boolean((predicate as (args: object, params: unknown) => unknown)({ context, event }, params));
}

function requireDefined<T>(value: T | undefined, description: string): T {
  if (value === undefined) throw new InvariantError(`there is no ${description}`);
  return value;
}

function throwUnsupportedState(state: AnyStateNode): never {
  throw new InvariantError(`state ${state.id} uses a feature that compiled machines do not support`);
}

// Compiles XState's action objects. Their `type` names the kind of action, and they carry the functions that the
// machine definition supplied.

/** The actor that executes an action. Everything except the context takes effect after the macrostep. */
interface ActionContext {
  readonly memory: ActorMemory;
  assign(update: ActorMemory): void;
  emit(emission: Emission): void;
  /** Sends to a child by its id, or to the parent if `to` is null. */
  send(to: string | null, event: ActorEvent): void;
  spawn(src: string, id: string, input: unknown): void;
  stop(id: string): void;
}
type CompiledAction = (actor: ActionContext, event: ActorEvent) => void;

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
