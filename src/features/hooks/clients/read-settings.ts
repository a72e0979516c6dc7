// Reads settings files as their clients do: JSON, for some of them with comments and commas before a bracket, and TOML.

import { parse, TomlDate, TomlError } from 'smol-toml';
import { isJsonObject, type Json, type JsonObject, readJson } from '../../../core/contract/json.js';

/** The object of a settings file; null if the text has no object. An empty text counts as an empty object. */
export function readJsonObject(text: string): JsonObject | null {
  if (text.trim() === '') return {};
  const value = readJson(text.replace(/^\uFEFF/, ''));
  return isJsonObject(value) ? value : null;
}

/** The same for a client that accepts comments. */
export const readCommentedObject = (text: string): JsonObject | null => readJsonObject(withoutComments(text));

/** A string, which may be cut at the end of the text, or a comment. */
const STRING_OR_COMMENT = /("(?:[^"\\]|\\[^])*"?)|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
const STRING_OR_LAST_COMMA = /("(?:[^"\\]|\\[^])*"?)|,(?=\s*[\]}])/g;

/** The text with spaces in place of comments, and of commas before a closing bracket. */
const withoutComments = (text: string): string =>
  [STRING_OR_COMMENT, STRING_OR_LAST_COMMA].reduce(
    (clean, pattern) => clean.replace(pattern, (_, string: string | undefined) => string ?? ' '),
    text,
  );

const TOML_DEPTH_MAX = 32;

/**
 * A TOML file as an object, dates as texts; null if it is not understood. What `smol-toml`, which reads TOML 1.0, does
 * not accept makes the whole file unreadable, so nothing is overlooked.
 */
export function readToml(text: string): JsonObject | null {
  try {
    const table = toJson(parse(text.replace(/^\uFEFF/, ''), { maxDepth: TOML_DEPTH_MAX }));
    return isJsonObject(table) ? table : null;
  } catch (error) {
    if (error instanceof TomlError) return null;
    throw error;
  }
}

/** Objects have no prototype, so that no key of the file can reach one. */
function toJson(value: unknown): Json {
  if (value instanceof TomlDate) return value.toISOString();
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === 'object' && value !== null) {
    const object = Object.create(null) as { [name: string]: Json };
    for (const [name, member] of Object.entries(value)) object[name] = toJson(member);
    return object;
  }
  return typeof value === 'boolean' || Number.isFinite(value) ? (value as Json) : String(value);
}

/** The settings in a file, by the ending of its name. */
export const readSettingsByName = (name: string, text: string): JsonObject | null =>
  name.endsWith('.toml') ? readToml(text) : readCommentedObject(text);

/** The objects of a list, with their places. */
export const objectsIn = (value: Json | undefined): readonly (readonly [JsonObject, number])[] =>
  Array.isArray(value)
    ? (value as readonly Json[]).flatMap((item, at) => (isJsonObject(item) ? [[item, at] as const] : []))
    : [];

/** The object in a member; an empty one without it. */
export const objectIn = (value: JsonObject | undefined, name: string): JsonObject => {
  const found = value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
  return isJsonObject(found) ? found : {};
};

/** The list in a member; an empty one without it. */
export const listIn = (value: JsonObject, name: string): readonly Json[] => {
  const found = value[name];
  return Array.isArray(found) ? (found as readonly Json[]) : [];
};

/** The text of a member, or an empty one. */
export const textIn = (value: JsonObject, name: string): string => {
  const found = value[name];
  return typeof found === 'string' ? found : '';
};
