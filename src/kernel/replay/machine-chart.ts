// Extracts from a recorded machine what a chart shows: its states, and its transitions with their targets.

import { isJsonObject, type JsonObject, canonicalJson } from '../../core/contract/json.js';
import { sha256 } from '../../core/contract/hash.js';
import type { ChartEdge, ChartNode } from '../../core/contract/inspection/inspection.js';
import { edgeId, displayEvent } from '../interpreter/table-driven-actors.js';
import { isMachine, listOf, formatNamed, walkMachine, type WalkedEdge, type WalkedState } from './walk-machine.js';

/** The chart of a machine, without a layout. */
export interface MachineChart {
  /** SHA-256 of its definition as canonical JSON. */
  readonly hash: string;
  readonly machine: string;
  readonly nodes: readonly ChartNode[];
  readonly edges: readonly ChartEdge[];
}

/** The chart of every machine in parsed definitions. */
export const chartsOf = (definitions: JsonObject): readonly MachineChart[] =>
  Object.entries(definitions).flatMap(([name, machine]) => (isMachine(machine) ? [machineChartOf(name, machine)] : []));

export function machineChartOf(name: string, machine: JsonObject): MachineChart {
  const { states, edges } = walkMachine(machine);
  const targets = new TargetIndex(states);
  return {
    hash: sha256(canonicalJson(machine)),
    machine: name,
    nodes: states.map((state) => nodeOf(name, state)),
    edges: edges.map((edge) => edgeOf(edge, edges, targets)),
  };
}

const idOf = (path: readonly string[]): string => path.join('.');

function nodeOf(machine: string, { path, config }: WalkedState): ChartNode {
  const { initial, entry } = config;
  return {
    id: idOf(path),
    name: path.at(-1) ?? machine,
    parent: path.length === 0 ? null : idOf(path.slice(0, -1)),
    type: typeOf(config),
    initial: typeof initial === 'string' ? idOf([...path, initial]) : null,
    entry: listOf(entry).map(formatReference),
  };
}

function typeOf({ type, states }: JsonObject): ChartNode['type'] {
  if (type === 'final') return type;
  return isJsonObject(states) && Object.keys(states).length > 0 ? 'compound' : 'atomic';
}

function edgeOf(edge: WalkedEdge, all: readonly WalkedEdge[], targets: TargetIndex): ChartEdge {
  const { source, event, place, target, actions } = edge;
  return {
    id: edgeId(source, event, place),
    source: idOf(source),
    event: displayEvent(event),
    place,
    target: targets.resolve(source, target),
    guard: guardOf(edge, all),
    actions: actions.map(formatReference),
  };
}

function guardOf(edge: WalkedEdge, all: readonly WalkedEdge[]): string | null {
  const { source, event, place, places, guard } = edge;
  if (guard !== undefined) return formatReference(guard);
  if (places === 1 || place < places - 1) return null;
  const others = all.filter((other) => other.source === source && other.event === event && other !== edge);
  return others.every((other) => other.guard !== undefined) ? 'else' : null;
}

/** `{type, params}` as `type: ` and the values of the params. */
const formatReference = (reference: unknown): string =>
  formatNamed(reference, (name, params) => `${name}: ${formatValues(params)}`);

const formatValues = (params: unknown): string =>
  (isJsonObject(params) ? Object.values(params) : [params])
    .map((value) => (typeof value === 'string' ? value : canonicalJson(value)))
    .join(', ');

/** Resolves the targets of transitions: by the state's id, from the source state, or from its parent. */
class TargetIndex {
  readonly #known = new Set<string>();
  readonly #byName = new Map<string, readonly string[]>();

  constructor(states: readonly WalkedState[]) {
    for (const { path, config } of states) {
      this.#known.add(idOf(path));
      if (typeof config['id'] === 'string') this.#byName.set(config['id'], path);
    }
  }

  /** Null for no target, and for one that does not exist. */
  resolve(source: readonly string[], target: unknown): string | null {
    const [first] = listOf(target);
    if (typeof first !== 'string') return null;
    const path = first.startsWith('#') ? this.#resolveAbsolute(first.slice(1)) : resolveRelative(source, first);
    return path !== null && this.#known.has(idOf(path)) ? idOf(path) : null;
  }

  #resolveAbsolute(target: string): readonly string[] | null {
    const [name = '', ...inner] = target.split('.');
    const found = this.#byName.get(name);
    return found === undefined ? null : [...found, ...inner];
  }
}

/** `.inner` is inside the source; any other target is a sibling of it. */
const resolveRelative = (source: readonly string[], target: string): readonly string[] =>
  target.startsWith('.') ? [...source, ...target.slice(1).split('.')] : [...source.slice(0, -1), ...target.split('.')];
