// Inspection events of live runs for inspectors of the embedding service. XState passes its own actors, events and
// contexts to an inspector, which could send an event, or change one before it is recorded. Events may enter a run only
// as inputs (K2 of tree.ts), so an inspector receives copies, and actors that ignore events.

import { matchesState, type InspectionEvent, type Observer, type StateValue } from 'xstate';
import {
  actorIdOf,
  logicOf,
  parentOf,
  sourceOf,
  TRANSITIONS_FIELD,
  transitionsOf,
  withActorFields,
  type ActorLogic,
} from '../../core/contract/inspection/xstate-fields.js';
import { UsageError } from '../../core/errors.js';
import type { InspectionListener } from './interpreter.js';
import { sha256 } from '../../core/contract/hash.js';
import type { Policy } from '../../core/policy/policy.js';
import { hasWithholdingLane } from '../../core/policy/authorize-run.js';

/** An XState inspector, as `createActor(machine, { inspect })` takes it. */
export type Inspector = Observer<InspectionEvent> | ((event: InspectionEvent) => void);

/**
 * Wraps an inspector so that it cannot affect a run. `log` receives what the inspector throws and its attempts to send.
 */
export function inertInspector(inspector: Inspector, log: (error: unknown) => void): InspectionListener {
  const report = (error: unknown): void => {
    try {
      log(error);
    } catch {
      // XState calls the listener during a decision, so an error of `log` must not propagate.
    }
  };
  const reportRejection = async (result: unknown): Promise<void> => {
    try {
      await result;
    } catch (error) {
      report(error);
    }
  };
  // An async function can be an inspector as well.
  const receive: (event: InspectionEvent) => unknown =
    typeof inspector === 'function' ? inspector : (event) => inspector.next?.(event);
  const copies = new InertCopies((type, actor) => {
    const message = `an inspector sent ${type} to ${actor}: ignored, because events enter a run only through its inputs`;
    report(new UsageError({ code: 'USAGE', message }));
  });
  return (event) => {
    try {
      const result = receive(copies.copyEvent(event));
      // An unhandled rejection would end the process.
      if (typeof result === 'object' && result !== null) void reportRejection(result);
    } catch (error) {
      report(error);
    }
  };
}

type LiveActor = InspectionEvent['actorRef'];

/** The members of a machine's snapshot that are copied. */
interface InspectedSnapshot {
  readonly status: string;
  readonly output: unknown;
  readonly error: unknown;
  readonly value?: StateValue;
  readonly context?: unknown;
  readonly children?: object;
  readonly tags?: Iterable<string>;
}

/** XState's code for an actor in its JSON. */
const ACTOR = 1;

/** Copies for one inspector: the same actor maps to the same object in all its events. */
export class InertCopies {
  readonly #actors = new WeakMap<object, object>();
  readonly #logics = new WeakMap<object, object>();
  readonly #onSend: (type: string, actor: string) => void;
  readonly #hash: ((value: unknown) => object) | null;

  /**
   * @param onSend receives each event that an inspector tries to send
   * @param hash returns the replacement for contexts, outputs, errors and the data of events and actions; null copies
   * them
   */
  constructor(onSend: (type: string, actor: string) => void, hash: ((value: unknown) => object) | null = null) {
    this.#onSend = onSend;
    this.#hash = hash;
  }

  copyEvent(event: InspectionEvent): InspectionEvent {
    const { type, rootId } = event;
    const actorRef = this.#copyActor(event.actorRef);
    const members: Record<string, () => unknown> = {};
    if ('sourceRef' in event) members['sourceRef'] = () => this.#copy(event.sourceRef);
    if ('event' in event) members['event'] = () => this.#copyTyped(event.event);
    if ('snapshot' in event) members['snapshot'] = () => this.#copySnapshot(event.snapshot);
    if ('action' in event) members['action'] = () => this.#copyTyped(event.action);
    const transitions = transitionsOf(event);
    if (transitions !== undefined) members[TRANSITIONS_FIELD] = () => this.#copy(transitions);
    return defineLazily({ type, rootId, actorRef }, members) as unknown as InspectionEvent;
  }

