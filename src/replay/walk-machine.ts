// A recorded machine, walked through once: its states and its edges, as they were written down.

import { canonicalJson } from '../contract/canonical-json.js';
import { isJsonObject, type JsonObject } from '../contract/json.js';

export interface WalkedState {
  /** The keys from the root; none for the machine itself, whose edges hold in all its states. */
  readonly path: readonly string[];
  /** Everything that was written of it. */
  readonly config: JsonObject;
}

/** An edge of a machine. Of several for one event the first whose guard holds is taken: `place` counts them from 0. */
export interface WalkedEdge {
  readonly source: readonly string[];
  /** `always` for an edge that waits for nothing. */
  readonly event: string;
  readonly place: number;
  /** How many edges this event has. */
  readonly places: number;
  readonly target: unknown;
  readonly guard: unknown;
  readonly actions: readonly unknown[];
}

export interface WalkedMachine {
  readonly states: readonly WalkedState[];
  readonly edges: readonly WalkedEdge[];
}

export const isMachine = (value: unknown): value is JsonObject => isJsonObject(value) && isJsonObject(value['states']);

/** Whether a parsed text is one of machine definitions at all. */
export const isDefinitions = (value: unknown): value is JsonObject =>
  isJsonObject(value) && Object.values(value).some(isMachine);

/** The states, each before those inside it, and the edges that leave them. */
export function walkMachine(machine: JsonObject): WalkedMachine {
  const states: WalkedState[] = [];
  const edges: WalkedEdge[] = [];
  const visit = (path: readonly string[], config: JsonObject): void => {
    states.push({ path, config });
    edges.push(...edgesFrom(path, config));
    const { states: inner } = config;
    for (const [key, child] of Object.entries(isJsonObject(inner) ? inner : {}))
      if (isJsonObject(child)) visit([...path, key], child);
  };
  visit([], machine);
  return { states, edges };
}

function edgesFrom(source: readonly string[], { on, always }: JsonObject): readonly WalkedEdge[] {
  const events = { ...(isJsonObject(on) ? on : {}), ...(always === undefined ? {} : { always }) };
  return Object.entries(events).flatMap(([event, found]) =>
    listOf(found).map((edge, place, all) => {
      const { target, guard, actions } = isJsonObject(edge)
        ? edge
        : { target: edge, guard: undefined, actions: undefined };
      return { source, event, place, places: all.length, target, guard, actions: listOf(actions) };
    }),
  );
}

/** What may stand alone or as one of several. */
export const listOf = (found: unknown): readonly unknown[] =>
  found === undefined ? [] : Array.isArray(found) ? found : [found];

/** A guard or an action: its name, and what it was given, written by `params`. */
export function formatNamed(reference: unknown, params: (name: string, given: unknown) => string): string {
  if (typeof reference === 'string') return reference;
  if (!isJsonObject(reference) || typeof reference['type'] !== 'string') return canonicalJson(reference);
  return reference['params'] === undefined ? reference['type'] : params(reference['type'], reference['params']);
}
