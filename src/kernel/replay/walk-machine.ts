// Walks through a recorded machine once and lists its states and transitions.

import { isJsonObject, type JsonObject, canonicalJson } from '../../core/contract/json.js';

export interface WalkedState {
  /** The keys from the root; empty for the machine itself, whose transitions apply in all its states. */
  readonly path: readonly string[];
  /** The recorded definition of the state. */
  readonly config: JsonObject;
}

/**
 * A transition of a machine. If an event has several, the first one whose guard holds is taken; `place` counts them
 * from 0.
 */
export interface WalkedEdge {
  readonly source: readonly string[];
  /** `always` for a transition without an event. */
  readonly event: string;
  readonly place: number;
  /** How many transitions this event has. */
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

/** Whether a parsed text has the form of machine definitions. */
export const isDefinitions = (value: unknown): value is JsonObject =>
  isJsonObject(value) && Object.values(value).some(isMachine);

/** Lists the states, each before its inner states, and the transitions that leave them. */
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

/** Wraps a single item in a list. */
export const listOf = (found: unknown): readonly unknown[] =>
  found === undefined ? [] : Array.isArray(found) ? found : [found];

/** A guard or an action: its name, and its arguments as formatted by `params`. */
export function formatNamed(reference: unknown, params: (name: string, given: unknown) => string): string {
  if (typeof reference === 'string') return reference;
  if (!isJsonObject(reference) || typeof reference['type'] !== 'string') return canonicalJson(reference);
  return reference['params'] === undefined ? reference['type'] : params(reference['type'], reference['params']);
}
