// Reads TOML as a JSON object. `smol-toml` reads TOML 1.0; what it does not accept makes the whole file unreadable, so
// nothing is overlooked.

import { parse, TomlDate, TomlError } from 'smol-toml';
import { isJsonObject, type Json, type JsonObject } from '../../../core/contract/json.js';

const DEPTH_MAX = 32;

/** The file as an object, dates as texts; null if it is not understood. */
export function readToml(text: string): JsonObject | null {
  try {
    const table = toJson(parse(text.replace(/^\uFEFF/, ''), { maxDepth: DEPTH_MAX }));
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
