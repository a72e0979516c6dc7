// Where the elements and limits that made a decision are in the policy files.

import type { PolicyFile } from '../../core/contract/policy/pins.js';
import { readPolicyYaml } from '../../core/policy/files/read-policy-file.js';
import type { Policy } from '../../core/policy/policy.js';
import { decidingElements } from './deciding-elements.js';
import type { PolicyElement } from './policy-elements.js';
import type { RecordedDecision } from './recorded-decision.js';

/** A part of a YAML file of policy. */
export interface ElementPlace {
  /** What the part is, such as `tool payments.refund`. */
  readonly name: string;
  readonly lane_id: string | null;
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The text of the line, without the space around it. */
  readonly text: string;
}

/** A file and a JSON pointer into it. */
interface Place {
  readonly file: PolicyFile;
  readonly pointer: string;
}

/** The parts of the YAML files that made a decision. Conditions are in a file of their own. */
export function placesOf(decision: RecordedDecision): readonly ElementPlace[] {
  const { policy, said } = decision;
  const elements = decidingElements(decision).map((element) => ({ element, place: placeOf(element, policy) }));
  const limit = said.decision === 'deny' ? limitPlace(said.rule_id ?? '') : null;
  const all = [
    ...elements.flatMap(({ element, place }) => (place === null ? [] : [{ ...nameOf(element), place }])),
    ...(limit === null ? [] : [{ name: limit.pointer.slice(1).replaceAll('/', '.'), lane_id: null, place: limit }]),
  ];
  const readLine = lineReader(policy);
  return all.map(({ place, ...named }) => ({ ...named, file: `${place.file}.yaml`, ...readLine(place) }));
}

const nameOf = ({ kind, name, lane_id }: PolicyElement): Pick<ElementPlace, 'name' | 'lane_id'> => ({
  name: kind === 'grant' || kind === 'rule' ? name : `${kind.replace('_', ' ')} ${name}`,
  lane_id: kind === 'lane' ? null : lane_id,
});

/** The limits that deny by themselves, in the actions file. */
function limitPlace(rule_id: string): Place | null {
  const [family = '', name = ''] = rule_id.split('.');
  const pointers: Readonly<Record<string, string>> = {
    quota: `/sandbox/${name}_max`,
    budget: `/budgets/${name}`,
    payload: `/limits/payload_${name}`,
    args: `/limits/${name}`,
    sandbox: `/sandbox/${name}_max`,
  };
  const isLimit = family === 'quota' || family === 'budget' || LIMIT_RULES.includes(rule_id);
  const pointer = Object.hasOwn(pointers, family) ? pointers[family] : undefined;
  return isLimit && pointer !== undefined ? { file: 'actions', pointer } : null;
}

const LIMIT_RULES: readonly string[] = ['payload.bytes_max', 'args.content_bytes_max', 'sandbox.depth'];

/** @returns null for a condition, and for what is not in the files */
function placeOf({ kind, lane_id, name }: PolicyElement, policy: Policy): Place | null {
  if (kind === 'condition') return null;
  if (lane_id !== null) {
    const at = [...policy.lanes.keys()].indexOf(lane_id);
    const inLane = lanePointer(kind, name, policy.lanes.get(lane_id));
    return at < 0 || inLane === null ? null : { file: 'lanes', pointer: `/lanes/${at}${inLane}` };
  }
  const pointer = actionsPointer(kind, name, policy);
  return pointer === null ? null : { file: 'actions', pointer };
}

type Lane = Policy['lanes'] extends ReadonlyMap<string, infer Value> ? Value : never;

/** The pointer from the lane on. */
function lanePointer(kind: PolicyElement['kind'], name: string, lane: Lane | undefined): string | null {
  if (lane === undefined) return null;
  const { allowed_callers, allowed_actions, scope, calls = [], refuses_labels = [] } = lane;
  const { tools = [], writes = [], reads = [] } = allowed_actions;
  if (kind === 'lane') return '';
  if (kind === 'prohibition') return at('/scope/prohibits', scope.prohibits, name);
  const space = name.indexOf(' ');
  const [verb, object] = [name.slice(0, space), name.slice(space + 1)];
  switch (verb) {
    case 'role':
      return at('/allowed_callers/roles', allowed_callers.roles, object);
    case 'tool':
      return at('/allowed_actions/tools', tools, object);
    case 'read':
      return at('/allowed_actions/reads', reads, object);
    case 'call':
      return at(
        '/calls',
        calls.map(({ id }) => id),
        object,
      );
    case 'requires':
      return at('/scope/requires', scope.requires, object);
    case 'refuses':
      return at('/refuses_labels', refuses_labels, object);
    default:
      return at(
        '/allowed_actions/writes',
        writes.map(({ table, mode }) => `${mode} ${table}`),
        name,
      );
  }
}

function actionsPointer(kind: PolicyElement['kind'], name: string, policy: Policy): string | null {
  const actions = [...policy.actions.keys()];
  if (kind === 'approval') {
    return at(
      '/approvals',
      policy.approvals.map((rule) => rule.for),
      name,
    );
  }
  if (kind === 'decision_point') {
    return at(
      '/decision_points',
      (policy.decision_points ?? []).map((point) => point.name),
      name,
    );
  }
  const action = name.split(' ').at(-1) ?? '';
  const pointer = at('/actions', actions, action);
  return kind === 'rule' && pointer !== null ? `${pointer}/extensions` : pointer;
}

function at(pointer: string, names: readonly string[], name: string): string | null {
  const index = names.indexOf(name);
  return index < 0 ? null : `${pointer}/${index}`;
}

/** Reads each file at most once. */
function lineReader({ files }: Policy): (place: Place) => Pick<ElementPlace, 'line' | 'text'> {
  const read = new Map<PolicyFile, { readonly lines: readonly string[]; lineOf(pointer: string): number }>();
  return ({ file, pointer }) => {
    let known = read.get(file);
    if (known === undefined) {
      const { document } = readPolicyYaml(files[file]);
      const lines = Buffer.from(files[file]).toString('utf8').split('\n');
      known = { lines, lineOf: document === null ? () => 1 : document.lineOf };
      read.set(file, known);
    }
    const line = known.lineOf(pointer);
    return { line, text: (known.lines[line - 1] ?? '').trim() };
  };
}
