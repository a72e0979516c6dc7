// The interpreter of the hot path. It does what XState does with the part of it that our machines use, in the same
// order, without what nobody here asks for: a step takes twenty transitions, and each would cost some 20 µs.
//
// The order of things, which is part of every recorded history:
//   T1. An actor takes one event at a time; what is sent to it meanwhile waits.
//   T2. Actions change the memory at once. What they emit, send, spawn or stop happens after the macrostep, in order.
//   T3. A child is in its initial state from the moment it is spawned; what it does there happens when it is started.
//   T4. An actor that is done has first done all of that; then its parent is told.

import type { Emission } from '../../machines/emission.js';
import type { RunOutput } from '../../machines/run.js';
import { InvariantError } from '../errors.js';
import type { Acting, Actors, Beginning, Hear, Onlooker, Standing } from './actors.js';
import { CHILD_DONE, type Chart, type Edge, type Node } from './chart.js';
import type { ActorEvent, Doer, Effect, Memory } from './chart-actions.js';
import { pathOf, valueOf, type PersistedActor } from './persisted-actor.js';

/** What the actors of one tree share. */
interface Troupe {
  readonly byId: Map<string, ChartActor>;
  readonly hear: Hear;
  readonly onlooker: Onlooker | undefined;
}

/** Brings a tree of actors to life: a new one with its root's input, or one that was put down. */
export function chartActors(chart: Chart, id: string, from: Beginning, hear: Hear, onlooker?: Onlooker): Actors {
  const troupe: Troupe = { byId: new Map(), hear, onlooker };
  const root = new ChartActor(troupe, { chart, id, src: '', parent: null, from });
  if ('input' in from) root.start();
  return {
    isLive: (actor) => troupe.byId.get(actor)?.active === true,
    take: (actor, event) => troupe.byId.get(actor)?.take(event) ?? false,
    standing: (actor) => troupe.byId.get(actor)?.standing ?? null,
    get output() {
      return root.output as RunOutput | undefined;
    },
    persisted: () => root.persisted(),
    stop: () => undefined,
  };
}

interface Birth {
  readonly chart: Chart;
  readonly id: string;
  /** The key by which the parent's machine names the chart. */
  readonly src: string;
  readonly parent: ChartActor | null;
  readonly from: Beginning;
}

const NOTHING: ActorEvent = { type: 'xstate.init' };

class ChartActor implements Doer, Acting {
  readonly machine: string;
  readonly #troupe: Troupe;
  readonly #birth: Omit<Birth, 'from'>;
  readonly #children = new Map<string, ChartActor>();
  #memory: Memory;
  #node: Node | null = null;
  event: ActorEvent = NOTHING;
  #status: 'active' | 'done' | 'stopped' = 'active';
  #output: unknown = undefined;
  /** Taking an event, or not yet started. */
  #busy = true;
  readonly #waiting: ActorEvent[] = [];
  /** What the present macrostep has still to do outside the memory. */
  #effects: Effect<ChartActor>[] = [];

  constructor(troupe: Troupe, birth: Birth) {
    const { chart, id, from } = birth;
    this.#troupe = troupe;
    this.#birth = birth;
    this.machine = chart.id;
    troupe.byId.set(id, this);
    if ('persisted' in from) {
      this.#memory = { ...from.persisted.context };
      this.#restore(from.persisted);
    } else {
      this.#memory = chart.memory({ input: from.input });
      this.#enter(chart.initial, NOTHING);
      this.#settle(NOTHING);
    }
  }

  get memory(): Memory {
    return this.#memory;
  }

  get standing(): Standing | null {
    return this.#node === null ? null : { path: this.#node.path, memory: this.#memory };
  }

  get active(): boolean {
    return this.#status === 'active';
  }

  get output(): unknown {
    return this.#output;
  }

