// The registrations of a service, from what its module exports.

import type { Registrations } from '../../core/contract/policy/catalogue.js';
import { usageError } from '../../core/errors.js';
import {
  catalogueFrom,
  definitionKindOf,
  type DefinitionKind,
  type DefinedRegistrations,
  type Action,
  type Target,
  type Tool,
} from './define-effects.js';

/** How many values are looked at: a module may export far more than its registrations. */
const VALUES_MAX = 100_000;
/** An export may be a definition, a list of them, or an object with lists, such as the options of `openTurnpike`. */
const DEPTH_MAX = 3;

type Definition = Action | Tool | Target;

/**
 * Finds what a module exports that `defineTool`, `defineAction` and `defineTarget` made. What it exports twice counts
 * once.
 * @param name how an error names the module
 * @returns the registrations, sorted by name, as `openTurnpike` pins them
 * @throws UsageError if the module exports none, or registrations that `openTurnpike` would reject
 */
export function registrationsOfModule(exported: Readonly<Record<string, unknown>>, name: string): Registrations {
  const found = new Set<Definition>();
  const isComplete = collect(Object.values(exported), 1, found, { count: 0 });
  if (!isComplete) throw usageError(`${name} exports more than ${VALUES_MAX} values: export the definitions alone`);
  if (found.size === 0) {
    throw usageError(
      `${name} exports no tool, target or action: export what defineTool, defineTarget and defineAction return, ` +
        'alone, in lists, or as `tools`, `targets` and `actions` of an object',
    );
  }
  const ofKind = (kind: DefinitionKind): readonly Definition[] =>
    [...found].filter((definition) => definitionKindOf(definition) === kind);
  const defined: DefinedRegistrations = {
    actions: ofKind('action') as readonly Action[],
    tools: ofKind('tool') as readonly Tool[],
    targets: ofKind('target') as readonly Target[],
  };
  return catalogueFrom(defined).registrations;
}

/** @returns false if there are too many values */
function collect(
  values: readonly unknown[],
  depth: number,
  found: Set<Definition>,
  looked: { count: number },
): boolean {
  return values.every((value) => {
    looked.count += 1;
    if (looked.count > VALUES_MAX) return false;
    if (typeof value !== 'object' || value === null) return true;
    if (definitionKindOf(value) !== null) found.add(value as Definition);
    else if (depth < DEPTH_MAX && isPlain(value)) return collect(Object.values(value), depth + 1, found, looked);
    return true;
  });
}

/** Lists and literals. Other objects, such as an open Turnpike, may have getters that do something. */
function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isLiteral = prototype === Object.prototype || prototype === null;
  return isLiteral && Object.values(Object.getOwnPropertyDescriptors(value)).every((property) => 'value' in property);
}
