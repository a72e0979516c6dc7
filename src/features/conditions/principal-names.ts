// Conditions compare persons as votes do (C87). Cedar compares texts, so each condition is asked about the principal
// under the names that it has for that person. A name that only looks like the principal is asked about as well: it
// can satisfy a condition, and so narrow, but it never takes the place of the principal's own.

import { isJsonObject } from '../../core/contract/json.js';
import type { Group } from '../../core/contract/policy/roles.js';
import type { RunContext } from '../../core/contract/run/run-context.js';
import type { CedarPolicyJson } from './cedar.js';

/** A principal under names of policy. */
export interface PrincipalIdentity {
  readonly actor: string;
  readonly person: string;
  readonly groups: readonly string[];
  /** The ids of the conditions that are asked about it. */
  readonly conditions: ReadonlySet<string>;
}

/** The names in one condition. */
export interface NamedCondition {
  readonly id: string;
  readonly actors: readonly string[];
  readonly persons: readonly string[];
  readonly comparesGroups: boolean;
}

/** The names that a condition compares with a principal or its person. */
export function namesInCondition(id: string, policy: CedarPolicyJson): NamedCondition {
  const found: FoundNames = { actors: new Set(), persons: new Set(), comparesGroups: false };
  visit(policy, found);
  return { id, actors: [...found.actors], persons: [...found.persons], comparesGroups: found.comparesGroups };
}

interface FoundNames {
  readonly actors: Set<string>;
  readonly persons: Set<string>;
  comparesGroups: boolean;
}

function visit(node: unknown, found: FoundNames): void {
  if (Array.isArray(node)) {
    for (const part of node) visit(part, found);
    return;
  }
  if (!isJsonObject(node)) return;
  const { type, id } = node;
  if (type === 'Actor' && typeof id === 'string') found.actors.add(id);
  if (type === 'Group') found.comparesGroups = true;
  for (const operands of Object.values(node)) {
    if (readsPerson(operands)) addTexts(operands, found.persons);
    visit(operands, found);
  }
}

/** Whether an operand of the expression is `principal.person`. */
const readsPerson = (operands: unknown): boolean =>
  isJsonObject(operands) && [operands['left'], operands['right']].some(isPerson);

function isPerson(node: unknown): boolean {
  const access = isJsonObject(node) ? node['.'] : undefined;
  return isJsonObject(access) && access['attr'] === 'person';
}

/** The texts that it is compared with: one, or those of a set. */
function addTexts(node: unknown, names: Set<string>): void {
  if (Array.isArray(node)) for (const part of node) addTexts(part, names);
  else if (isJsonObject(node)) {
    const { Value: value } = node;
    if (typeof value === 'string') names.add(value);
    for (const part of Object.values(node)) addTexts(part, names);
  }
}

/** In trees of another policy these names are not recorded; those of ASCII letters are compared all the same. */
const foldPlain = (name: string): string => (/^[ -~]*$/.test(name) ? name.toLowerCase().replaceAll(' ', '') : name);

export function identitiesOf(
  { actor: { actor_id }, person }: RunContext,
  conditions: readonly NamedCondition[],
  groups: readonly Group[],
): readonly PrincipalIdentity[] {
  const canonical = person?.canonical_id ?? actor_id;
  const isPersonName = (name: string): boolean =>
    person?.same_as?.includes(name) === true || foldPlain(name) === canonical;
  const isOwnName = (name: string): boolean => name === actor_id || isPersonName(name);
  const isAlike = (name: string): boolean => person?.alike_to?.includes(name) === true && name !== actor_id;
  const groupsOf = (isMember: (name: string) => boolean): readonly string[] =>
    groups.filter(({ persons }) => persons.some(isMember)).map(({ group }) => group);
  const identities = new Identities();
  for (const { id, actors, persons, comparesGroups } of conditions) {
    for (const actor of orElse(actors.filter(isOwnName), actor_id)) {
      for (const own of orElse(persons.filter(isPersonName), canonical))
        identities.add({ actor, person: own, groups: comparesGroups ? groupsOf(isOwnName) : [] }, id);
    }
    const members = comparesGroups ? groups.flatMap((group) => group.persons) : [];
    for (const name of [...actors, ...persons, ...members].filter(isAlike))
      identities.add({ actor: name, person: name, groups: groupsOf((member) => member === name) }, id);
  }
  return identities.all;
}

const orElse = (names: readonly string[], otherwise: string): readonly string[] =>
  names.length === 0 ? [otherwise] : names;

/** Each identity once, with all of its conditions. */
class Identities {
  readonly #all = new Map<string, PrincipalIdentity & { readonly conditions: Set<string> }>();

  add(identity: Omit<PrincipalIdentity, 'conditions'>, condition: string): void {
    const key = JSON.stringify(identity);
    const known = this.#all.get(key) ?? { ...identity, conditions: new Set<string>() };
    known.conditions.add(condition);
    this.#all.set(key, known);
  }

  get all(): readonly PrincipalIdentity[] {
    return [...this.#all.values()];
  }
}