  #copyActor(actor: LiveActor): object {
    const known = this.#actors.get(actor);
    if (known !== undefined) return known;
    const { sessionId } = actor;
    const id = actorIdOf(actor);
    const src = sourceOf(actor);
    const parent = parentOf(actor);
    const send = (event?: { readonly type?: unknown }): void => this.#onSend(String(event?.type), id);
    const members = {
      id,
      sessionId,
      src: typeof src === 'string' ? src : undefined,
      send,
      getSnapshot: () => this.#copySnapshot(snapshotOf(actor)),
      toJSON: () => ({ xstate$$type: ACTOR, id }),
    };
    const copy = withActorFields(members, {
      parent: parent === undefined ? undefined : this.#copyActor(parent),
      logic: this.#copyLogic(logicOf(actor) ?? {}),
    });
    this.#actors.set(actor, copy);
    return copy;
  }

  #copyLogic(logic: ActorLogic): object {
    const known = this.#logics.get(logic);
    if (known !== undefined) return known;
    const parts = { config: () => this.#copy(logic.config), definition: () => this.#copy(logic.definition) };
    const copy = defineLazily({ id: logic.id }, parts);
    this.#logics.set(logic, copy);
    return copy;
  }

  #copySnapshot(snapshot: InspectedSnapshot): object {
    const { status, value, context, children, tags = [] } = snapshot;
    const members: Record<string, () => unknown> = {
      output: () => this.#copyData(snapshot.output),
      error: () => this.#copyData(snapshot.error),
    };
    if (context !== undefined)
      members['context'] = () => (this.#hash === null ? this.#copyMembers(context) : this.#hash(context));
    if (children !== undefined) members['children'] = () => this.#copy(children);
    const copy = defineLazily(value === undefined ? { status } : { status, value: this.#copy(value) }, members);
    const names = new Set(tags);
    return defineHidden(copy, {
      tags: names,
      hasTag: (tag: string) => names.has(tag),
      matches: (other: StateValue) => value !== undefined && matchesState(other, value),
    });
  }

  /** Copies an event or action. Its type is always shown. */
  #copyTyped(value: { readonly type: string }): unknown {
    return this.#hash === null ? this.#copyMembers(value) : { type: value.type, ...this.#hash(value) };
  }

  #copyData(value: unknown): unknown {
    return this.#hash === null || value === undefined ? this.#copy(value) : this.#hash(value);
  }

  /**
   * Copies each member on first access: most inspectors read one or two names from an event that can carry many bytes.
   */
  #copyMembers(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || !isPlain(value)) return this.#copy(value);
    const members = Object.entries(value).map(([key, member]) => [key, () => this.#copy(member)] as const);
    return defineLazily({}, Object.fromEntries(members));
  }

  #copy(value: unknown): unknown {
    if (typeof value === 'function') return inertFunction(value.name);
    if (typeof value !== 'object' || value === null) return value;
    if (isActor(value)) return this.#copyActor(value);
    if (Array.isArray(value)) return value.map((element) => this.#copy(element));
    if (ArrayBuffer.isView(value)) return copyBytes(value);
    if (value instanceof Error) return structuredClone(value);
    return this.#copyEntries(asJson(value));
  }

  #copyEntries(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#copy(value);
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#copy(member)]));
  }
}

/**
 * Copies only the view's own bytes: a small Buffer shares its memory pool, and a structured clone would copy all of it.
 */
const copyBytes = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength).slice();

/** An actor under construction has no snapshot yet. */
function snapshotOf(actor: LiveActor): InspectedSnapshot {
  const none = { status: 'active', output: undefined, error: undefined };
  try {
    return (actor.getSnapshot() as InspectedSnapshot | undefined) ?? none;
  } catch {
    return none;
  }
}

/** Nodes and transitions of a definition reference each other; their own `toJSON` leaves out these cycles. */
function asJson(value: object): unknown {
  const { toJSON } = value as { readonly toJSON?: unknown };
  return typeof toJSON === 'function' ? toJSON.call(value) : value;
}

const isActor = (value: object): value is LiveActor =>
  'sessionId' in value && 'getSnapshot' in value && typeof value.getSnapshot === 'function';

/** Whether the value is a plain object, of any realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return !Array.isArray(value) && (prototype === null || Object.getPrototypeOf(prototype) === null);
}

/** A function of this name that does nothing: inspectors show the names of guards and actions. */
const inertFunction = (name: string): (() => undefined) =>
  Object.defineProperty((): undefined => undefined, 'name', { value: name });

/** Defines members that are computed on first access. */
function defineLazily(object: object, members: Readonly<Record<string, () => unknown>>): object {
  for (const [key, compute] of Object.entries(members)) {
    const settle = (value: unknown): void => {
      Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
    };
    const get = (): unknown => {
      const value = compute();
      settle(value);
      return value;
    };
    Object.defineProperty(object, key, { get, set: settle, enumerable: true, configurable: true });
  }
  return object;
}

/** Defines non-enumerable members, which JSON and object spread omit. */
function defineHidden(object: object, members: Readonly<Record<string, unknown>>): object {
  for (const [key, value] of Object.entries(members)) Object.defineProperty(object, key, { value });
  return object;
}

// Redacts XState's inspection events of a tree in which a lane withholds content. Every inspector sees hashes in place
// of contexts, outputs, and the data of events and actions (C83). States, names and types stay visible.

/** The same listener, with redaction if the policy requires it. */
export function redactInspection(inspect: InspectionListener, policy: Pick<Policy, 'lanes'>): InspectionListener {
  if (!hasWithholdingLane(policy)) return inspect;
  const copies = new InertCopies(() => undefined, hashOf);
  return (event) => inspect(copies.copyEvent(event));
}

/** Replaces a value with the hash of its JSON; a value without JSON has no hash. */
function hashOf(value: unknown): object {
  const text = jsonOf(value);
  return text === undefined ? {} : { sha256: sha256(text), bytes: Buffer.byteLength(text) };
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_key, member: unknown) =>
      ArrayBuffer.isView(member)
        ? Buffer.from(member.buffer, member.byteOffset, member.byteLength).toString('base64')
        : member,
    );
  } catch {
    return undefined;
  }
}
