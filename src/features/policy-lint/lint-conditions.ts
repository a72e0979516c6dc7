// Careless conditions: those that nothing can satisfy, and names that no actor, role or group has. The validator of
// Cedar knows types only.

import { quoteForMessage } from '../../core/contract/finding-text.js';
import { isJsonObject } from '../../core/contract/json.js';
import { suggestion } from '../../core/contract/policy/near-names.js';
import type { Condition, ConditionScope } from '../../core/policy/policy-features.js';
import type { Policy } from '../../core/policy/policy.js';
import type { LintMessage } from '../../home/policy/policy-linter.js';
import { LINT_RULES, type LintRule } from './lint-rules.js';

/** @param updated when the policy was updated last, such as `2026-01-05` */
export function lintConditions(path: string, policy: Policy, updated: string): readonly LintMessage[] {
  const known = knownNames(policy);
  return (policy.conditions?.all ?? []).flatMap((condition) =>
    [...findCareless(condition, known, updated)].map(({ rule, message }) => ({
      ...{ file: path, line: condition.line, rule, message, remedy: LINT_RULES[rule] },
      severity: rule === 'condition.past' || rule === 'condition.unknown_actor' ? 'warning' : 'error',
    })),
  );
}

interface Careless {
  readonly rule: LintRule;
  readonly message: string;
}

function* findCareless({ id, scope }: Condition, known: KnownNames, updated: string): Generator<Careless> {
  for (const clause of clausesOf(scope)) {
    const contradiction = findContradiction(clause);
    if (contradiction !== null) {
      const message = `${id} can never be satisfied: ${contradiction}`;
      yield { rule: 'condition.unreachable', message };
    }
    const past = clause.map(endOf).find((end) => end !== null && end < updated);
    if (past !== undefined) {
      yield { rule: 'condition.past', message: `${id} applies only before ${String(past)}, which is in the past` };
    }
  }
  for (const [type, name] of namedEntities(scope)) yield* findUnknown(id, type, name, known);
}

/** The parts of each `when` clause that must all be true. Several clauses are one. */
function clausesOf({ conditions }: ConditionScope): readonly (readonly unknown[])[] {
  return [conditions.flatMap(({ kind, body }) => (kind === 'when' ? conjunctsOf(body) : []))];
}

function conjunctsOf(node: unknown): readonly unknown[] {
  const and = isJsonObject(node) ? node['&&'] : undefined;
  return isJsonObject(and) ? [...conjunctsOf(and['left']), ...conjunctsOf(and['right'])] : [node];
}

/** A comparison of something with a literal, in one direction. */
interface Comparison {
  readonly subject: string;
  readonly operator: '==' | '!=' | '<' | '<=' | '>' | '>=';
  readonly literal: string | number | boolean;
}

