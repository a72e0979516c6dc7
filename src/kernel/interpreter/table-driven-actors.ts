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
import type { ObservedActor, Actors, ActorInit, EmissionListener, TransitionObserver, ActorState } from './actors.js';
import {
  CHILD_DONE,
  type CompiledMachine,
  type Edge,
  type MachineNode,
  type ActorEvent,
  type ActionContext,
  type DeferredAction,
  type ActorMemory,
} from './compiled-machine.js';
import { toStatePath, toStateValue, type PersistedActor } from './persisted-actor.js';

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
  #deferred: DeferredAction<TableDrivenActor>[] = [];

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

  #runDeferredAction(deferredAction: DeferredAction<TableDrivenActor>): void {
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
