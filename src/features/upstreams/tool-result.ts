// Converts the answer of an upstream tool to its registered form: the known kinds of content, member by member, within
// the size limit. A malformed answer is an error, because then the outcome of the call is unknown.

import { isJsonObject, type Json, type JsonObject } from '../../core/contract/json.js';
import { type JsonSchema, listAt, propertiesOf } from '../../core/contract/json-schema.js';
import { isSchemaInstance } from '../../core/contract/policy/registered-schema.js';
import { ActionFailedError } from '../../core/errors.js';
import { attachToolExplanation } from '../../runtime/effects/tool-explanation.js';
import { encodeOutput, type ConvertedSchema } from '../../runtime/effects/convert-schema.js';

const CONTENT_MAX = 1_000;
/** Bytes of an answer that are reserved for members other than content. */
const FRAME_BYTES = 256;

const text = { type: 'string' };
const block = (kind: string, members: JsonSchema, required: readonly string[]): JsonSchema => ({
  type: 'object',
  properties: { type: { const: kind }, ...members },
  required: ['type', ...required],
  additionalProperties: false,
});
const resource = (required: string): JsonSchema => ({
  type: 'object',
  properties: { uri: text, mimeType: text, [required]: text },
  required: ['uri', required],
  additionalProperties: false,
});

/** The content kinds of MCP, without annotations. */
const BLOCKS: Readonly<Record<string, JsonSchema>> = {
  text: block('text', { text }, ['text']),
  image: block('image', { data: text, mimeType: text }, ['data', 'mimeType']),
  audio: block('audio', { data: text, mimeType: text }, ['data', 'mimeType']),
  resource_link: block('resource_link', { uri: text, name: text, mimeType: text }, ['uri']),
  resource: block('resource', { resource: { anyOf: [resource('text'), resource('blob')] } }, ['resource']),
};

interface ToolResultShape {
  /** The server's own schema of the structured part, weakened; null if it has none. */
  readonly walked: JsonSchema | null;
  /** The registered schema of that part. */
  readonly structured: ConvertedSchema;
  readonly bytesMax: number;
}

/** The registered output schema of a tool. */
export const toolResultSchema = ({ structured }: Pick<ToolResultShape, 'structured'>): JsonSchema => ({
  type: 'object',
  properties: {
    content: { type: 'array', maxItems: CONTENT_MAX, items: { anyOf: Object.values(BLOCKS) } },
    structured: structured.schema,
    complete: { type: 'boolean', description: 'False where something was left out: too large, or of an unknown kind.' },
  },
  required: ['content', 'complete'],
  additionalProperties: false,
});

/**
 * The registered form of an answer.
 * @throws ActionFailedError if the tool reports an error
 * @throws Error if the answer is malformed
 */
export function toToolResult(result: JsonObject, shape: ToolResultShape): JsonObject {
  const { content = [], structuredContent, isError = false } = result;
  if (!Array.isArray(content) || typeof isError !== 'boolean') throw new Error('the answer is malformed');
  const failed = isError;
  const isStructuredRequired = shape.walked !== null && !failed;
  if (
    isStructuredRequired &&
    (structuredContent === undefined || !isConformingValue(shape.walked, structuredContent))
  ) {
    throw new Error("the answer does not conform to the tool's own schema");
  }
  const budget = { bytes: shape.bytesMax - FRAME_BYTES, complete: true };
  const structured = failed || structuredContent === undefined ? {} : takeStructured(budget, structuredContent, shape);
  const blocks = takeContent(budget, content as readonly Json[]);
  const answer = { content: blocks, ...structured, complete: budget.complete };
  if (failed) throw failureOf(blocks, answer);
  return answer;
}

/** Its message is logged, so the text of the server is attached to it and not part of it. */
function failureOf(blocks: readonly JsonObject[], partial: JsonObject): ActionFailedError {
  const error = new ActionFailedError('the tool has ended with an error of its own', { partial });
  const words = blocks.map((content) => content['text']).find((value) => typeof value === 'string');
  return words === undefined ? error : attachToolExplanation(error, words);
}

