// Compares two recorded machine definitions: which states and transitions were added, removed or changed.

import { type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { isMachine, formatNamed, walkMachine, type WalkedEdge, type WalkedState } from './walk-machine.js';

/**
 * A transition of a machine. If an event has several, the first one whose guard holds is taken; `place` counts them
 * from 0.
 */
export interface Transition {
  readonly source: string;
  /** `always` for a transition without an event. */
  readonly event: string;
  readonly place: number;
  /** Null for actions that do not leave the state. */
  readonly target: string | null;
  readonly guard: string | null;
  readonly actions: readonly string[];
}

/** A state without its transitions and inner states: type, initial state, entry actions. */
export interface StateShape {
  readonly name: string;
  readonly shape: string;
}

export interface Changes<T> {
  readonly added: readonly T[];
  readonly removed: readonly T[];
  readonly changed: readonly { readonly before: T; readonly after: T }[];
}

export interface MachineDiff {
  readonly machine: string;
  readonly states: Changes<StateShape>;
  readonly transitions: Changes<Transition>;
}

export interface DefinitionsDiff {
  readonly same: boolean;
  /** The machines that differ, by name. A machine that only one side has differs in all its states. */
  readonly machines: readonly MachineDiff[];
  /** Behaviour flags that only one side has. */
  readonly flags: { readonly added: readonly number[]; readonly removed: readonly number[] };
  /** Whether registrations of the service, or other parts of the text, also differ. */
  readonly others: readonly string[];
}

/** Compares two parsed texts of `machineDefinitions`. */
export function diffDefinitions(before: JsonObject, after: JsonObject): DefinitionsDiff {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const machineNames = names.filter((name) => isMachine(before[name]) || isMachine(after[name]));
  const machines = machineNames.flatMap((machine) => diffMachine(machine, before[machine], after[machine]) ?? []);
  const others = names.filter(
    (name) => name !== 'flags' && !machineNames.includes(name) && !isSameJson(before[name], after[name]),
  );
  const [oldFlags, newFlags] = [flagsIn(before), flagsIn(after)];
  const flags = {
    added: newFlags.filter((n) => !oldFlags.includes(n)),
    removed: oldFlags.filter((n) => !newFlags.includes(n)),
  };
  const isSame = machines.length + others.length + flags.added.length + flags.removed.length === 0;
  return { same: isSame, machines, flags, others };
}

const flagsIn = ({ flags }: JsonObject): readonly number[] =>
  Array.isArray(flags) ? flags.filter((flag): flag is number => typeof flag === 'number') : [];

const isSameJson = (one: unknown, other: unknown): boolean =>
  one === other || (one !== undefined && other !== undefined && canonicalJson(one) === canonicalJson(other));

function diffMachine(machine: string, before: unknown, after: unknown): MachineDiff | null {
  const [was, is] = [partsOf(before), partsOf(after)];
  const states = compareParts(was.states, is.states);
  const transitions = compareParts(was.transitions, is.transitions);
  const differ = [states, transitions].some(({ added, removed, changed }) =>
    [added, removed, changed].some(({ length }) => length > 0),
  );
  return differ ? { machine, states, transitions } : null;
}

interface MachineParts {
  readonly states: ReadonlyMap<string, StateShape>;
  readonly transitions: ReadonlyMap<string, Transition>;
}

/** The states and transitions of a machine, each under the key that identifies it on the other side. */
function partsOf(machine: unknown): MachineParts {
  if (!isMachine(machine)) return { states: new Map(), transitions: new Map() };
  const { states, edges } = walkMachine(machine);
  return {
    states: new Map(states.map((state) => [nameOf(state.path), { name: nameOf(state.path), shape: shapeOf(state) }])),
    transitions: new Map(
      edges.map((edge) => [`${nameOf(edge.source)} ${edge.event} ${edge.place}`, transitionOf(edge)]),
    ),
  };
}

/** The machine itself, whose transitions apply in all its states, also gets a name. */
const nameOf = (path: readonly string[]): string => (path.length === 0 ? '(machine)' : path.join('.'));

function shapeOf({ path, config }: WalkedState): string {
  const excluded = path.length === 0 ? EXCLUDED_KEYS : [...EXCLUDED_KEYS, 'id'];
  return canonicalJson(Object.fromEntries(Object.entries(config).filter(([name]) => !excluded.includes(name))));
}
const EXCLUDED_KEYS: readonly string[] = ['states', 'on', 'always'];

function transitionOf({ source, event, place, target, guard, actions }: WalkedEdge): Transition {
  return {
    source: nameOf(source),
    event,
    place,
    target: target === undefined ? null : typeof target === 'string' ? target : canonicalJson(target),
    guard: guard === undefined ? null : formatCall(guard),
    actions: actions.map(formatCall),
  };
}

/** `{type, params}` as `type(params)`. */
const formatCall = (reference: unknown): string =>
  formatNamed(reference, (name, params) => `${name}(${canonicalJson(params)})`);

function compareParts<T>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): Changes<T> {
  return {
    added: [...after].filter(([key]) => !before.has(key)).map(([, part]) => part),
    removed: [...before].filter(([key]) => !after.has(key)).map(([, part]) => part),
    changed: [...after].flatMap(([key, part]) => {
      const was = before.get(key);
      return was === undefined || isSameJson(was, part) ? [] : [{ before: was, after: part }];
    }),
  };
}
