// An adapter to @statelyai/inspect: an observer for `createActor` that forwards to an inspector created with that
// package (an optional peer dependency; nothing of it is loaded here). It forwards a substitute for each actor.
// Otherwise the package would send whole contexts and events, the initial context inside a definition even with its
// sanitize option, and a later snapshot.

import type { InspectionEvent } from 'xstate';
import { actorIdOf, logicOf, parentOf, withActorFields } from '../../../core/contract/inspection/xstate-fields.js';
import type { InspectionHubOptions } from './inspection-hub.js';

/** The part of an inspector of @statelyai/inspect 0.7 that is used. */
export interface StatelyInspector {
  readonly inspect: { readonly next?: (event: InspectionEvent) => void };
}

type ActorReference = InspectionEvent['actorRef'];

/** For `createActor(machine, { inspect })`. Contexts and events are omitted unless the options reveal them. */
export function statelyObserver(
  inspector: StatelyInspector,
  { context = () => ({}), event: shownEvent = () => ({}) }: InspectionHubOptions = {},
): (event: InspectionEvent) => void {
  const eventOf = (event: { readonly type: string }): object => ({ ...shownEvent(event), type: event.type });
  const snapshotOf = (snapshot: unknown): object => {
    const { status, value, context: memory } = (snapshot ?? {}) as Readonly<Record<string, unknown>>;
    return { status, value, context: context(memory) };
  };
  return (event) => {
    if (event.type !== '@xstate.actor' && event.type !== '@xstate.event' && event.type !== '@xstate.snapshot') return;
    const actorRef = actorProxyOf(event.actorRef, snapshotOf);
    const sanitized = {
      type: event.type,
      rootId: event.rootId,
      actorRef,
      ...('event' in event ? { event: eventOf(event.event) } : {}),
      ...('snapshot' in event ? { snapshot: snapshotOf(event.snapshot) } : {}),
      ...('sourceRef' in event ? { sourceRef: idOf(event.sourceRef) } : {}),
    };
    inspector.inspect.next?.(sanitized as unknown as InspectionEvent);
  };
}

const idOf = (actor: Pick<ActorReference, 'sessionId'> | undefined): object | undefined =>
  actor === undefined ? undefined : { sessionId: actor.sessionId };

/** A substitute with the actor's current snapshot. */
function actorProxyOf(actor: ActorReference, snapshotOf: (snapshot: unknown) => object): object {
  const snapshot = snapshotOf(actor.getSnapshot());
  const config = logicOf(actor)?.config;
  return withActorFields(
    { sessionId: actor.sessionId, id: actorIdOf(actor), getSnapshot: () => snapshot },
    { parent: idOf(parentOf(actor)), logic: config === undefined ? undefined : { config: withoutContext(config) } },
  );
}

const withoutContext = (config: unknown): object => {
  const { context, ...rest } = config as Readonly<Record<string, unknown>>;
  return context === undefined ? rest : { ...rest, context: {} };
};
