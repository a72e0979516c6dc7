// Which parts of a request the conditions of an action read. The engine gets only these: a part that no condition names
// cannot change its answer, and passing values to the engine costs more than deciding by them.

import { isJsonObject } from '../../core/contract/json.js';
import type { CedarPolicyJson } from './cedar.js';

/** Names that are read; null: all, because a condition uses the record as a whole. */
export type ReadNames = ReadonlySet<string> | null;

export interface ReadParts {
  /** The attributes of `context`. */
  readonly context: ReadNames;
  /** The attributes of `context.args`. */
  readonly args: ReadNames;
  /** The attributes of `context.scope`. */
  readonly scope: ReadNames;
  /** Whether ancestors or attributes of the entity matter, and not only its name. */
  readonly principal: boolean;
  readonly action: boolean;
  readonly resource: boolean;
}

export function readPartsOf(policies: readonly CedarPolicyJson[]): ReadParts {
  const found: FoundParts = { context: new Set(), args: new Set(), scope: new Set(), all: new Set() };
  for (const { principal, action, resource, conditions } of policies) {
    if (hasAncestors(principal)) found.all.add('principal');
    if (hasAncestors(action)) found.all.add('action');
    if (hasAncestors(resource)) found.all.add('resource');
    for (const { body } of conditions) visit(body, found);
  }
  const { all } = found;
  return {
    context: all.has('context') ? null : found.context,
    args: all.has('context') || all.has('args') ? null : found.args,
    scope: all.has('context') || all.has('scope') ? null : found.scope,
    principal: all.has('principal'),
    action: all.has('action'),
    resource: all.has('resource'),
  };
}

interface FoundParts {
  readonly context: Set<string>;
  readonly args: Set<string>;
  readonly scope: Set<string>;
  /** Variables that are used as a whole, and `args` and `scope`. */
  readonly all: Set<string>;
}

const hasAncestors = (constraint: { readonly op: string }): boolean => constraint.op === 'in' || 'in' in constraint;

/** @param node an expression of Cedar's JSON, or a part of one */
function visit(node: unknown, found: FoundParts): void {
  if (Array.isArray(node)) {
    for (const part of node) visit(part, found);
    return;
  }
  if (!isJsonObject(node)) return;
  for (const [operator, operands] of Object.entries(node)) {
    if (operator === 'Value') {
      if (isEntity(operands)) for (const variable of VARIABLES) found.all.add(variable);
    } else if (operator === 'Var' && typeof operands === 'string') found.all.add(operands);
    // The keys of a record literal are names that the author chose, and no operators.
    else if (operator === 'Record' && isJsonObject(operands)) visit(Object.values(operands), found);
    else if (!isAttribute(operator, operands, found)) visit(withoutName(operator, operands), found);
  }
}

/** An entity that is named can be one of these, so what the engine knows of them can matter. */
const VARIABLES = ['principal', 'action', 'resource'] as const;
const isEntity = (value: unknown): boolean => isJsonObject(value) && '__entity' in value;
const isNamed = (node: unknown): boolean =>
  isJsonObject(node) && (isEntity(node['Value']) || (Array.isArray(node['Set']) && node['Set'].every(isNamed)));

/** The operands without the entities that the other side is only compared with: their names suffice. */
function withoutName(operator: string, operands: unknown): unknown {
  if (!isJsonObject(operands)) return operands;
  const compares = operator === 'in' || operator === '==' || operator === '!=';
  const other = compares ? operands['right'] : operator === 'is' ? operands['in'] : undefined;
  return isNamed(other) ? operands['left'] : operands;
}

/** Notes an attribute of `context`, `context.args` or `context.scope`; false for any other expression. */
function isAttribute(operator: string, operands: unknown, found: FoundParts): boolean {
  if ((operator !== '.' && operator !== 'has') || !isJsonObject(operands)) return false;
  const { left, attr } = operands;
  if (typeof attr !== 'string') return false;
  if (isContext(left)) {
    found.context.add(attr);
    if ((attr === 'args' || attr === 'scope') && operator === '.') found.all.add(attr);
    return true;
  }
  const inner = isJsonObject(left) ? left['.'] : undefined;
  const record = isJsonObject(inner) && isContext(inner['left']) ? inner['attr'] : undefined;
  if (record !== 'args' && record !== 'scope') return false;
  found.context.add(record);
  found[record].add(attr);
  return true;
}

const isContext = (node: unknown): boolean => isJsonObject(node) && node['Var'] === 'context';
