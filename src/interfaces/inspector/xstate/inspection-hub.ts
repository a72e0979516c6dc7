// Shows XState 5 actors to inspectors for XState 4: an observer for `createActor(machine, { inspect })`, which emits
// messages of @xstate/inspect 0.8. It changes nothing and stores no history. Contexts and event payloads are omitted
// unless the options reveal them.

import type { InspectionEvent } from 'xstate';
import { actorIdOf, logicOf, parentOf } from '../../../core/contract/inspection/xstate-fields.js';

/** A message to a viewer; members that contain JSON are strings, as in the protocol. */
export type InspectionMessage =
  | {
      readonly type: 'service.register';
      readonly sessionId: string;
      readonly id: string;
      readonly parent?: string;
      readonly machine: string;
      readonly state: string;
    }
  | { readonly type: 'service.event'; readonly sessionId: string; readonly event: string }
  | { readonly type: 'service.state'; readonly sessionId: string; readonly state: string }
  | { readonly type: 'service.stop'; readonly sessionId: string };

/** What an inspection hub shows of contexts and events. */
export interface InspectionHubOptions {
  /** Returns the visible part of a context. Default: nothing. */
  readonly context?: (context: unknown) => object;
  /** Returns the visible part of an event, in addition to its type. Default: nothing. */
  readonly event?: (event: { readonly type: string }) => object;
}

/** Maximum number of known actors; beyond it, the oldest one is reported as stopped. */
const ACTORS_MAX = 1_024;
/** A longer message is sent without the parts that the options reveal. */
const MESSAGE_CHARS_MAX = 65_536;

/** Collects the inspection events of live actors and sends them to viewers. */
export interface InspectionHub {
  /** For `createActor(machine, { inspect })`. */
  readonly inspect: (event: InspectionEvent) => void;
  /** Reports all live actors, and then all events. @returns a function that unsubscribes */
  listen(listener: (message: InspectionMessage) => void): () => void;
}

type RegisterMessage = Extract<InspectionMessage, { type: 'service.register' }>;

/** The members of a machine's snapshot that are read. */
interface ActorSnapshot {
  readonly status: string;
  readonly value?: unknown;
  readonly context?: unknown;
  readonly tags?: Iterable<string>;
}

/** Creates an inspection hub. At its limit of actors, it drops the oldest one. */
export function inspectionHub(options: InspectionHubOptions = {}): InspectionHub {
  const texts = messageTextsOf(options);
  const actors = new Map<string, RegisterMessage>();
  /** Actors that were created but have no state yet. */
  const starting = new Map<string, Omit<RegisterMessage, 'state'>>();
  const listeners = new Set<(message: InspectionMessage) => void>();
  const publish = (message: InspectionMessage): void => {
    for (const listener of listeners) listener(message);
  };
  const stop = (sessionId: string): void => {
    starting.delete(sessionId);
    if (actors.delete(sessionId)) publish({ type: 'service.stop', sessionId });
  };
  const recordState = (sessionId: string, snapshot: ActorSnapshot, event: { readonly type: string }): void => {
    const state = texts.state(sessionId, snapshot, event);
    const registration = starting.get(sessionId);
    const known = actors.get(sessionId);
    if (registration !== undefined) {
      starting.delete(sessionId);
      for (const oldest of actors.size >= ACTORS_MAX ? actors.keys() : []) {
        stop(oldest);
        break;
      }
      const register = { ...registration, state };
      actors.set(sessionId, register);
      publish(register);
    } else if (known !== undefined) {
      actors.set(sessionId, { ...known, state });
      publish({ type: 'service.state', sessionId, state });
    }
    if (snapshot.status !== 'active') stop(sessionId);
  };
  return {
    inspect(event) {
      const actor = event.actorRef;
      if (event.type === '@xstate.actor') {
        const registration = registrationOf(actor);
        // Only machines have a chart.
        if (registration !== null) starting.set(actor.sessionId, registration);
      } else if (event.type === '@xstate.event' && actors.has(actor.sessionId)) {
        publish({ type: 'service.event', sessionId: actor.sessionId, event: texts.event(event.event) });
      } else if (event.type === '@xstate.snapshot') {
        recordState(actor.sessionId, event.snapshot, event.event);
      }
    },
    listen(listener) {
      for (const register of actors.values()) listener(register);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

interface MessageTexts {
  event(event: { readonly type: string }): string;
  state(sessionId: string, snapshot: ActorSnapshot, event: { readonly type: string }): string;
}

/** Events and states in the format of XState 4, with the parts that the options reveal. */
function messageTextsOf({ context = () => ({}), event: shownEvent = () => ({}) }: InspectionHubOptions): MessageTexts {
  const scxml = (type: string, data: object): object => ({
    name: type,
    data: { ...data, type },
    $$type: 'scxml',
    type: 'external',
  });
  return {
    event: (event) => encodeBounded(scxml(event.type, shownEvent(event)), () => scxml(event.type, {})),
    state(sessionId, snapshot, event) {
      const full = stateOf(sessionId, snapshot, context(snapshot.context), scxml(event.type, shownEvent(event)));
      return encodeBounded(full, () => stateOf(sessionId, snapshot, {}, scxml(event.type, {})));
    },
  };
}

function registrationOf(actor: InspectionEvent['actorRef']): Omit<RegisterMessage, 'state'> | null {
  const { sessionId } = actor;
  const definition = logicOf(actor)?.definition;
  if (typeof definition !== 'object' || definition === null) return null;
  const parent = parentOf(actor)?.sessionId;
  const parentMember = parent === undefined ? {} : { parent };
  return {
    type: 'service.register',
    sessionId,
    id: actorIdOf(actor),
    ...parentMember,
    machine: definitionText(definition),
  };
}

/** The definition without the initial context, which may contain anything; functions become their names. */
function definitionText(definition: object): string {
  const plain = (key: string, value: unknown): unknown => {
    if (key === 'context') return undefined;
    return typeof value === 'function' ? value.name || 'inline' : value;
  };
  const { id, key } = definition as { readonly id?: string; readonly key?: string };
  return JSON.stringify({ ...definition, key: key ?? id }, plain);
}

/** A snapshot in the form of an XState 4 state. */
const stateOf = (sessionId: string, snapshot: ActorSnapshot, context: object, _event: object): object => ({
  value: snapshot.value ?? {},
  context,
  _event,
  _sessionid: sessionId,
  event: { type: (_event as { readonly name: string }).name },
  actions: [],
  activities: {},
  meta: {},
  events: [],
  configuration: [],
  transitions: [],
  children: {},
  done: snapshot.status === 'done',
  tags: [...(snapshot.tags ?? [])],
  changed: true,
});

/** Encodes a message; without the revealed parts if they are too large or JSON cannot encode them. */
function encodeBounded(value: object, without: () => object): string {
  try {
    const text = JSON.stringify(value);
    return text.length <= MESSAGE_CHARS_MAX ? text : JSON.stringify(without());
  } catch {
    return JSON.stringify(without());
  }
}
