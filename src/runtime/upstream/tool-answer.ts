// What a tool of an upstream server has answered, as the contract holds it: the kinds of content that are known, member
// by member, within the size that is allowed. What is not an answer at all is thrown: then nobody can tell what
// happened.

import { isJsonObject, type Json, type JsonObject } from '../../contract/json.js';
import { satisfies } from '../../contract/registered-schema.js';
import { Failed } from '../../errors.js';
import { encodedOutput, type Held } from './held-schema.js';
import { conformsWalked } from './walked-check.js';
import type { WalkedSchema } from './weakened-schema.js';

const CONTENT_MAX = 1_000;
/** Of an answer, for what is no content. */
const FRAME_BYTES = 256;

const text = { type: 'string' };
const block = (kind: string, members: WalkedSchema, required: readonly string[]): WalkedSchema => ({
  type: 'object',
  properties: { type: { const: kind }, ...members },
  required: ['type', ...required],
  additionalProperties: false,
});
const resource = (required: string): WalkedSchema => ({
  type: 'object',
  properties: { uri: text, mimeType: text, [required]: text },
  required: ['uri', required],
  additionalProperties: false,
});

/** The kinds of content that MCP has, without their annotations. */
const BLOCKS: Readonly<Record<string, WalkedSchema>> = {
  text: block('text', { text }, ['text']),
  image: block('image', { data: text, mimeType: text }, ['data', 'mimeType']),
  audio: block('audio', { data: text, mimeType: text }, ['data', 'mimeType']),
  resource_link: block('resource_link', { uri: text, name: text, mimeType: text }, ['uri']),
  resource: block('resource', { resource: { anyOf: [resource('text'), resource('blob')] } }, ['resource']),
};

export interface AnswerShape {
  /** The server's own schema of the structured part, weakened; null where it has none. */
  readonly walked: WalkedSchema | null;
  /** How that part is held. */
  readonly structured: Held;
  readonly bytesMax: number;
}

/** How the answer of a tool is registered. */
export const answerSchema = ({ structured }: Pick<AnswerShape, 'structured'>): WalkedSchema => ({
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
 * The answer to a call.
 * @throws Failed when the tool says that it went wrong; anything else for what is no answer
 */
export function answerOf(result: JsonObject, shape: AnswerShape): JsonObject {
  const { content = [], structuredContent, isError = false } = result;
  if (!Array.isArray(content) || typeof isError !== 'boolean') throw new Error('the answer has not the form of one');
  const failed = isError;
  const wanted = shape.walked !== null && !failed;
  if (wanted && (structuredContent === undefined || !conformsWalked(shape.walked, structuredContent))) {
    throw new Error("the answer does not conform to the tool's own schema");
  }
  const room = { bytes: shape.bytesMax - FRAME_BYTES, complete: true };
  const structured = failed || structuredContent === undefined ? {} : structuredIn(room, structuredContent, shape);
  const blocks = contentIn(room, content as readonly Json[]);
  const answer = { content: blocks, ...structured, complete: room.complete };
  if (failed) throw new Failed('the tool has ended with an error of its own', { partial: answer });
  return answer;
}

/** What may still be taken, and whether all has been. */
interface Room {
  bytes: number;
  complete: boolean;
}

function structuredIn(room: Room, value: Json, { structured }: AnswerShape): { readonly structured?: Json } {
  const encoded = encodedOutput(structured.coding, value);
  return taken(room, encoded) ? { structured: encoded } : {};
}

function contentIn(room: Room, content: readonly Json[]): readonly JsonObject[] {
  if (content.length > CONTENT_MAX) room.complete = false;
  return content.slice(0, CONTENT_MAX).flatMap((one) => {
    const known = knownBlock(one);
    const fitting = known === null || fits(room, known) ? known : cut(room, known);
    if (fitting === null) room.complete = false;
    return fitting !== null && taken(room, fitting) ? [fitting] : [];
  });
}

/** The members of a block that are known; null for a kind that is not. @throws for a block that contradicts its kind */
function knownBlock(value: Json): JsonObject | null {
  const kind = isJsonObject(value) ? value['type'] : undefined;
  if (!isJsonObject(value) || typeof kind !== 'string')
    throw new Error('the answer holds something that is no content');
  const schema = Object.hasOwn(BLOCKS, kind) ? BLOCKS[kind] : undefined;
  if (schema === undefined) return null;
  const known = only(Object.keys(schema['properties'] as object), value);
  const inner = known['resource'];
  const kept = isJsonObject(inner) && typeof inner['text'] === 'string' ? 'text' : 'blob';
  const whole = isJsonObject(inner) ? { ...known, resource: only(['uri', 'mimeType', kept], inner) } : known;
  if (!satisfies(schema, whole)) throw new Error(`the answer holds ${kind} that is none`);
  return whole;
}

const only = (names: readonly string[], { ...members }: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)));

/** As much of the beginning of a text as there is room for. */
function cut(room: Room, value: JsonObject): JsonObject | null {
  const { text: whole } = value;
  if (typeof whole !== 'string') return null;
  // Half a surrogate pair would be no text.
  const shorter = (chars: number) => ({ ...value, text: whole.slice(0, chars).replace(/[\ud800-\udbff]$/u, '') });
  let fitting = 0;
  for (let tooMany = Math.min(whole.length, room.bytes) + 1; tooMany - fitting > 1;) {
    const chars = Math.floor((fitting + tooMany) / 2);
    if (fits(room, shorter(chars))) fitting = chars;
    else tooMany = chars;
  }
  room.complete = false;
  return fitting === 0 ? null : shorter(fitting);
}

const bytesOf = (value: Json): number => Buffer.byteLength(JSON.stringify(value)) + 1;
const fits = (room: Room, value: Json): boolean => bytesOf(value) <= room.bytes;

function taken(room: Room, value: Json): boolean {
  const bytes = bytesOf(value);
  if (bytes > room.bytes) {
    room.complete = false;
    return false;
  }
  room.bytes -= bytes;
  return true;
}
