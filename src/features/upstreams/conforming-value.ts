// Validates a value against the schema of an upstream server, within a bounded number of steps. Validation takes time
// proportional to the size of the value times the size of the schema, and it blocks the process meanwhile.

import { isJsonObject, type Json } from '../../core/contract/json.js';
import { listAt, propertiesOf, type JsonSchema } from '../../core/contract/json-schema.js';
import { isSchemaInstance } from '../../core/contract/policy/registered-schema.js';

/** Limit of the work. Each part of a schema counts once for every value that it is applied to. */
const STEPS_MAX = 500_000;
/** Comparing names and constants is faster than walking the parts of a schema. */
const COMPARISONS_PER_STEP = 8;

/** @returns false also if validation would exceed the limit of steps */
export function isConformingValue(schema: JsonSchema, value: Json): boolean {
  const budget = { steps: STEPS_MAX };
  countSteps(budget, schema, value);
  return budget.steps >= 0 && isSchemaInstance(schema, value);
}

interface StepBudget {
  steps: number;
}

/** Counts as if validation tried every branch to its end. */
function countSteps(budget: StepBudget, schema: unknown, value: Json): void {
  budget.steps -= 1;
  if (budget.steps < 0 || !isJsonObject(schema)) return;
  for (const keyword of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const branch of listAt(schema, keyword)) countSteps(budget, branch, value);
  }
  if (schema['not'] !== undefined) countSteps(budget, schema['not'], value);
  const [values, required] = [listAt(schema, 'enum'), listAt(schema, 'required')];
  budget.steps -= values.some((one) => typeof one === 'object') ? values.length : values.length / COMPARISONS_PER_STEP;
  budget.steps -= required.length / COMPARISONS_PER_STEP;
  if (Array.isArray(value)) countItems(budget, schema, value as readonly Json[]);
  else if (isJsonObject(value)) countMembers(budget, schema, Object.entries(value));
}

function countItems(budget: StepBudget, schema: JsonSchema, items: readonly Json[]): void {
  const first = listAt(schema, 'prefixItems');
  if (schema['uniqueItems'] === true) budget.steps -= items.length;
  for (const [index, item] of items.entries()) {
    if (budget.steps < 0) return;
    const part = first[index] ?? schema['items'];
    if (part !== undefined) countSteps(budget, part, item);
  }
}

function countMembers(budget: StepBudget, schema: JsonSchema, members: readonly (readonly [string, Json])[]): void {
  const { additionalProperties: others, propertyNames: names, dependentSchemas: dependent } = schema;
  const known = propertiesOf(schema);
  const whole = Object.fromEntries(members);
  budget.steps -= Object.keys(known).length / COMPARISONS_PER_STEP;
  for (const [name, member] of members) {
    if (budget.steps < 0) return;
    const part = Object.hasOwn(known, name) ? known[name] : others;
    if (part !== undefined) countSteps(budget, part, member);
    if (names !== undefined) countSteps(budget, names, name);
    if (isJsonObject(dependent) && Object.hasOwn(dependent, name)) countSteps(budget, dependent[name], whole);
  }
}