  start(): void {
    if (this.#status === 'stopped') return;
    this.#finish();
    this.#drain();
  }

  /** An event from outside: the actor rests. @returns false, with nothing moved, when it cannot be taken now */
  take(event: ActorEvent): boolean {
    if (this.#status !== 'active' || this.#busy) return false;
    const edge = this.#edgeFor(event);
    if (edge === null || edge.idle) return false;
    this.#busy = true;
    this.#step(edge, event);
    this.#drain();
    return true;
  }

  persisted(): PersistedActor {
    const children = [...this.#children].map(
      ([id, child]) => [id, { snapshot: child.persisted(), src: child.#birth.src, syncSnapshot: false }] as const,
    );
    return {
      status: this.#status,
      output: this.#output,
      value: valueOf(this.#resting.path),
      ...{ historyValue: {} },
      context: { ...this.#memory },
      children: Object.fromEntries(children),
    };
  }

  assign(update: Memory): void {
    Object.assign(this.#memory, update);
  }

  emit(emission: Emission): void {
    this.#effects.push({ kind: 'say', emission });
  }

  send(to: string | null, event: ActorEvent): void {
    const actor = to === null ? this.#birth.parent : this.#children.get(to);
    if (actor == null) throw new InvariantError(`${this.#birth.id} has no ${to ?? 'parent'} to send ${event.type} to`);
    this.#effects.push({ kind: 'send', actor, event });
  }

  spawn(src: string, id: string, input: unknown): void {
    this.#troupe.onlooker?.spawns(this, { src, id, input });
    const chart = this.#birth.chart.actor(src);
    const child = new ChartActor(this.#troupe, { chart, id, src, parent: this, from: { input } });
    this.#children.set(id, child);
    this.#effects.push({ kind: 'start', actor: child });
  }

  stop(id: string): void {
    const child = this.#children.get(id);
    if (child === undefined) return;
    this.#children.delete(id);
    this.#effects.push({ kind: 'stop', actor: child });
  }

  get #resting(): Node {
    if (this.#node === null) throw new InvariantError(`${this.#birth.id} is nowhere`);
    return this.#node;
  }

  #restore({ status, output, value, children }: PersistedActor): void {
    if (status === 'error') throw new InvariantError('an actor that broke cannot go on');
    this.#status = status;
    this.#output = output;
    this.#node = this.#birth.chart.restingAt(pathOf(value));
    for (const [id, { src, snapshot }] of Object.entries(children)) {
      const chart = this.#birth.chart.actor(src);
      const child = new ChartActor(this.#troupe, { chart, id, src, parent: this, from: { persisted: snapshot } });
      this.#children.set(id, child);
    }
    this.#busy = false;
  }

  #deliver(event: ActorEvent): void {
    if (this.#status !== 'active') return;
    this.#waiting.push(event);
    if (!this.#busy) this.#drain();
  }

  #drain(): void {
    this.#busy = true;
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      this.#step(this.#edgeFor(event), event);
    }
    this.#busy = false;
  }

  /** One macrostep. */
  #step(edge: Edge | null, event: ActorEvent): void {
    this.event = event;
    this.#troupe.onlooker?.takes(this);
    if (edge !== null) this.#follow(edge, event);
    this.#settle(event);
    this.#finish();
  }

  /** Edges without an event, until none is open. */
  #settle(event: ActorEvent): void {
    while (this.#status === 'active') {
      const edge = this.#openAlways(event);
      if (edge === null) return;
      this.#follow(edge, event);
    }
  }

  /** The innermost state decides first. */
  #openAlways(event: ActorEvent): Edge | null {
    for (let node = this.#node; node !== null; node = node.parent) {
      const edge = this.#open(node.always, event);
      if (edge !== null) return edge;
    }
    return null;
  }

  #follow({ id, actions, enter }: Edge, event: ActorEvent): void {
    for (const action of actions) action(this, event);
    this.#enter(enter, event);
    this.#troupe.onlooker?.moves?.(this.#birth.id, id, this.#resting.path);
  }

  #enter(nodes: readonly Node[], event: ActorEvent): void {
    for (const node of nodes) {
      this.#node = node;
      for (const action of node.entry) action(this, event);
      if (node.final) this.#conclude(node, event);
    }
  }

  #conclude(node: Node, event: ActorEvent): void {
    const { chart } = this.#birth;
    const output = node.output?.({ context: this.#memory, event });
    this.#status = 'done';
    this.#output = chart.output?.({ context: this.#memory, event: { type: `xstate.done.state.${chart.id}`, output } });
  }

  #finish(): void {
    const effects = this.#effects;
    this.#effects = [];
    for (const effect of effects) this.#effect(effect);
    if (this.#status !== 'done') return;
    for (const child of this.#children.values()) child.#halt();
    this.#leave();
    const { id, parent } = this.#birth;
    if (parent === null) return;
    parent.#deliver({ type: CHILD_DONE, output: this.#output, actorId: id } as ActorEvent);
  }

  #effect(effect: Effect<ChartActor>): void {
    switch (effect.kind) {
      case 'say':
        this.#troupe.hear(effect.emission);
        break;
      case 'send':
        effect.actor.#deliver(effect.event);
        break;
      case 'start':
        effect.actor.start();
        break;
      case 'stop':
        effect.actor.#halt();
    }
  }

  /** Stopped by its parent: with its children, and without a word. */
  #halt(): void {
    if (this.#status !== 'active') return;
    this.#status = 'stopped';
    for (const child of this.#children.values()) child.#halt();
    this.#leave();
  }

  #leave(): void {
    const { id } = this.#birth;
    this.#waiting.length = 0;
    if (this.#troupe.byId.get(id) === this) this.#troupe.byId.delete(id);
  }

  /** The innermost state decides first. */
  #edgeFor(event: ActorEvent): Edge | null {
    for (let node = this.#node; node !== null; node = node.parent) {
      const edge = this.#open(node.on.get(event.type) ?? NONE, event);
      if (edge !== null) return edge;
    }
    return null;
  }

  /** The first of these edges that is open. */
  #open(edges: readonly Edge[], event: ActorEvent): Edge | null {
    for (const edge of edges) if (edge.guard === null || edge.guard(this.#memory, event)) return edge;
    return null;
  }
}

const NONE: readonly Edge[] = [];