/** The bytes that are left, and whether the answer is complete so far. */
interface ResultBudget {
  bytes: number;
  complete: boolean;
}

function takeStructured(
  budget: ResultBudget,
  value: Json,
  { structured }: ToolResultShape,
): { readonly structured?: Json } {
  const encoded = encodeOutput(structured.encoding, value);
  return reserveBytes(budget, encoded) ? { structured: encoded } : {};
}

function takeContent(budget: ResultBudget, content: readonly Json[]): readonly JsonObject[] {
  if (content.length > CONTENT_MAX) budget.complete = false;
  return content.slice(0, CONTENT_MAX).flatMap((one) => {
    const known = parseBlock(one);
    const fitting = known === null || hasRoomFor(budget, known) ? known : truncateText(budget, known);
    if (fitting === null) budget.complete = false;
    return fitting !== null && reserveBytes(budget, fitting) ? [fitting] : [];
  });
}

/**
 * The known members of a content block; null for an unknown kind.
 * @throws Error for a block that does not match its kind
 */
function parseBlock(value: Json): JsonObject | null {
  const kind = isJsonObject(value) ? value['type'] : undefined;
  if (!isJsonObject(value) || typeof kind !== 'string')
    throw new Error('the answer contains a malformed content block');
  const schema = Object.hasOwn(BLOCKS, kind) ? BLOCKS[kind] : undefined;
  if (schema === undefined) return null;
  const known = pickMembers(Object.keys(schema['properties'] as object), value);
  const inner = known['resource'];
  const payloadKey = isJsonObject(inner) && typeof inner['text'] === 'string' ? 'text' : 'blob';
  const whole = isJsonObject(inner)
    ? { ...known, resource: pickMembers(['uri', 'mimeType', payloadKey], inner) }
    : known;
  if (!isSchemaInstance(schema, whole)) throw new Error(`the answer contains a malformed ${kind}`);
  return whole;
}

const pickMembers = (names: readonly string[], { ...members }: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)));

/** The longest beginning of a text that fits the budget. */
function truncateText(budget: ResultBudget, value: JsonObject): JsonObject | null {
  const { text: whole } = value;
  if (typeof whole !== 'string') return null;
  // Cutting a surrogate pair would make ill-formed text.
  const shorter = (chars: number) => ({ ...value, text: whole.slice(0, chars).replace(/[\ud800-\udbff]$/u, '') });
  let fitting = 0;
  for (let tooMany = Math.min(whole.length, budget.bytes) + 1; tooMany - fitting > 1;) {
    const chars = Math.floor((fitting + tooMany) / 2);
    if (hasRoomFor(budget, shorter(chars))) fitting = chars;
    else tooMany = chars;
  }
  budget.complete = false;
  return fitting === 0 ? null : shorter(fitting);
}

const sizeOf = (value: Json): number => Buffer.byteLength(JSON.stringify(value)) + 1;
const hasRoomFor = (budget: ResultBudget, value: Json): boolean => sizeOf(value) <= budget.bytes;

function reserveBytes(budget: ResultBudget, value: Json): boolean {
  const bytes = sizeOf(value);
  if (bytes > budget.bytes) {
    budget.complete = false;
    return false;
  }
  budget.bytes -= bytes;
  return true;
}

/** Limit of the work. Each part of a schema counts once for every value that it is applied to. */
const STEPS_MAX = 500_000;
/** Comparing names and constants is faster than walking the parts of a schema. */
const COMPARISONS_PER_STEP = 8;

/**
 * Validates a value against the schema of an upstream server, within a bounded number of steps. Validation takes time
 * proportional to the size of the value times the size of the schema, and it blocks the process meanwhile.
 * @returns false also if validation would exceed the limit of steps
 */
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