const TURNED = { '==': '==', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

function comparisonOf(node: unknown): Comparison | null {
  if (!isJsonObject(node)) return null;
  for (const [name, turned] of Object.entries(TURNED)) {
    const operands = node[name];
    if (!isJsonObject(operands)) continue;
    const operator = name as Comparison['operator'];
    const [left, right] = [literalOf(operands['left']), literalOf(operands['right'])];
    if (left === null && right !== null) return { subject: JSON.stringify(operands['left']), operator, literal: right };
    if (left !== null && right === null) {
      return { subject: JSON.stringify(operands['right']), operator: turned, literal: left };
    }
  }
  return null;
}

function literalOf(node: unknown): Comparison['literal'] | null {
  const value = isJsonObject(node) ? node['Value'] : undefined;
  if (isJsonObject(value)) return JSON.stringify(value);
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

function findContradiction(clause: readonly unknown[]): string | null {
  const all = clause.map(comparisonOf).filter((comparison) => comparison !== null);
  for (const [index, one] of all.entries()) {
    for (const other of all.slice(index + 1)) {
      if (one.subject !== other.subject || !excludes(one, other)) continue;
      return `it asks for ${one.operator} ${shown(one)} and for ${other.operator} ${shown(other)} of the same value`;
    }
  }
  return null;
}

const shown = ({ literal }: Comparison): string => quoteForMessage(String(literal));

/** Whether no value satisfies both. */
function excludes(one: Comparison, other: Comparison): boolean {
  if (one.operator === '==') return !satisfies(one.literal, other);
  if (other.operator === '==') return !satisfies(other.literal, one);
  const [low, high] = one.operator.startsWith('>') ? [one, other] : [other, one];
  if (!low.operator.startsWith('>') || !high.operator.startsWith('<')) return false;
  if (typeof low.literal !== 'number' || typeof high.literal !== 'number') return false;
  // Longs: between 5 and 6 there is nothing.
  const [least, most] = [low.literal + Number(low.operator === '>'), high.literal - Number(high.operator === '<')];
  return least > most;
}

function satisfies(value: Comparison['literal'], { operator, literal }: Comparison): boolean {
  if (operator === '==') return value === literal;
  if (operator === '!=') return value !== literal;
  if (typeof value !== 'number' || typeof literal !== 'number') return true;
  if (operator === '<') return value < literal;
  if (operator === '<=') return value <= literal;
  return operator === '>' ? value > literal : value >= literal;
}

/** The day before which `context.now` must be; null for any other expression. */
function endOf(node: unknown): string | null {
  const operands = isJsonObject(node) ? (node['<'] ?? node['<=']) : undefined;
  if (!isJsonObject(operands)) return null;
  const { left, right } = operands;
  if (JSON.stringify(left) !== NOW) return null;
  const [text] = isJsonObject(right) && Array.isArray(right['datetime']) ? (right['datetime'] as unknown[]) : [];
  const day = literalOf(text);
  return typeof day === 'string' ? day.slice(0, 10) : null;
}
const NOW = JSON.stringify({ '.': { left: { Var: 'context' }, attr: 'now' } });

type KnownNames = Readonly<Record<string, ReadonlySet<string>>>;

const knownNames = ({ roles, groups = [], catalogue: { registrations } }: Policy): KnownNames => ({
  Role: new Set(roles.keys()),
  Group: new Set(groups.map(({ group }) => group)),
  Tool: new Set(registrations.tools.map(({ name }) => name)),
  Table: new Set(registrations.targets.map(({ name }) => name)),
  Actor: new Set(groups.flatMap(({ persons }) => persons)),
});

function* findUnknown(id: string, type: string, name: string, known: KnownNames): Generator<Careless> {
  const quoted = quoteForMessage(name);
  if (type === 'Role' || type === 'Group') {
    if (known[type]?.has(name) === true) return;
    const message = `${id} names the ${type.toLowerCase()} ${quoted}, which is not in the roles${suggestion(name, known[type] ?? [])}`;
    yield { rule: 'condition.unknown_name', message };
  } else if (type === 'Actor') {
    if (known['Role']?.has(name) === true) {
      yield {
        rule: 'condition.unknown_actor',
        message: `${id} names the actor ${quoted}, which is a role: principal in Role::${quoted}`,
      };
    } else if (known['Actor']?.has(name) === false) {
      const near = suggestion(name, known['Actor']);
      if (near !== '')
        yield {
          rule: 'condition.unknown_actor',
          message: `${id} names the actor ${quoted}, who is in no group${near}`,
        };
    }
  }
}

/** Every entity that a condition names, once. */
function namedEntities(scope: ConditionScope): readonly (readonly [string, string])[] {
  const found = new Map<string, readonly [string, string]>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    else if (isJsonObject(node)) {
      const { type, id } = node;
      if (typeof type === 'string' && typeof id === 'string') found.set(`${type} ${id}`, [type, id]);
      Object.values(node).forEach(visit);
    }
  };
  visit(scope);
  return [...found.values()];
}
